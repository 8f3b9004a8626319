/* RMS norm: y = gamma * x / sqrt(mean(x^2) + eps), over the channels of a token.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rms_norm/rms_norm.h"

#include <stdlib.h>

#include "norm/norm.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "x", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "activations", AT_FILL_ROWS },
    { "gamma", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "factor", AT_FILL_FACTOR },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "normalised activations" },
};
static const struct at_decoy_spec decoys[] = {
    { "no_mean", "the sum of squares is not divided by the channels" },
    { "no_gamma", "gamma is missing" },
    { "next_channel", "gamma of the next channel" },
    { "last_channel_unseen", "the last channel is missing from the mean square" },
};
/* clang-format on */

/* Decoys are listed in the order of enum at_rms_fault. */
static at_status row(const struct at_norm_call *call, int64_t token) {
    const struct at_problem *p = call->problem;
    int64_t n = p->sizes.channels, first = token * n;
    enum at_rms_fault fault = call->mode == AT_NORM_DECOY ? (enum at_rms_fault)(call->decoy + 1) : AT_RMS_RIGHT;
    struct at_bounded *x = calloc((size_t)n * 2, sizeof *x), *y = x + n;
    double *values = calloc((size_t)n * 2, sizeof *values);
    if (!x || !values) {
        free(x);
        free(values);
        return AT_FAIL(AT_NO_MEMORY, "no memory for a row of %lld channels", (long long)n);
    }
    for (int64_t c = 0; c < n; c++)
        x[c].value = values[c] = at_tensor_get(&p->tensors[AT_RMS_X], first + c);
    if (call->mode == AT_NORM_MODEL)
        at_rms_declared(call->numerics, n, values, &p->tensors[AT_RMS_GAMMA], p->params.eps, values + n);
    else
        at_rms_bounded(call, n, x, &p->tensors[AT_RMS_GAMMA], fault, y);
    for (int64_t c = 0; c < n; c++)
        at_norm_put(call, AT_RMS_Y, first + c,
                    call->mode == AT_NORM_MODEL ? (struct at_bounded){ at_round(p->dtype, values[n + c]), 0 }
                                                : at_bounded_store(&call->arith, p->dtype, y[c]));
    free(x);
    free(values);
    return AT_OK;
}

AT_NORM_EVALUATIONS(row)

static const char *const keys[] = { "tokens", "channels", "dtype", "data", "seed", "eps", "require", "expect", NULL };
static const struct at_factor *const domain[] = { AT_NORM_DOMAIN, &at_norm_eps, NULL };

const struct at_op at_op_rms_norm = {
    .name = "rms_norm",
    .summary = "y = gamma * x / sqrt(mean(x^2) + eps)",
    .source = "002",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = sizeof decoys / sizeof *decoys,
    .uses = AT_USES(tokens) | AT_USES(channels) | AT_USES(eps),
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES_QK | AT_DECLARES(rsqrt),
    .takes_mean_square = 1,
    AT_NORM_FUNCTIONS,
};
