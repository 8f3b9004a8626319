/* 2^x by the C library.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: exp2f of the host's C library, within one unit in the last place; subnormal results are kept.
 * Launch: one thread; no scratch.
 * Limits: none.
 * Source: ours. */
#include "attest/kernel.h"
#include "exp2/exp2.h"

#include <math.h>

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const float *x = p->tensors[AT_EXP2_X].data;
    float *y = p->tensors[AT_EXP2_Y].data;
    for (int64_t i = 0; i < at_exp2_own_of(p).n; i++)
        y[i] = exp2f(x[i]);
    return 0;
}

static const char *supports(const struct at_problem *problem) {
    (void)problem;
    return NULL;
}

AT_KERNEL(exp2, 00_libm) = {
    .summary = "y = 2^x, exp2f of the C library",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = supports,
    .launch = launch,
};
