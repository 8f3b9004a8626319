/* AsyncT attention as the verifier sees it: tensors, decoys, and what makes a problem valid.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "asynct_attention/asynct_attention.h"

static const struct at_tensor_spec tensors[AT_ASYNCT_TENSORS] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "queries", AT_FILL_QUERIES },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "keys", AT_FILL_KEYS },
    { "v", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "values", AT_FILL_VALUES },
    { "query_start",
      AT_IN,
      AT_FORMAT_I32,
      { AT_DIM_b_plus_1 },
      "first query token of each request",
      AT_FILL_QUERY_START },
    { "seq_lens", AT_IN, AT_FORMAT_I32, { AT_DIM_b }, "keys of each request", AT_FILL_SEQ_LENS },
    { "key_start",
      AT_IN,
      AT_FORMAT_I32,
      { AT_DIM_b_plus_1 },
      "contiguous: first slot of each request",
      AT_FILL_KEY_START },
    { "block_table",
      AT_IN,
      AT_FORMAT_I32,
      { AT_DIM_b, AT_DIM_max_pages },
      "paged: pages of each request",
      AT_FILL_BLOCK_TABLE },
    { "sigma", AT_IN, AT_FORMAT_F32, { AT_DIM_h }, "weight of the pooled scores", AT_FILL_SIGMA },
    { "taps",
      AT_IN,
      AT_FORMAT_F32,
      { AT_DIM_h, AT_DIM_taps },
      "FIR taps; pooled: those of sigma, rounded",
      AT_FILL_TAPS },
    { "gamma", AT_IN, AT_FORMAT_F32, { AT_DIM_h }, "factor of the gate", AT_FILL_GAMMA },
    { "o", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "output" },
};

static const struct at_decoy_spec decoys[AT_ASYNCT_DECOYS] = {
    [AT_ASYNCT_LAST_KEY_DROPPED] = { "last_key_dropped", "the last visible key does not count" },
    [AT_ASYNCT_HIDDEN_KEY_ADDED] = { "hidden_key_added", "the first hidden key counts" },
    [AT_ASYNCT_NO_SCALE] = { "no_scale", "scores are not scaled" },
    [AT_ASYNCT_TAP_DROPPED] = { "tap_dropped", "the FIR's last tap is missing" },
    [AT_ASYNCT_FIR_SHIFTED] = { "fir_shifted", "the FIR's result belongs to the key before" },
    [AT_ASYNCT_GATE_UNCLAMPED] = { "gate_unclamped", "the gate has no ends" },
    [AT_ASYNCT_V_SWAPPED] = { "v_swapped", "neighbouring rows of V are exchanged" },
    [AT_ASYNCT_HALO_FORGOTTEN] = { "halo_forgotten", "the FIR's history restarts in each split of the keys" },
    [AT_ASYNCT_MASK_MISSING] = { "mask_missing", "every query sees every key" },
    [AT_ASYNCT_MASK_TOP_LEFT] = { "mask_top_left", "query i sees keys 0 to i: the causal mask begins at the first key, "
                                                   "where it should end at the last" },
};

static at_status check_flag(const char *name, int32_t value) {
    if (value == 0 || value == 1)
        return AT_OK;
    return AT_FAIL(AT_USAGE, "%s is %d, wanted 0 or 1", name, (int)value);
}

static at_status check_params(const struct at_problem *problem) {
    const struct at_params *p = &problem->params;
    AT_TRY(check_flag("relu_pre", p->relu_pre));
    AT_TRY(check_flag("edge", p->edge));
    AT_TRY(check_flag("fir_form", p->fir_form));
    if (p->fir_form == AT_FIR_TAPS && p->edge == AT_EDGE_SHRINK)
        return AT_FAIL(AT_USAGE, "edge=shrink with given taps, wanted fir_form=pooled: taps have no divisor");
    if (!isfinite(p->clip_min) || isnan(p->clip_max) || !(p->clip_min <= p->clip_max))
        return AT_FAIL(AT_USAGE, "gate is [%g, %g], wanted a finite lower end not above the upper", (double)p->clip_min,
                       (double)p->clip_max);
    if (problem->sizes.taps < 1 || problem->sizes.taps > AT_ASYNCT_MAX_TAPS)
        return AT_FAIL(AT_USAGE, "size taps is %lld, wanted 1 to %d", (long long)problem->sizes.taps,
                       AT_ASYNCT_MAX_TAPS);
    return AT_OK;
}

/* Present, of the table's shape, and finite. */
static at_status check_parameter(const struct at_problem *problem, int index) {
    const struct at_tensor *x = &problem->tensors[index];
    const char *name = tensors[index].name;
    int64_t want = problem->sizes.h * (index == AT_ASYNCT_TAPS ? problem->sizes.taps : 1);
    if (!x->data || x->format != AT_F32 || at_tensor_count(x) != want)
        return AT_FAIL(AT_USAGE, "tensor %s has %lld elements of %s, wanted %lld of f32", name,
                       x->data ? (long long)at_tensor_count(x) : 0LL, at_format_info(x->format)->name, (long long)want);
    for (int64_t i = 0; i < want; i++)
        if (!isfinite(at_tensor_get(x, i)))
            return AT_FAIL(AT_USAGE, "%s[%lld] is %g, wanted a finite number", name, (long long)i, at_tensor_get(x, i));
    return AT_OK;
}

/* With fir_form = pooled a kernel may read sigma or taps, so they must say the same: within 2 u of
 * 1 + |sigma|/K for the first tap and of |sigma|/K for the others, which any sane rounding keeps. */
static at_status check_pooled_taps(const struct at_problem *problem) {
    const int64_t taps = problem->sizes.taps;
    for (int64_t i = 0; i < problem->sizes.h * taps; i++) {
        double share = at_tensor_get(&problem->tensors[AT_ASYNCT_SIGMA], i / taps) / (double)taps;
        double first = i % taps == 0, got = at_tensor_get(&problem->tensors[AT_ASYNCT_TAPS], i);
        const struct at_format_info *f32 = at_format_info(AT_F32);
        double allowed = 2 * f32->u * (first + fabs(share)) + 2 * f32->eta;
        if (!(fabs(got - (first - share)) <= allowed))
            return AT_FAIL(AT_USAGE, "taps[%lld][%lld] is %.9g, wanted %.9g, the pooled tap of its sigma",
                           (long long)(i / taps), (long long)(i % taps), got, first - share);
    }
    return AT_OK;
}

static at_status check(const struct at_problem *problem) {
    AT_TRY(at_attn_check(problem));
    AT_TRY(check_params(problem));
    AT_TRY(check_parameter(problem, AT_ASYNCT_SIGMA));
    AT_TRY(check_parameter(problem, AT_ASYNCT_TAPS));
    AT_TRY(check_parameter(problem, AT_ASYNCT_GAMMA));
    if (problem->params.fir_form == AT_FIR_POOLED)
        AT_TRY(check_pooled_taps(problem));
    return AT_OK;
}

static void row_span(const struct at_problem *problem, int tensor, int64_t row, int64_t *first, int64_t *count) {
    *first = row * problem->sizes.d;
    *count = tensor == AT_ASYNCT_O ? problem->sizes.d : 0;
}

static const char *const keys[] = { AT_ATTN_KEYS, "capacity", "pool", "deal", AT_ATTN_GATE_KEYS, AT_ATTN_LAST_KEYS };
static const struct at_factor *const domain[] = { AT_ATTN_DOMAIN, AT_ATTN_GATE_DOMAIN, NULL };

static at_status roundings(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                           int64_t row1, struct at_roundings *out) {
    const struct at_params *params = &problem->params;
    double *gamma = calloc((size_t)problem->sizes.h + 1, sizeof *gamma);
    if (!gamma)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld heads", (long long)problem->sizes.h);
    for (int64_t h = 0; h < problem->sizes.h; h++)
        gamma[h] = at_tensor_get(&problem->tensors[AT_ASYNCT_GAMMA], h);
    const struct at_attn_weights weights = { .output = AT_ASYNCT_O,
                                             .factor = gamma,
                                             .factor_first = numerics->gamma_on == AT_GAMMA_ON_P,
                                             .has_ends = 1,
                                             .ends = { (double)params->clip_min, (double)params->clip_max } };
    at_status status = at_attn_roundings(problem, numerics, row0, row1, &weights, out);
    free(gamma);
    return status;
}

const struct at_op at_op_asynct_attention = {
    .name = "asynct_attention",
    .summary = "o = sum of gamma clamp(FIR(relu(scale q.k))) v: a gate without row maximum or row sum",
    .source = "000 §1.3, §3.2, §6.6, §7.4",
    .tensors = tensors,
    .n_tensors = AT_ASYNCT_TENSORS,
    .decoys = decoys,
    .n_decoys = AT_ASYNCT_DECOYS,
    .weights = AT_WEIGHTS_GATE,
    .uses = AT_ATTN_USES | AT_ATTN_GATE_USES,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES_QK | AT_DECLARES(scale_on) | AT_DECLARES(fir_order) | AT_DECLARES(fir_fma) |
                AT_DECLARES(p) | AT_DECLARES(gamma_on) | AT_DECLARES(clamp) | AT_DECLARES(pv_unit) |
                AT_DECLARES(pv_chunk) | AT_DECLARES(pv_spread) | AT_DECLARES(split) | AT_DECLARES(splits) |
                AT_DECLARES(pv_zero),
    .has_trace = 1,
    .flops = at_attn_flops,
    AT_ATTN_FUNCTIONS,
    .check = check,
    .rows = at_attn_rows,
    .row_span = row_span,
    .row_work = at_attn_row_work,
    .evaluate = at_asynct_evaluate,
    .model = at_asynct_model,
    .decoy = at_asynct_decoy,
    .roundings = roundings,
};
