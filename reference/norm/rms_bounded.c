/* The RMS step with the distance a kernel may have from it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Derivation. S: e times the sum of squares for the declared order (tensor_core/accumulate_error.c), plus what errors
 * of x do to the squares. S / n and + eps are one step each; eps = 0 is added exactly. r: 1/sqrt falls, so m in [m -
 * dm, m + dm] moves it most at the lower end. Then what the declared rsqrt does to it, relative to 1/sqrt of its own
 * argument. Two roundings, sqrt and 1/, none of which can overflow or underflow: a rounding to nearest is off by at most
 * v = u / (1 + u) of the exact result (Jeannerod & Rump 2018), and (1 + v) / (1 - v) = 1 + 2u. The special-function unit:
 * its measured error (special/special.h); with ftz nothing is known of an m that may be subnormal, which counts as 0.
 * x * r and gamma * (x * r): one step each.
 *
 * Class. An infinite x with no NaN beside it gives m = inf and r = 0 in any order: the row is 0, and NaN (inf * 0)
 * where x is infinite. A NaN x, or a row of zeros with eps = 0, gives NaN. A sum of finite squares that can reach
 * infinity, or a mean that can reach 0, has no limit. */
#include "norm/norm.h"

#include <math.h>

#include "special/special.h"
#include "tensor_core/accumulate.h"

static const double REFERENCE_U = 0x1p-53, LEAST_NORMAL = 0x1p-126;

static struct at_bounded square_sum(const struct at_norm_call *call, int64_t n, int64_t seen,
                                    const struct at_bounded *x) {
    struct at_order order = at_order_qk(call->numerics);
    struct at_sum_error bound = { 0, 0 };
    struct at_bounded sum = { 0, 0 };
    double moved = 0;
    for (int64_t i = 0; i < seen; i++) {
        sum.value += x[i].value * x[i].value;
        moved += at_bounded_moved(x[i], x[i]);
    }
    if (!(moved < INFINITY)) {
        sum.error = INFINITY;
        return sum;
    }
    if (!isfinite(sum.value) || sum.value + moved == 0)
        return sum;
    if (!call->arith.own)
        bound = at_accumulate_error(&order, n);
    sum.error = moved + bound.e * at_norm_test_scales.u[AT_NORM_SUM] * (sum.value + moved) +
                bound.eta * at_norm_test_scales.eta[AT_NORM_SUM] + (double)n * REFERENCE_U * sum.value;
    if (!(sum.value + sum.error < call->arith.edge))
        sum.error = INFINITY;
    return sum;
}

/* How far the declared 1/sqrt(m) is from the exact one of the same m, relative to it. */
static double root_error(const struct at_norm_call *call) {
    const int by_unit = call->numerics->rsqrt != AT_RSQRT_LIBM && !call->arith.own;
    return (by_unit ? AT_SPECIAL_RSQRT_ERROR : 2 * call->arith.u) * at_norm_test_scales.u[AT_NORM_ROOT];
}

static struct at_bounded inverse_root(const struct at_norm_call *call, struct at_bounded m) {
    struct at_bounded r = { 1 / sqrt(m.value), 0 };
    if (!isfinite(m.value) || (m.value == 0 && m.error == 0))
        return (struct at_bounded){ r.value, m.error };
    const double least = m.value - m.error;
    const int flushes = call->numerics->rsqrt == AT_RSQRT_APPROX_FTZ && !call->arith.own;
    if (!(least > 0) || (flushes && !(least >= LEAST_NORMAL)))
        return (struct at_bounded){ r.value, INFINITY };
    double largest = 1 / sqrt(least);
    r.error = (largest - r.value) + root_error(call) * largest + 4 * REFERENCE_U * largest;
    return r;
}

void at_rms_bounded(const struct at_norm_call *call, int64_t n, const struct at_bounded *x,
                    const struct at_tensor *gamma, enum at_rms_fault fault, struct at_bounded *y) {
    const struct at_norm_arith *arith = &call->arith;
    double eps = call->problem->params.eps, divisor = fault == AT_RMS_NO_MEAN ? 1 : (double)n;
    struct at_bounded sum = square_sum(call, n, fault == AT_RMS_LAST_CHANNEL_UNSEEN ? n - 1 : n, x);
    struct at_bounded m = at_bounded_step(arith, AT_NORM_MEAN, sum.value / divisor, sum.error / divisor);
    if (eps > 0)
        m = at_bounded_step(arith, AT_NORM_EPS, m.value + eps, m.error);
    struct at_bounded r = inverse_root(call, m);
    for (int64_t i = 0; i < n; i++) {
        int64_t channel = fault == AT_RMS_NEXT_CHANNEL ? (i + 1) % n : i;
        struct at_bounded g = { fault == AT_RMS_NO_GAMMA ? 1 : at_tensor_get(gamma, channel), 0 };
        struct at_bounded scaled =
            at_bounded_step(arith, AT_NORM_SCALED, x[i].value * r.value, at_bounded_moved(x[i], r));
        y[i] = at_bounded_step(arith, AT_NORM_WEIGHT, g.value * scaled.value, at_bounded_moved(g, scaled));
    }
}
