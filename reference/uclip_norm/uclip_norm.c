/* UClip norm: y = gamma * clamp(alpha * x, lo, hi) + beta, elementwise; no reduction over the row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "uclip_norm/uclip_norm.h"

#include "norm/norm.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "x", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "activations", AT_FILL_ROWS },
    { "alpha", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "slope before the clamp", AT_FILL_SLOPE },
    { "gamma", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "factor after the clamp", AT_FILL_FACTOR },
    { "beta", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "added last", AT_FILL_SHIFT },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "normalised activations" },
};
static const struct at_decoy_spec decoys[] = {
    { "unclamped", "the clamp is missing" },
    { "no_alpha", "alpha is missing" },
    { "no_gamma", "gamma is missing" },
    { "next_channel", "parameters of the next channel" },
};
/* clang-format on */

/* Decoys are listed in the order of enum at_uclip_fault. */
static at_status row(const struct at_norm_call *call, int64_t token) {
    const struct at_problem *p = call->problem;
    const struct at_tensor *t = p->tensors;
    struct at_uclip uclip = { &t[AT_UCLIP_ALPHA], &t[AT_UCLIP_GAMMA], &t[AT_UCLIP_BETA], p->params.lo, p->params.hi };
    enum at_uclip_fault fault = call->mode == AT_NORM_DECOY ? (enum at_uclip_fault)(call->decoy + 1) : AT_UCLIP_RIGHT;
    for (int64_t c = 0; c < p->sizes.channels; c++) {
        int64_t i = token * p->sizes.channels + c;
        struct at_bounded x = { at_tensor_get(&t[AT_UCLIP_X], i), 0 }, y;
        if (call->mode == AT_NORM_MODEL)
            y = (struct at_bounded){ at_round(p->dtype, at_uclip_declared(&uclip, call->numerics, c, x.value)), 0 };
        else
            y = at_bounded_store(&call->arith, p->dtype, at_uclip_bounded(&uclip, &call->arith, c, x, fault));
        at_norm_put(call, AT_UCLIP_Y, i, y);
    }
    return AT_OK;
}

AT_NORM_EVALUATIONS(row)

static const char *const keys[] = {
    "tokens", "channels", "dtype", "data", "seed", "lo", "hi", "require", "expect", NULL
};
static const struct at_factor *const domain[] = { AT_NORM_DOMAIN, &at_norm_ends, NULL };

const struct at_op at_op_uclip_norm = {
    .name = "uclip_norm",
    .summary = "y = gamma * clamp(alpha * x, lo, hi) + beta",
    .source = "000 §6.1",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = sizeof decoys / sizeof *decoys,
    .uses = AT_USES(tokens) | AT_USES(channels) | AT_USES(lo) | AT_USES(hi),
    .keys = keys,
    .domain = domain,
    .declares = AT_UCLIP_DECLARES,
    AT_NORM_FUNCTIONS,
};
