/* What the numerics of a variant mean for AsyncT: formats between the stages; for the files of this folder.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ASYNCT_DECLARED_H
#define AT_ASYNCT_DECLARED_H

#include "attest/problem.h"
#include "attest/numerics.h"

struct at_asynct_formats {
    enum at_format q;    /* of the operands scaled from q; dtype when q is not scaled */
    enum at_format step; /* of everything from the finished score to P: f64 when both units are f64, else f32 */
    enum at_format sum;  /* of partial results and their sum: f64 when pv_unit is, else f32 */
};

/* AT_USAGE from at_numerics_check(); AT_UNSUPPORTED when a unit's operands cannot be what the problem and the
 * numerics make them: tensor cores and f16_fma multiply two values of one 16-bit format, tc_f16 and
 * f16_fma only f16, f32 units nothing wider than f32; the pooled order has no taps; a scale on the taps stands behind a
 * ReLU, where it must not be negative. */
at_status at_asynct_declared(const struct at_problem *problem, const struct at_numerics *numerics,
                             struct at_asynct_formats *out);

/* Keys of a group of steps of P*V whose keys are not in order; 0: all are. */
int64_t at_asynct_spread(const struct at_problem *problem, const struct at_numerics *numerics);

/* 1 when x * y is exact for every y, underflow and overflow apart: x is 0 or a power of two. */
int at_asynct_exact_factor(double x);

#endif
