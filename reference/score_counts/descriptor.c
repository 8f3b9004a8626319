/* The operator's table: tensors, decoys, what is a problem.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "score_counts/score_counts.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "queries" },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "keys" },
    { "v", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "values" },
    { "query_start", AT_IN, AT_FORMAT_I32, { AT_DIM_b_plus_1 }, "0 and the number of queries" },
    { "seq_lens", AT_IN, AT_FORMAT_I32, { AT_DIM_b }, "the number of keys" },
    { "key_start", AT_IN, AT_FORMAT_I32, { AT_DIM_b_plus_1 }, "0 and the number of keys" },
    { "block_table", AT_IN, AT_FORMAT_I32, { AT_DIM_b, AT_DIM_max_pages }, "absent: keys are contiguous" },
    { "sigma", AT_IN, AT_FORMAT_F32, { AT_DIM_h }, "share of the pooled scores that is subtracted" },
    { "taps", AT_IN, AT_FORMAT_F32, { AT_DIM_h, AT_DIM_taps }, "FIR taps, the current key's first" },
    { "gamma", AT_IN, AT_FORMAT_F32, { AT_DIM_h }, "factor of p" },
    { "counts", AT_OUT, AT_FORMAT_I32, { AT_DIM_h, AT_DIM_quantities, AT_DIM_code_slots }, "values of each code" },
    { "kv_counts", AT_OUT, AT_FORMAT_I32, { AT_DIM_hk, AT_DIM_kv_quantities, AT_DIM_code_slots }, "k and v of each code" },
    { "sums", AT_OUT, AT_FORMAT_F64, { AT_DIM_h, AT_DIM_head_sums }, "zeros, mass by distance, ledger" },
    { "kv_sums", AT_OUT, AT_FORMAT_F64, { AT_DIM_hk, AT_DIM_kv_sums }, "zeros in every head of a group" },
};
static const struct at_decoy_spec decoys[AT_COUNTS_FAULTS] = {
    [AT_COUNTS_LAST_KEY_DROPPED]   = { "last_key_dropped", "the last visible key does not count" },
    [AT_COUNTS_HIDDEN_KEY_ADDED]   = { "hidden_key_added", "the first hidden key counts" },
    [AT_COUNTS_NO_SCALE]           = { "no_scale", "the scale is missing" },
    [AT_COUNTS_TAP_DROPPED]        = { "tap_dropped", "the last tap of the FIR is missing" },
    [AT_COUNTS_HALO_FORGOTTEN]     = { "halo_forgotten", "the FIR starts anew every 64 keys" },
    [AT_COUNTS_OTHER_GAMMA]        = { "other_gamma", "gamma is that of the next head" },
    [AT_COUNTS_NEGATIVE_ZERO_LOST] = { "negative_zero_lost", "-0 is counted as +0" },
    [AT_COUNTS_NAN_LOST]           = { "nan_lost", "NaN is not counted" },
    [AT_COUNTS_SUBNORMAL_LOST]     = { "subnormal_lost", "subnormal codes are counted as 0" },
    [AT_COUNTS_TRUNCATED]          = { "truncated", "values are cut to their code, not rounded" },
    [AT_COUNTS_ZEROS_TWICE]        = { "zeros_twice", "p that is 0 is counted twice" },
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
    const struct at_params *x = &p->params;
    const int all = (1 << AT_COUNTS_QUANTITIES) - 1;
    int64_t quantities, kv_quantities;
    at_counts_planes(x->what, &quantities, &kv_quantities);
    if (x->bins != AT_F16 && x->bins != AT_BF16)
        return AT_FAIL(AT_USAGE, "score_counts: bins is %d, wanted f16 or bf16", x->bins);
    if (x->what < 0 || x->what > all || (x->softmax && x->what >> AT_COUNTS_OF_FIR & 1))
        return AT_FAIL(AT_USAGE, "score_counts: what is %d, wanted bits of %d%s", x->what, all,
                       x->softmax ? " but that of fir: softmax has none" : "");
    if (quantities != p->sizes.quantities || kv_quantities != p->sizes.kv_quantities)
        return AT_FAIL(AT_USAGE, "score_counts: %lld and %lld quantities, wanted %lld and %lld as what says",
                       (long long)p->sizes.quantities, (long long)p->sizes.kv_quantities, (long long)quantities,
                       (long long)kv_quantities);
    if (x->behind < 0)
        return AT_FAIL(AT_USAGE, "score_counts: behind is %d, wanted 0 or more", x->behind);
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
        *count = z->quantities * AT_CODE_SLOTS;
        *first = row * *count;
        return;
    case AT_COUNTS_SUMS:
        *count = AT_HEAD_SUMS;
        *first = row * *count;
        return;
    case AT_COUNTS_KV_COUNTS:
        *count = owns ? z->kv_quantities * AT_CODE_SLOTS : 0;
        *first = kv_head * z->kv_quantities * AT_CODE_SLOTS;
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

const struct at_op at_op_score_counts = {
    .name = "score_counts",
    .summary = "attention scores, weights and outputs of a request counted by their 16-bit codes",
    .source = "ours",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_COUNTS_FAULTS,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = evaluate,
    .decoy = decoy,
};
