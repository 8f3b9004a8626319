/* Residual add and RMS norm: res' = round(x + res); y = RMS(res'), from the rounded sum (from=rounded) or from the sum
 * before it is rounded (from=exact).
 * SPDX-License-Identifier: Apache-2.0 */
#include "add_rms_norm/add_rms_norm.h"

#include <stdlib.h>

#include "norm/norm.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "x", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "activations", AT_FILL_ROWS },
    { "res", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "residual stream", AT_FILL_RESIDUAL },
    { "gamma", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "factor", AT_FILL_FACTOR },
    { "res_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "new residual stream" },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "normalised sum" },
};
static const struct at_decoy_spec decoys[] = {
    { "no_mean", "the sum of squares is not divided by the channels" },
    { "no_gamma", "gamma is missing" },
    { "next_channel", "gamma of the next channel" },
    { "last_channel_unseen", "the last channel is missing from the mean square" },
    { "residual_dropped", "the residual is not added" },
};
/* clang-format on */

/* The first decoys are listed in the order of enum at_rms_fault. */
enum { RESIDUAL_DROPPED = 4 };

static void declared(const struct at_norm_call *call, int64_t first, int64_t n, double *from, double *y) {
    const struct at_problem *p = call->problem;
    for (int64_t c = 0; c < n; c++) {
        double x = at_tensor_get(&p->tensors[AT_ADD_RMS_X], first + c),
               res = at_tensor_get(&p->tensors[AT_ADD_RMS_RES], first + c);
        double s = at_add_declared(call->numerics, x, res), rounded = at_round(p->dtype, s);
        from[c] = p->params.from == AT_FROM_EXACT ? s : rounded;
        at_norm_put(call, AT_ADD_RMS_RES_OUT, first + c, (struct at_bounded){ rounded, 0 });
    }
    at_rms_declared(call->numerics, n, from, &p->tensors[AT_ADD_RMS_GAMMA], p->params.eps, y);
    for (int64_t c = 0; c < n; c++)
        at_norm_put(call, AT_ADD_RMS_Y, first + c, (struct at_bounded){ at_round(p->dtype, y[c]), 0 });
}

static void bounded(const struct at_norm_call *call, int64_t first, int64_t n, struct at_bounded *from,
                    struct at_bounded *y) {
    const struct at_problem *p = call->problem;
    const struct at_norm_arith *arith = &call->arith;
    int wrong = call->mode == AT_NORM_DECOY ? call->decoy : -1;
    for (int64_t c = 0; c < n; c++) {
        struct at_bounded x = { at_tensor_get(&p->tensors[AT_ADD_RMS_X], first + c), 0 };
        struct at_bounded res = { at_tensor_get(&p->tensors[AT_ADD_RMS_RES], first + c), 0 };
        if (wrong == RESIDUAL_DROPPED)
            res.value = 0;
        struct at_residual sum = at_bounded_residual(arith, p->dtype, p->params.from, x, res);
        from[c] = sum.used;
        at_norm_put(call, AT_ADD_RMS_RES_OUT, first + c, sum.stored);
    }
    enum at_rms_fault fault = wrong >= 0 && wrong < RESIDUAL_DROPPED ? (enum at_rms_fault)(wrong + 1) : AT_RMS_RIGHT;
    at_rms_bounded(call, n, from, &p->tensors[AT_ADD_RMS_GAMMA], fault, y);
    for (int64_t c = 0; c < n; c++)
        at_norm_put(call, AT_ADD_RMS_Y, first + c, at_bounded_store(arith, p->dtype, y[c]));
}

static at_status row(const struct at_norm_call *call, int64_t token) {
    int64_t n = call->problem->sizes.channels, first = token * n;
    struct at_bounded *pairs = calloc((size_t)n * 2, sizeof *pairs);
    double *values = calloc((size_t)n * 2, sizeof *values);
    at_status status = AT_OK;
    if (!pairs || !values)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a row of %lld channels", (long long)n);
    if (call->mode == AT_NORM_MODEL)
        declared(call, first, n, values, values + n);
    else
        bounded(call, first, n, pairs, pairs + n);
out:
    free(pairs);
    free(values);
    return status;
}

AT_NORM_EVALUATIONS(row)

static const char *const keys[] = { "tokens", "channels", "dtype",   "data",   "seed",
                                    "eps",    "from",     "require", "expect", NULL };
static const struct at_factor *const domain[] = { AT_NORM_DOMAIN, &at_norm_eps, &at_norm_from, NULL };

const struct at_op at_op_add_rms_norm = {
    .name = "add_rms_norm",
    .summary = "res' = round(x + res); y = RMS(res')",
    .source = "002",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = sizeof decoys / sizeof *decoys,
    .uses = AT_USES(tokens) | AT_USES(channels) | AT_USES(eps) | AT_USES(from),
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES_QK | AT_DECLARES(rsqrt),
    .takes_mean_square = 1,
    AT_NORM_FUNCTIONS,
};
