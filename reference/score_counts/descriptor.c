/* The operator's table: tensors, decoys, what is a problem.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "score_counts/score_counts.h"

static const char *attention_name(int i) {
    static const char *const names[] = { "asynct", "softmax", NULL };
    return i >= 0 && i < 2 ? names[i] : NULL;
}

static const char *quantity_name(int i) {
    static const char *const names[AT_COUNTS_QUANTITIES] = { "q",       "k",       "v",     "raw",     "scaled",
                                                             "fir",     "p",       "out",   "row_max", "row_sum",
                                                             "entropy", "support", "share0" };
    return i >= 0 && i < AT_COUNTS_QUANTITIES ? names[i] : NULL;
}

#define PLACE(member) AT_OWN_PLACE(at_counts_own, member)

/* clang-format off */
enum { QUANTITIES, KV_QUANTITIES, SOFTMAX, BINS, WHAT, BEHIND, CODES, SUMS, KV_SUMS, FIELDS };
static const struct at_scalar own[FIELDS] = {
    [QUANTITIES]    = { "quantities", AT_SCALAR_SIZE, PLACE(quantities), 0, "quantities of query heads that are counted", .word = "quantity" },
    [KV_QUANTITIES] = { "kv_quantities", AT_SCALAR_SIZE, PLACE(kv_quantities), 0, "quantities of key/value heads that are counted", .word = "kv quantity" },
    [SOFTMAX]       = { "softmax", AT_SCALAR_CHOICE, PLACE(softmax), 0, "how scores become p", "attention", .text = attention_name },
    [BINS]          = { "bins", AT_SCALAR_FORMAT, PLACE(bins), AT_F16, "the codes that are counted; default dtype, f16 for f32", "bins",
                        .formats = 1u << AT_F16 | 1u << AT_BF16 },
    [WHAT]          = { "what", AT_SCALAR_SET, PLACE(what), 0, "counted of q k v raw scaled fir p out row_max row_sum entropy support share0; default all", "what",
                        .text = quantity_name },
    [BEHIND]        = { "behind", AT_SCALAR_INT, PLACE(behind), 0, "queries of the request behind those at hand", "behind", 0, 1 << 24 },
    [CODES]         = { "codes", AT_SCALAR_FIXED, 0, AT_CODE_SLOTS, "a slot a code of 16 bits", .word = "code" },
    [SUMS]          = { "head_sums", AT_SCALAR_FIXED, 0, AT_HEAD_SUMS, "sums of a head", .word = "sum" },
    [KV_SUMS]       = { "kv_sums", AT_SCALAR_FIXED, 0, AT_KV_SUMS, "sums of a key/value head", .word = "kv sum" },
};
static const char *const keys[] = { AT_ATTN_KEYS, AT_ATTN_GATE_KEYS, "attention", "bins", "what", "behind",
                                    AT_ATTN_LAST_KEYS };
/* clang-format off */
static const struct at_factor groups = { .name = "group", .meaning = "query heads per key/value head", .classes = AT_CLASSES("h=2 hk=1", "h=1 hk=1", "h=3 hk=1 | h=6 hk=2", "h=4 hk=2", "h=2 hk=2 | h=3 hk=3"), .far = AT_CLASSES("h=16 hk=1") };
static const struct at_factor queries = { .name = "sq", .meaning = "about a tile of queries", .classes = AT_CLASSES("sq=20", "sq=1", "sq=63,64,65"), .far = AT_CLASSES("sq=130"), .any = "sq=1..140" };
static const struct at_factor keys_of = { .name = "sk", .meaning = "about a tile of keys", .classes = AT_CLASSES("sk=70", "sk=1,3", "sk=15,16,17,33", "sk=63,64,65", "sk=127,128,129"), .far = AT_CLASSES("sk=700,1300"), .any = "sk=1..200" };
static const struct at_factor behind = { .name = "behind", .meaning = "queries behind those at hand", .classes = AT_CLASSES("", "behind=9", "behind=40") };
static const struct at_factor head_size = { .name = "d", .meaning = "head size", .classes = AT_CLASSES("d=16", "d=8,64", "d=1,5,31", "d=40,100", "d=128"), .far = AT_CLASSES("d=256"), .any = "d=1..130" };
static const struct at_factor kinds = { .name = "attention", .meaning = "how scores become p", .classes = AT_CLASSES("attention=asynct what=raw:fir:p:out", "attention=asynct what=q:k:v:scaled:p:row_max:row_sum", "attention=asynct what=p:entropy:support:share0", "attention=softmax what=raw:p:out:row_max:row_sum", "attention=softmax what=scaled:p:entropy:support:share0") };
static const struct at_factor bins_of = { .name = "bins", .meaning = "the codes", .classes = AT_CLASSES("", "bins=f16", "bins=bf16") };
static const struct at_factor values = { .name = "data", .meaning = "what the values look like", .classes = AT_CLASSES("data=normal", "data=normal hot=last_key", "data=heavy_tail,outlier_channel", "data=sparse70", "data=subnormal", "data=ties", "data=same_sign,uniform"), .far = AT_CLASSES("data=nonfinite") };
static const struct at_factor *const domain[] = { &groups, &queries, &keys_of, &behind, &at_attn_causal, &head_size, &at_attn_dtype, &kinds, &bins_of, &values, &at_attn_fir, &at_attn_edge, &at_attn_relu, &at_attn_clip, &at_attn_gamma, NULL };
/* clang-format on */
static const struct at_tensor_spec tensors[] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "queries", AT_FILL_QUERIES },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "keys", AT_FILL_KEYS },
    { "v", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "values", AT_FILL_VALUES },
    { "query_start", AT_IN, AT_FORMAT_I32, { AT_DIM_b_plus_1 }, "0 and the number of queries", AT_FILL_QUERY_START },
    { "seq_lens", AT_IN, AT_FORMAT_I32, { AT_DIM_b }, "the number of keys", AT_FILL_SEQ_LENS },
    { "key_start", AT_IN, AT_FORMAT_I32, { AT_DIM_b_plus_1 }, "0 and the number of keys", AT_FILL_KEY_START },
    { "block_table",
      AT_IN,
      AT_FORMAT_I32,
      { AT_DIM_b, AT_DIM_max_pages },
      "absent: keys are contiguous",
      AT_FILL_BLOCK_TABLE },
    { "sigma", AT_IN, AT_FORMAT_F32, { AT_DIM_h }, "share of the pooled scores that is subtracted", AT_FILL_SIGMA },
    { "taps", AT_IN, AT_FORMAT_F32, { AT_DIM_h, AT_DIM_taps }, "FIR taps, the current key's first", AT_FILL_TAPS },
    { "gamma", AT_IN, AT_FORMAT_F32, { AT_DIM_h }, "factor of p", AT_FILL_GAMMA },
    { "counts", AT_OUT, AT_FORMAT_I32, { AT_DIM_h, AT_DIM_OWN(QUANTITIES), AT_DIM_OWN(CODES) }, "values of each code" },
    { "kv_counts",
      AT_OUT,
      AT_FORMAT_I32,
      { AT_DIM_hk, AT_DIM_OWN(KV_QUANTITIES), AT_DIM_OWN(CODES) },
      "k and v of each code" },
    { "sums", AT_OUT, AT_FORMAT_F64, { AT_DIM_h, AT_DIM_OWN(SUMS) }, "zeros, mass by distance, ledger" },
    { "kv_sums", AT_OUT, AT_FORMAT_F64, { AT_DIM_hk, AT_DIM_OWN(KV_SUMS) }, "zeros in every head of a group" },
};
static const struct at_decoy_spec decoys[AT_COUNTS_FAULTS] = {
    [AT_COUNTS_LAST_KEY_DROPPED] = { "last_key_dropped", "the last visible key does not count" },
    [AT_COUNTS_HIDDEN_KEY_ADDED] = { "hidden_key_added", "the first hidden key counts" },
    [AT_COUNTS_NO_SCALE] = { "no_scale", "the scale is missing" },
    [AT_COUNTS_TAP_DROPPED] = { "tap_dropped", "the last tap of the FIR is missing" },
    [AT_COUNTS_HALO_FORGOTTEN] = { "halo_forgotten", "the FIR starts anew every 64 keys" },
    [AT_COUNTS_OTHER_GAMMA] = { "other_gamma", "gamma is that of the next head" },
    [AT_COUNTS_NEGATIVE_ZERO_LOST] = { "negative_zero_lost", "-0 is counted as +0" },
    [AT_COUNTS_NAN_LOST] = { "nan_lost", "NaN is not counted" },
    [AT_COUNTS_SUBNORMAL_LOST] = { "subnormal_lost", "subnormal codes are counted as 0" },
    [AT_COUNTS_TRUNCATED] = { "truncated", "values are cut to their code, not rounded" },
    [AT_COUNTS_ZEROS_TWICE] = { "zeros_twice", "p that is 0 is counted twice" },
};
/* clang-format on */

void at_counts_planes(int what, int64_t *quantities, int64_t *kv_quantities) {
    *quantities = *kv_quantities = 0;
    for (int i = 0; i < AT_COUNTS_QUANTITIES; i++) {
        *kv_quantities += (what & AT_COUNTS_KV_BITS) >> i & 1;
        *quantities += (what & ~AT_COUNTS_KV_BITS) >> i & 1;
    }
}

static at_status check_parameters(const struct at_problem *p) {
    const struct at_counts_own counts = at_counts_own_of(p), *z = &counts;
    const struct at_params *x = &p->params;
    const int all = (1 << AT_COUNTS_QUANTITIES) - 1;
    int64_t quantities, kv_quantities;
    at_counts_planes(z->what, &quantities, &kv_quantities);
    if (z->bins != AT_F16 && z->bins != AT_BF16)
        return AT_FAIL(AT_USAGE, "score_counts: bins is %d, wanted f16 or bf16", z->bins);
    if (z->what < 0 || z->what > all || (z->softmax && z->what >> AT_COUNTS_OF_FIR & 1))
        return AT_FAIL(AT_USAGE, "score_counts: what is %d, wanted bits of %d%s", z->what, all,
                       z->softmax ? " but that of fir: softmax has none" : "");
    if (quantities != z->quantities || kv_quantities != z->kv_quantities)
        return AT_FAIL(AT_USAGE, "score_counts: %lld and %lld quantities, wanted %lld and %lld as what says",
                       (long long)z->quantities, (long long)z->kv_quantities, (long long)quantities,
                       (long long)kv_quantities);
    if (z->behind < 0)
        return AT_FAIL(AT_USAGE, "score_counts: behind is %d, wanted 0 or more", z->behind);
    if (p->sizes.taps < 1 || p->sizes.taps > AT_COUNTS_MAX_TAPS)
        return AT_FAIL(AT_USAGE, "score_counts: taps is %lld, wanted 1 to %d", (long long)p->sizes.taps,
                       AT_COUNTS_MAX_TAPS);
    if (!isfinite((double)x->clip_min) || !isfinite((double)x->clip_max) || !(x->clip_min <= x->clip_max))
        return AT_FAIL(AT_USAGE, "score_counts: clip is %g to %g, wanted finite ends, the first not above the second",
                       (double)x->clip_min, (double)x->clip_max);
    return AT_OK;
}

/* Counts are of 31 bits, mass of 63: what could pass them is no problem. */
static at_status check_range(const struct at_problem *p) {
    const double most = fmax(1.0, fmax(fabs((double)p->params.clip_min), fabs((double)p->params.clip_max)));
    const double scores = (double)p->sizes.tokens * (double)p->sizes.slots, end = 0x1p31;
    if (scores < end && (double)(p->sizes.tokens + p->sizes.slots) * (double)p->sizes.d < end &&
        scores * most * 0x1p24 < 0x1p63)
        return AT_OK;
    return AT_FAIL(AT_USAGE,
                   "score_counts: %lld queries and %lld keys of %lld values, p up to %g: wanted counts below 2^31 and "
                   "mass below 2^39",
                   (long long)p->sizes.tokens, (long long)p->sizes.slots, (long long)p->sizes.d, most);
}

/* Parameters of heads: finite, so that a key which is not there can stand as 0. */
static at_status check_tensor(const struct at_problem *p, int t, int64_t want) {
    const struct at_tensor *x = &p->tensors[t];
    if (at_tensor_count(x) != want || x->format != AT_F32 || !x->data)
        return AT_FAIL(AT_USAGE, "score_counts: tensor %s has %lld elements, wanted %lld of f32 with data",
                       tensors[t].name, (long long)at_tensor_count(x), (long long)want);
    for (int64_t i = 0; i < want; i++)
        if (!isfinite(at_tensor_get(x, i)))
            return AT_FAIL(AT_USAGE, "score_counts: tensor %s has %g at %lld, wanted finite numbers", tensors[t].name,
                           at_tensor_get(x, i), (long long)i);
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    AT_TRY(at_attn_check(p));
    if (p->sizes.b != 1 || p->sizes.page != 0)
        return AT_FAIL(AT_USAGE, "score_counts: b=%lld page=%lld, wanted one request of contiguous keys",
                       (long long)p->sizes.b, (long long)p->sizes.page);
    AT_TRY(check_parameters(p));
    AT_TRY(check_range(p));
    for (int t = AT_COUNTS_SIGMA; t <= AT_COUNTS_GAMMA; t++)
        AT_TRY(check_tensor(p, t, p->sizes.h * (t == AT_COUNTS_TAPS ? p->sizes.taps : 1)));
    return AT_OK;
}

/* A head is a row; the first of a group has what belongs to its key/value head. */
static int64_t rows(const struct at_problem *p) { return p->sizes.h; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    const struct at_sizes *z = &p->sizes;
    const int64_t group = z->h / z->hk, kv_head = row / group, owns = row % group == 0;
    switch (tensor) {
    case AT_COUNTS_COUNTS:
        *count = at_counts_own_of(p).quantities * AT_CODE_SLOTS;
        *first = row * *count;
        return;
    case AT_COUNTS_SUMS:
        *count = AT_HEAD_SUMS;
        *first = row * *count;
        return;
    case AT_COUNTS_KV_COUNTS:
        *count = owns ? at_counts_own_of(p).kv_quantities * AT_CODE_SLOTS : 0;
        *first = kv_head * at_counts_own_of(p).kv_quantities * AT_CODE_SLOTS;
        return;
    default:
        *count = owns ? AT_KV_SUMS : 0;
        *first = kv_head * AT_KV_SUMS;
    }
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return (double)p->sizes.tokens * (double)p->sizes.slots * (double)p->sizes.d;
}

static void clear(const struct at_problem *p, int64_t row, struct at_eval *eval) {
    for (int t = AT_COUNTS_COUNTS; t <= AT_COUNTS_KV_SUMS; t++) {
        int64_t first, count;
        row_span(p, t, row, &first, &count);
        for (int64_t i = first; i < first + count; i++) {
            if (eval->value[t])
                eval->value[t][i] = 0;
            if (eval->limit[t])
                eval->limit[t][i] = 0;
        }
    }
}

static at_status count_heads(const struct at_problem *p, enum at_counts_fault fault, int64_t row0, int64_t row1,
                             struct at_eval *eval) {
    for (int64_t row = row0; row < row1; row++) {
        clear(p, row, eval);
        AT_TRY(at_counts_head_count(p, fault, row, eval));
    }
    return AT_OK;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    (void)numerics;
    return count_heads(p, AT_COUNTS_RIGHT, row0, row1, eval);
}

static at_status decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                       int64_t row1, struct at_eval *eval) {
    (void)numerics;
    return count_heads(p, (enum at_counts_fault)which, row0, row1, eval);
}

/* Every quantity there is, in bins of the activations' width; softmax has no fir. */
static void complete(struct at_problem *p, unsigned given) {
    struct at_counts_own z = at_counts_own_of(p);
    if (!(given >> BINS & 1))
        z.bins = p->dtype == AT_BF16 ? AT_BF16 : AT_F16;
    if (!(given >> WHAT & 1))
        z.what = ((1 << AT_COUNTS_QUANTITIES) - 1) & ~(z.softmax ? 1 << AT_COUNTS_OF_FIR : 0);
    at_counts_planes(z.what, &z.quantities, &z.kv_quantities);
    at_counts_own_set(p, &z);
}

/* Every pair of a query and a key that it sees, of every head. */
static double scores(const struct at_problem *p) {
    const struct at_sizes *z = &p->sizes;
    double sum = 0;
    for (int64_t i = 0; i < z->tokens; i++) {
        const int64_t seen = z->slots - z->tokens - at_counts_own_of(p).behind + i + 1;
        sum += (double)(!p->params.causal ? z->slots : seen > 0 ? seen : 0);
    }
    return sum * (double)z->h;
}

static double flops(const struct at_problem *p) { return 2.0 * scores(p) * (double)p->sizes.d; }

const struct at_op at_op_score_counts = {
    .name = "score_counts",
    .summary = "attention scores, weights and outputs of a request counted by their 16-bit codes",
    .source = "ours",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_COUNTS_FAULTS,
    .weights = AT_WEIGHTS_GATE,
    .uses = AT_ATTN_USES | AT_ATTN_GATE_USES,
    .own = own,
    .n_own = FIELDS,
    .keys = keys,
    .domain = domain,
    .complete = complete,
    .scores = scores,
    .flops = flops,
    AT_ATTN_FUNCTIONS,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = evaluate,
    .decoy = decoy,
};
