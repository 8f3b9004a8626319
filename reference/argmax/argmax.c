/* index[i] = the place of the largest of logits[i]: greedy sampling.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Order: numbers and infinities as they compare, so that -0 equals 0; a NaN is larger than anything, as torch.argmax has it.
 * Of equal ones, NaNs among them, the first is taken. Nothing is rounded: exact value and modelled value are the same, every
 * limit is 0. */
#include "argmax/argmax.h"

#include <math.h>

/* clang-format off */
enum { VOCABULARY };
static const struct at_scalar own[] = {
    [VOCABULARY] = { "vocabulary", AT_SCALAR_SIZE, AT_OWN_PLACE(at_argmax_own, vocabulary), 1024, "logits of a row", "vocabulary", 1, 1 << 24, .word = "logit" },
};
static const struct at_tensor_spec tensors[] = {
    { "logits", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_OWN(VOCABULARY) }, "scores of what may come next", AT_FILL_ROWS },
    { "index", AT_OUT, AT_FORMAT_I32, { AT_DIM_tokens }, "place of the largest" },
};
static const struct at_decoy_spec decoys[AT_ARGMAX_FAULTS] = {
    [AT_ARGMAX_LAST_OF_TIES]      = { "last_of_ties", "of equal logits the last" },
    [AT_ARGMAX_SMALLEST]          = { "smallest", "the smallest logit" },
    [AT_ARGMAX_LARGEST_MAGNITUDE] = { "largest_magnitude", "the logit furthest from 0" },
    [AT_ARGMAX_NAN_IGNORED]       = { "nan_ignored", "a NaN is smaller than anything" },
    [AT_ARGMAX_LAST_UNSEEN]       = { "last_unseen", "the last logit does not count" },
    [AT_ARGMAX_FIRST_THOUSAND]    = { "first_1024", "logits behind the first 1024 do not count" },
    [AT_ARGMAX_NEXT_ROW]          = { "next_row", "the logits are the next row's" },
    [AT_ARGMAX_ONE_BASED]         = { "one_based", "places are counted from 1" },
};
/* clang-format on */

/* Of logit x in the order that a fault has. */
static double rank_of(int fault, double x) {
    if (isnan(x))
        return fault == AT_ARGMAX_NAN_IGNORED ? (double)-INFINITY : (double)NAN;
    return fault == AT_ARGMAX_SMALLEST ? -x : fault == AT_ARGMAX_LARGEST_MAGNITUDE ? fabs(x) : x;
}

static int is_larger(double a, double b) { return isnan(a) ? !isnan(b) : a > b; }
static int is_equal(double a, double b) { return isnan(a) ? isnan(b) : a == b; }

static int64_t choose(const struct at_problem *p, int fault, int64_t row) {
    const struct at_tensor *logits = &p->tensors[AT_ARGMAX_LOGITS];
    const int64_t n = at_argmax_own_of(p).vocabulary;
    const int64_t first = (fault == AT_ARGMAX_NEXT_ROW ? (row + 1) % p->sizes.tokens : row) * n;
    int64_t seen = fault == AT_ARGMAX_LAST_UNSEEN && n > 1 ? n - 1 : n, best = 0;
    if (fault == AT_ARGMAX_FIRST_THOUSAND && seen > 1024)
        seen = 1024;
    double most = rank_of(fault, at_tensor_get(logits, first));
    for (int64_t i = 1; i < seen; i++) {
        const double x = rank_of(fault, at_tensor_get(logits, first + i));
        if (is_larger(x, most) || (fault == AT_ARGMAX_LAST_OF_TIES && is_equal(x, most)))
            most = x, best = i;
    }
    return best + (fault == AT_ARGMAX_ONE_BASED);
}

static at_status choose_rows(const struct at_problem *p, int fault, int64_t row0, int64_t row1, struct at_eval *eval) {
    for (int64_t row = row0; row < row1; row++) {
        if (eval->value[AT_ARGMAX_INDEX])
            eval->value[AT_ARGMAX_INDEX][row] = (double)choose(p, fault, row);
        if (eval->limit[AT_ARGMAX_INDEX])
            eval->limit[AT_ARGMAX_INDEX][row] = 0;
    }
    return AT_OK;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    (void)numerics;
    return choose_rows(p, AT_ARGMAX_RIGHT, row0, row1, eval);
}

static at_status decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                       int64_t row1, struct at_eval *eval) {
    (void)numerics;
    return choose_rows(p, which, row0, row1, eval);
}

static at_status check(const struct at_problem *p) {
    const int64_t n = at_argmax_own_of(p).vocabulary, tokens = p->sizes.tokens;
    const struct at_tensor *x = &p->tensors[AT_ARGMAX_LOGITS];
    if (tokens < 0 || n < 1 || n > INT32_MAX)
        return AT_FAIL(AT_USAGE, "argmax: tokens and vocabulary are %lld and %lld, wanted 0 or more and 1 to %d",
                       (long long)tokens, (long long)n, INT32_MAX);
    if (at_tensor_count(x) != tokens * n || x->format != p->dtype || (tokens > 0 && !x->data))
        return AT_FAIL(AT_USAGE, "argmax: tensor logits has %lld elements of %s, wanted %lld of %s with data",
                       (long long)at_tensor_count(x), at_format_info(x->format)->name, (long long)(tokens * n),
                       at_format_info(p->dtype)->name);
    return AT_OK;
}

static int64_t rows(const struct at_problem *p) { return p->sizes.tokens; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)p, (void)tensor;
    *first = row;
    *count = 1;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return (double)at_argmax_own_of(p).vocabulary;
}

static const char *const keys[] = { "tokens", "vocabulary", "dtype", "data", "seed", "require", "expect", NULL };
/* clang-format off */
static const struct at_factor tokens = { .name = "tokens", .meaning = "rows", .classes = AT_CLASSES("tokens=8,11", "tokens=1", "tokens=2,4", "tokens=31,33"), .far = AT_CLASSES("tokens=0", "tokens=300"), .any = "tokens=1..40" };
static const struct at_factor vocabulary = { .name = "vocabulary", .meaning = "about vectors, warps and blocks", .classes = AT_CLASSES("vocabulary=1000", "vocabulary=1", "vocabulary=2,5,7", "vocabulary=8,16,32", "vocabulary=31,33,63,65", "vocabulary=255,256,257", "vocabulary=2048,2049,4104"), .far = AT_CLASSES("vocabulary=32000", "vocabulary=50257"), .any = "vocabulary=1..3000" };
static const struct at_factor dtype = { .name = "dtype", .meaning = "format of the logits", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
static const struct at_factor values = { .name = "data", .meaning = "what the logits look like", .classes = AT_CLASSES("data=normal", "data=exact", "data=peaks", "data=specials", "data=level", "data=random_bits,heavy_tail", "data=subnormal,near_65504") };
static const struct at_factor *const domain[] = { &tokens, &vocabulary, &dtype, &values, NULL };
/* clang-format on */

const struct at_op at_op_argmax = {
    .name = "argmax",
    .summary = "the place of the largest logit of each row",
    .source = "002",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_ARGMAX_FAULTS,
    .kind = AT_KIND_CHOICE,
    .uses = AT_USES(tokens),
    .own = own,
    .n_own = sizeof own / sizeof *own,
    .keys = keys,
    .domain = domain,
    .batch = AT_DIM_tokens,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = evaluate,
    .decoy = decoy,
};
