/* 2^x by ex2.approx.f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: ex2.approx.f32, within two units in the last place of the correctly rounded result; subnormal results
 * are kept.
 * Launch: a thread an element, blocks of 256; no shared memory.
 * Limits: none.
 * Source: ours. */
#include "kernels/exp2/ex2.h"

AT_KERNEL(exp2, 01_ex2_approx) = {
    .summary = "y = 2^x, ex2.approx.f32",
    .source = "ours",
    .numerics = AT_EX2_NUMERICS(AT_EXP_EX2_APPROX),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = at_ex2_launch<at_ex2_approx>,
};
