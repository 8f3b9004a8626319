/* The operator's table: tensors, parameters, decoys, what is a problem.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "top_k/top_k_draw.h"

#define PLACE(member) AT_OWN_PLACE(at_top_k_own, member)

/* clang-format off */
enum { VOCABULARY, KEPT, K, TEMPERATURE, FIELDS };
static const struct at_scalar own[FIELDS] = {
    [VOCABULARY]  = { "vocabulary", AT_SCALAR_SIZE, PLACE(vocabulary), 1024, "logits of a row", "vocabulary", 1, 1 << 24, .word = "logit" },
    [KEPT]        = { "kept", AT_SCALAR_SIZE, PLACE(kept), 50, "min(k, vocabulary)", .word = "rank" },
    [K]           = { "k", AT_SCALAR_INT, PLACE(k), 50, "logits of a row that may be drawn", "k", 1, 1 << 24 },
    [TEMPERATURE] = { "temperature", AT_SCALAR_FLOAT, PLACE(temperature), 1, "divides logits", "temperature", 0x1p-7, 100 },
};
static const struct at_tensor_spec tensors[] = {
    { "logits", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_OWN(VOCABULARY) }, "scores of what may come next", AT_FILL_ROWS },
    { "u", AT_IN, AT_FORMAT_F32, { AT_DIM_tokens }, "numbers of [0, 1) to draw by", AT_FILL_UNIFORM },
    { "index", AT_OUT, AT_FORMAT_I32, { AT_DIM_tokens }, "place that is drawn" },
    { "cumulative", AT_OUT, AT_FORMAT_F32, { AT_DIM_tokens, AT_DIM_OWN(KEPT) }, "sums of weights up to each rank" },
};
static const struct at_decoy_spec decoys[AT_TOP_K_FAULTS] = {
    [AT_TOP_K_GREEDY]          = { "greedy", "the largest, whatever u is" },
    [AT_TOP_K_NO_TEMPERATURE]  = { "no_temperature", "the temperature is 1" },
    [AT_TOP_K_ONE_MORE]        = { "one_more", "k + 1 are kept" },
    [AT_TOP_K_ONE_LESS]        = { "one_less", "k - 1 are kept" },
    [AT_TOP_K_ASCENDING]       = { "ascending", "sums begin at the least of the kept" },
    [AT_TOP_K_U_OF_NEXT_ROW]   = { "u_of_next_row", "u is the next row's" },
    [AT_TOP_K_RANK_FOR_PLACE]  = { "rank_for_place", "the rank is given for the place" },
    [AT_TOP_K_NOT_NORMALISED]  = { "not_normalised", "the threshold is u, not u times the whole sum" },
    [AT_TOP_K_FIRST_NOT_BELOW] = { "first_not_below", "a sum that equals the threshold ends the draw" },
    [AT_TOP_K_LAST_OF_TIES]    = { "last_of_ties", "of equal logits the last comes first" },
    [AT_TOP_K_MAXIMUM_KEPT]    = { "maximum_kept", "weights are exp(l / T), not less the largest" },
};
/* clang-format on */

static at_status check_tensor(const struct at_problem *p, int t, enum at_format format, int64_t wanted) {
    const struct at_tensor *x = &p->tensors[t];
    if (at_tensor_count(x) == wanted && x->format == format && (wanted == 0 || x->data || tensors[t].role == AT_OUT))
        return AT_OK;
    return AT_FAIL(AT_USAGE, "top_k: tensor %s has %lld elements of %s, wanted %lld of %s with data", tensors[t].name,
                   (long long)at_tensor_count(x), at_format_info(x->format)->name, (long long)wanted,
                   at_format_info(format)->name);
}

static at_status check(const struct at_problem *p) {
    const struct at_top_k_own z = at_top_k_own_of(p);
    const int64_t tokens = p->sizes.tokens, kept = z.k < z.vocabulary ? z.k : z.vocabulary;
    if (tokens < 0 || z.vocabulary < 1 || z.vocabulary > INT32_MAX || z.k < 1)
        return AT_FAIL(AT_USAGE,
                       "top_k: tokens, vocabulary, k are %lld, %lld, %d, wanted 0 or more, 1 to %d, 1 or more",
                       (long long)tokens, (long long)z.vocabulary, (int)z.k, INT32_MAX);
    if (z.kept != kept)
        return AT_FAIL(AT_USAGE, "top_k: kept is %lld, wanted %lld of k=%d and %lld logits", (long long)z.kept,
                       (long long)kept, (int)z.k, (long long)z.vocabulary);
    if (!(z.temperature >= 0x1p-7f && z.temperature <= 100))
        return AT_FAIL(AT_USAGE, "top_k: temperature is %g, wanted 1/128 to 100", (double)z.temperature);
    AT_TRY(check_tensor(p, AT_TOP_K_LOGITS, p->dtype, tokens * z.vocabulary));
    AT_TRY(check_tensor(p, AT_TOP_K_U, AT_F32, tokens));
    for (int64_t i = 0; i < tokens; i++) {
        const double u = at_tensor_get(&p->tensors[AT_TOP_K_U], i);
        if (!(u >= 0 && u < 1))
            return AT_FAIL(AT_USAGE, "top_k: u[%lld] is %g, wanted 0 or more and less than 1", (long long)i, u);
    }
    return AT_OK;
}

static void complete(struct at_problem *p, unsigned given) {
    struct at_top_k_own z = at_top_k_own_of(p);
    (void)given;
    z.kept = z.k < z.vocabulary ? z.k : z.vocabulary;
    at_top_k_own_set(p, &z);
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    return at_top_k_evaluate(p, numerics, 0, row0, row1, eval);
}

static at_status model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                       struct at_eval *eval) {
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "top_k: no order of sums is declared, so there is no modelled value");
    if (numerics->exp == AT_EXP_TANH_APPROX)
        return AT_FAIL(AT_UNSUPPORTED, "top_k: exp=tanh_approx is silu_mul's");
    return at_top_k_evaluate(p, numerics, 1, row0, row1, eval);
}

static int64_t rows(const struct at_problem *p) { return p->sizes.tokens; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    *count = tensor == AT_TOP_K_INDEX ? 1 : at_top_k_own_of(p).kept;
    *first = row * *count;
}

static double row_work(const struct at_problem *p, int64_t row) {
    const struct at_top_k_own z = at_top_k_own_of(p);
    (void)row;
    return (double)z.vocabulary + 20 * (double)z.kept;
}

static const char *const keys[] = { "tokens", "vocabulary", "k",       "temperature", "dtype",
                                    "data",   "seed",       "require", "expect",      NULL };
/* clang-format off */
static const struct at_factor tokens = { .name = "tokens", .meaning = "rows", .classes = AT_CLASSES("tokens=8,11", "tokens=1", "tokens=2,4", "tokens=31,33"), .far = AT_CLASSES("tokens=0", "tokens=300"), .any = "tokens=1..40" };
static const struct at_factor vocabulary = { .name = "vocabulary", .meaning = "about vectors, warps and blocks", .classes = AT_CLASSES("vocabulary=1000", "vocabulary=1", "vocabulary=2,5,7", "vocabulary=31,32,33", "vocabulary=255,256,257", "vocabulary=2048,2049"), .far = AT_CLASSES("vocabulary=32000"), .any = "vocabulary=1..3000" };
static const struct at_factor kept = { .name = "k", .meaning = "logits that may be drawn", .classes = AT_CLASSES("k=20", "k=1", "k=2,3", "k=31,32,33", "k=64"), .far = AT_CLASSES("k=300"), .any = "k=1..70" };
static const struct at_factor temperature = { .name = "temperature", .meaning = "how flat weights are", .classes = AT_CLASSES("temperature=1", "temperature=0.7,0.9", "temperature=0.05", "temperature=4,20") };
static const struct at_factor dtype = { .name = "dtype", .meaning = "format of the logits", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
static const struct at_factor values = { .name = "data", .meaning = "what the logits look like", .classes = AT_CLASSES("data=normal", "data=exact", "data=peaks", "data=specials", "data=level", "data=heavy_tail,uniform", "data=random_bits") };
static const struct at_factor *const domain[] = { &tokens, &vocabulary, &kept, &temperature, &dtype, &values, NULL };
/* clang-format on */

const struct at_op at_op_top_k = {
    .name = "top_k",
    .summary = "a place drawn from the k largest logits of each row, by a given number",
    .source = "002",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_TOP_K_FAULTS,
    .kind = AT_KIND_CHOICE,
    .uses = AT_USES(tokens),
    .own = own,
    .n_own = FIELDS,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES(exp),
    .complete = complete,
    .batch = AT_DIM_tokens,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = model,
    .decoy = at_top_k_decoy,
    .admits = at_top_k_admits,
};
