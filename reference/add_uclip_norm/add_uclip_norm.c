/* Residual add and UClip norm: res' = round(x + res); y = UClip(res'), from the rounded sum (from=rounded) or from
 * the sum before it is rounded (from=exact).
 * SPDX-License-Identifier: Apache-2.0 */
#include "add_uclip_norm/add_uclip_norm.h"

#include "norm/norm.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "x", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "activations", AT_FILL_ROWS },
    { "res", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "residual stream", AT_FILL_RESIDUAL },
    { "alpha", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "slope before the clamp", AT_FILL_SLOPE },
    { "gamma", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "factor after the clamp", AT_FILL_FACTOR },
    { "beta", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "added last", AT_FILL_SHIFT },
    { "res_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "new residual stream" },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "normalised sum" },
};
static const struct at_decoy_spec decoys[] = {
    { "unclamped", "the clamp is missing" },
    { "no_alpha", "alpha is missing" },
    { "no_gamma", "gamma is missing" },
    { "next_channel", "parameters of the next channel" },
    { "residual_dropped", "the residual is not added" },
};
/* clang-format on */

/* The first decoys are listed in the order of enum at_uclip_fault. */
enum { RESIDUAL_DROPPED = 4 };

static void element(const struct at_norm_call *call, const struct at_uclip *uclip, int64_t c, int64_t i) {
    const struct at_problem *p = call->problem;
    const struct at_norm_arith *arith = &call->arith;
    int wrong = call->mode == AT_NORM_DECOY, exact = p->params.from == AT_FROM_EXACT;
    enum at_uclip_fault fault =
        wrong && call->decoy < RESIDUAL_DROPPED ? (enum at_uclip_fault)(call->decoy + 1) : AT_UCLIP_RIGHT;
    struct at_bounded x = { at_tensor_get(&p->tensors[AT_ADD_UCLIP_X], i), 0 };
    struct at_bounded res = { at_tensor_get(&p->tensors[AT_ADD_UCLIP_RES], i), 0 };
    if (call->mode == AT_NORM_MODEL) {
        double s = at_add_declared(call->numerics, x.value, res.value), rounded = at_round(p->dtype, s);
        double y = at_uclip_declared(uclip, call->numerics, c, exact ? s : rounded);
        at_norm_put(call, AT_ADD_UCLIP_RES_OUT, i, (struct at_bounded){ rounded, 0 });
        at_norm_put(call, AT_ADD_UCLIP_Y, i, (struct at_bounded){ at_round(p->dtype, y), 0 });
        return;
    }
    if (wrong && call->decoy == RESIDUAL_DROPPED)
        res.value = 0;
    struct at_residual sum = at_bounded_residual(arith, p->dtype, p->params.from, x, res);
    struct at_bounded y = at_uclip_bounded(uclip, arith, c, sum.used, fault);
    at_norm_put(call, AT_ADD_UCLIP_RES_OUT, i, sum.stored);
    at_norm_put(call, AT_ADD_UCLIP_Y, i, at_bounded_store(arith, p->dtype, y));
}

static at_status row(const struct at_norm_call *call, int64_t token) {
    const struct at_problem *p = call->problem;
    const struct at_tensor *t = p->tensors;
    struct at_uclip uclip = { &t[AT_ADD_UCLIP_ALPHA], &t[AT_ADD_UCLIP_GAMMA], &t[AT_ADD_UCLIP_BETA], p->params.lo,
                              p->params.hi };
    for (int64_t c = 0; c < p->sizes.channels; c++)
        element(call, &uclip, c, token * p->sizes.channels + c);
    return AT_OK;
}

AT_NORM_EVALUATIONS(row)

static const char *const keys[] = { "tokens", "channels", "dtype",   "data",   "seed", "lo",
                                    "hi",     "from",     "require", "expect", NULL };
static const struct at_factor *const domain[] = { AT_NORM_DOMAIN, &at_norm_ends, &at_norm_from, NULL };

const struct at_op at_op_add_uclip_norm = {
    .name = "add_uclip_norm",
    .summary = "res' = round(x + res); y = UClip(res')",
    .source = "000 §6.1",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = sizeof decoys / sizeof *decoys,
    .uses = AT_USES(tokens) | AT_USES(channels) | AT_USES(lo) | AT_USES(hi) | AT_USES(from),
    .keys = keys,
    .domain = domain,
    .declares = AT_UCLIP_DECLARES,
    AT_NORM_FUNCTIONS,
};
