/* The softmax attention descriptor: tensors, decoys, and which elements belong to a row.
 * SPDX-License-Identifier: Apache-2.0 */
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

static const char *const keys[] = { AT_ATTN_KEYS, "capacity", "pool", "deal", AT_ATTN_LAST_KEYS };
static const struct at_factor *const domain[] = { AT_ATTN_DOMAIN, NULL };

const struct at_op at_op_softmax_attention = {
    .name = "softmax_attention",
    .summary = "o = softmax(scale q k^T) v with its log-sum-exp; causal, ragged, grouped heads, paged",
    .source = "002, 003, 004; the textbook definition",
    .tensors = tensors,
    .n_tensors = AT_SOFTMAX_TENSORS,
    .decoys = decoys,
    .n_decoys = AT_SOFTMAX_DECOYS,
    .weights = AT_WEIGHTS_SOFTMAX,
    .uses = AT_ATTN_USES,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES_QK | AT_DECLARES(scale_on) | AT_DECLARES(p) | AT_DECLARES(exp) | AT_DECLARES(exp_arg) |
                AT_DECLARES(ex2_poly3) | AT_DECLARES(l_lanes) | AT_DECLARES(l_run) | AT_DECLARES(l_tree) |
                AT_DECLARES(divide) | AT_DECLARES(lse) | AT_DECLARES(block) | AT_DECLARES(rescale) |
                AT_DECLARES(pv_unit) | AT_DECLARES(pv_chunk) | AT_DECLARES(split) | AT_DECLARES(splits) |
                AT_DECLARES(pv_zero),
    .has_trace = 1,
    .flops = at_attn_flops,
    AT_ATTN_FUNCTIONS,
    .check = at_attn_check,
    .rows = at_attn_rows,
    .row_span = row_span,
    .row_work = at_attn_row_work,
    .evaluate = at_softmax_evaluate,
    .model = at_softmax_model,
    .decoy = at_softmax_decoy,
    .roundings = roundings,
};
