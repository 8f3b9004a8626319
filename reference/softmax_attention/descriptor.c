/* The softmax attention descriptor: tensors, decoys, and which elements belong to a row.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "softmax_attention/softmax_attention.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    [AT_ATTN_Q]           = { "q",           AT_IN,  AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h,  AT_DIM_d }, "queries", AT_FILL_QUERIES },
    [AT_ATTN_K]           = { "k",           AT_IN,  AT_FORMAT_DTYPE, { AT_DIM_slots,  AT_DIM_hk, AT_DIM_d }, "keys", AT_FILL_KEYS },
    [AT_ATTN_V]           = { "v",           AT_IN,  AT_FORMAT_DTYPE, { AT_DIM_slots,  AT_DIM_hk, AT_DIM_d }, "values", AT_FILL_VALUES },
    [AT_ATTN_QUERY_START] = { "query_start", AT_IN,  AT_FORMAT_I32,   { AT_DIM_b_plus_1 }, "first query token of each request", AT_FILL_QUERY_START },
    [AT_ATTN_SEQ_LENS]    = { "seq_lens",    AT_IN,  AT_FORMAT_I32,   { AT_DIM_b }, "keys of each request", AT_FILL_SEQ_LENS },
    [AT_ATTN_KEY_START]   = { "key_start",   AT_IN,  AT_FORMAT_I32,   { AT_DIM_b_plus_1 }, "first slot of each request; contiguous layout", AT_FILL_KEY_START },
    [AT_ATTN_BLOCK_TABLE] = { "block_table", AT_IN,  AT_FORMAT_I32,   { AT_DIM_b, AT_DIM_max_pages }, "page numbers of each request, -1 unmapped; paged layout", AT_FILL_BLOCK_TABLE },
    [AT_SOFTMAX_O]        = { "o",           AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h,  AT_DIM_d }, "sum of softmax(scale q.k) v" },
    [AT_SOFTMAX_SLOPES]   = { "slopes",      AT_IN,  AT_FORMAT_F32,   { AT_DIM_h }, "of ALiBi's biases; absent when alibi is 0", AT_FILL_ALIBI },
    [AT_SOFTMAX_LSE]      = { "lse",         AT_OUT, AT_FORMAT_F32,   { AT_DIM_tokens, AT_DIM_h }, "log of the sum of exp(scale q.k), natural" },
};

static const struct at_decoy_spec decoys[] = {
    [AT_SOFTMAX_LAST_KEY_DROPPED]       = { "last_key_dropped",       "the last visible key is left out" },
    [AT_SOFTMAX_HIDDEN_KEY_ADDED]       = { "hidden_key_added",       "the first masked key is counted" },
    [AT_SOFTMAX_NO_SCALE]               = { "no_scale",               "scores are not scaled" },
    [AT_SOFTMAX_V_SWAPPED]              = { "v_swapped",              "V rows of each pair of neighbouring keys change places" },
    [AT_SOFTMAX_LSE_BASE_2]             = { "lse_base_2",             "lse is a logarithm to base 2" },
    [AT_SOFTMAX_SPLIT_MERGE_UNWEIGHTED] = { "split_merge_unweighted", "partial results are added without the weights exp(m_j - m)" },
    [AT_SOFTMAX_ONE_KEY_SUM_MISSING]    = { "one_key_sum_missing",    "the denominator lacks the last visible key" },
    [AT_SOFTMAX_BASE_2]                 = { "base_2",                 "weights are powers of 2, not of e" },
    [AT_SOFTMAX_RESCALE_MISSING]        = { "rescale_missing",        "sums are not rescaled when the maximum rises" },
    [AT_SOFTMAX_STALE_MAXIMUM]          = { "stale_maximum",          "weights are beside the maximum of the blocks before" },
    [AT_SOFTMAX_CAP_IGNORED]            = { "cap_ignored",            "scores are not capped" },
    [AT_SOFTMAX_CAP_BEFORE_SCALE]       = { "cap_before_scale",       "q.k is capped, then scaled" },
    [AT_SOFTMAX_NEXT_HEAD_BIAS]         = { "next_head_bias",         "the bias has the slope of the next head" },
    [AT_SOFTMAX_BIAS_SIGN]              = { "bias_sign",              "the bias has the other sign" },
    [AT_SOFTMAX_BIAS_OF_KEY]            = { "bias_of_key",            "the bias is of the key's place alone" },
    [AT_SOFTMAX_BIAS_BEFORE_CAP]        = { "bias_before_cap",        "the bias is added before the cap" },
    [AT_SOFTMAX_MASK_MISSING]           = { "mask_missing",           "every query sees every key" },
    [AT_SOFTMAX_MASK_TOP_LEFT]          = { "mask_top_left",          "query i sees keys 0 to i: the causal mask begins at the first key, where it should end at the last" },
};

#define PLACE(member) AT_OWN_PLACE(at_softmax_own, member)
static const struct at_scalar own[] = {
    { .name = "softcap", .type = AT_SCALAR_FLOAT, .place = PLACE(softcap), .key = "softcap", .least = 0, .most = (double)AT_SOFTCAP_MAX, .announced = 1,
      .meaning = "scores become cap tanh(score / cap); 0: they stay" },
    { .name = "alibi", .type = AT_SCALAR_FLOAT, .place = PLACE(alibi), .key = "alibi", .least = 0, .most = (double)AT_ALIBI_MAX, .announced = 1,
      .meaning = "slope (key - query) is added to scores, slopes by head as ALiBi has them times this; 0: nothing" },
};
/* clang-format on */

/* One o vector and one lse a row. */
static void row_span(const struct at_problem *problem, int tensor, int64_t row, int64_t *first, int64_t *count) {
    *count = tensor == AT_SOFTMAX_O ? problem->sizes.d : tensor == AT_SOFTMAX_LSE ? 1 : 0;
    *first = row * *count;
}

static at_status roundings(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                           int64_t row1, struct at_roundings *out) {
    /* The one key of a row has weight 1 before and after division. */
    const struct at_attn_weights weights = { .output = AT_SOFTMAX_O, .has_ends = 1, .ends = { 0, 1 } };
    return at_attn_roundings(problem, numerics, row0, row1, &weights, out);
}

static const char *const keys[] = { AT_ATTN_KEYS, "softcap", "alibi", "capacity", "pool", "deal", AT_ATTN_LAST_KEYS };

/* A cap of 0.5 bends every score, one of 50 few (Gemma 2 has 50, its logits 30). Slopes of 8 make all but the nearest keys 0. */
static const struct at_factor softcap = {
    .name = "softcap",
    .meaning = "cap of the scores, below them, about them, above them",
    .classes = AT_CLASSES("", "softcap=2", "softcap=50"),
    .far = AT_CLASSES("softcap=0.01", "softcap=100000"),
    .any = "softcap=0.5,7,30",
};
static const struct at_factor alibi = {
    .name = "alibi",
    .meaning = "biases by distance",
    .classes = AT_CLASSES("", "alibi=1", "alibi=0.3"),
    .far = AT_CLASSES("alibi=8"),
    .any = "alibi=0.01,0.5,2",
};
static const struct at_factor *const domain[] = { AT_ATTN_DOMAIN, &softcap, &alibi, NULL };

static const char *beyond_scale(const struct at_problem *problem) {
    const struct at_softmax_own z = at_softmax_own_of(problem);
    return z.softcap > 0 ? "scores have a softcap" : z.alibi > 0 ? "scores have biases (alibi)" : NULL;
}

static uint64_t declares_on(const struct at_problem *problem) {
    const struct at_softmax_own z = at_softmax_own_of(problem);
    const uint64_t bias = AT_DECLARES(fir_fma), cap = AT_DECLARES(tanh);
    return ~(z.softcap > 0 ? 0 : cap) & ~(z.alibi > 0 ? 0 : bias);
}

/* Attention's own checks, and what scores are made with. */
static at_status check(const struct at_problem *problem) {
    const struct at_softmax_own z = at_softmax_own_of(problem);
    const struct at_tensor *slopes = &problem->tensors[AT_SOFTMAX_SLOPES];
    AT_TRY(at_attn_check(problem));
    if (z.softcap != 0 && !(z.softcap >= AT_SOFTCAP_LEAST && z.softcap <= AT_SOFTCAP_MAX))
        return AT_FAIL(AT_USAGE, "softcap is %g, wanted 0 or a number from %g to %g", (double)z.softcap,
                       (double)AT_SOFTCAP_LEAST, (double)AT_SOFTCAP_MAX);
    if (!(z.alibi >= 0 && z.alibi <= AT_ALIBI_MAX))
        return AT_FAIL(AT_USAGE, "alibi is %g, wanted a number from 0 to %g", (double)z.alibi, (double)AT_ALIBI_MAX);
    const int64_t wanted = z.alibi > 0 ? problem->sizes.h : 0, found = at_tensor_count(slopes);
    if (found != wanted || (found > 0 && (slopes->format != AT_F32 || !slopes->data)))
        return AT_FAIL(AT_USAGE, "slopes has %lld elements of %s, wanted %lld of f32", (long long)found,
                       at_format_info(slopes->format)->name, (long long)wanted);
    for (int64_t i = 0; i < found; i++)
        if (!isfinite(at_tensor_get(slopes, i)))
            return AT_FAIL(AT_USAGE, "slopes[%lld] is %g, wanted a finite number", (long long)i,
                           at_tensor_get(slopes, i));
    return AT_OK;
}

const struct at_op at_op_softmax_attention = {
    .name = "softmax_attention",
    .summary = "o = softmax(scale q k^T) v with its log-sum-exp; causal, ragged, grouped heads, paged; softcap, ALiBi",
    .source = "002, 003, 004; the textbook definition",
    .tensors = tensors,
    .n_tensors = AT_SOFTMAX_TENSORS,
    .decoys = decoys,
    .n_decoys = AT_SOFTMAX_DECOYS,
    .weights = AT_WEIGHTS_SOFTMAX,
    .uses = AT_ATTN_USES,
    .own = own,
    .n_own = sizeof own / sizeof own[0],
    .keys = keys,
    .beyond_scale = beyond_scale,
    .declares_on = declares_on,
    .domain = domain,
    .declares = AT_DECLARES_QK | AT_DECLARES(scale_on) | AT_DECLARES(p) | AT_DECLARES(exp) | AT_DECLARES(exp_arg) |
                AT_DECLARES(tanh) | AT_DECLARES(fir_fma) | AT_DECLARES(ex2_poly3) | AT_DECLARES(l_lanes) |
                AT_DECLARES(l_run) | AT_DECLARES(l_tree) | AT_DECLARES(divide) | AT_DECLARES(lse) | AT_DECLARES(block) |
                AT_DECLARES(rescale) | AT_DECLARES(pv_unit) | AT_DECLARES(pv_chunk) | AT_DECLARES(split) |
                AT_DECLARES(splits) | AT_DECLARES(pv_zero),
    .has_trace = 1,
    .flops = at_attn_flops,
    AT_ATTN_FUNCTIONS,
    .check = check,
    .rows = at_attn_rows,
    .row_span = row_span,
    .row_work = at_attn_row_work,
    .evaluate = at_softmax_evaluate,
    .model = at_softmax_model,
    .decoy = at_softmax_decoy,
    .roundings = roundings,
};
