/* How far a kernel with declared arithmetic can be from the exact product.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A hat marks what the kernel has. x = sum a b, S = sum |a b|; u, eta: roundoff and underflow of a format.
 *
 * Partial sum j of `length` products, S_j: |P^_j - P_j| <= e S_j + eta_s, with e and eta_s of the declared unit and
 *   order (tensor_core/accumulate_error.c), so sum |P^_j| <= size = (1 + e) S + J eta_s. It starts from 0 and adds
 *   terms of no more than size, so that no accumulator reaches infinity where size is below the end of its range.
 * Join. J - 1 additions to nearest, in order: an error of at most (J - 1) u sum |P^_j| (Jeannerod and Rump 2013), and
 *   none where they underflow. So |x^ - x| <= e S + J eta_s + (J - 1) u size =: E.
 * Scale. |s| E + u |s| (|x| + E) + eta; u is 0 for a power of two, both are 0 for 1.
 * Output. E + u_out (|d| + E) + eta_out, nothing where its format holds the sum's. That bound also holds where the sum
 *   rounds to the largest finite number of the output; infinities there are for the comparison to decide, which knows
 *   the format.
 *
 * Range: where size can reach the end of the accumulator's range, or what is scaled that of f32, there is no limit
 * (class RANGE): +inf. Where inputs are not finite, NaN and infinities are those of the exact sum as long as the finite
 * terms stay inside the range in the same sense: limit 0; but a guard of f16 sums makes numbers of them, and then
 * nothing is promised.
 *
 * The reference's own error, v = 2^-53: k products and k - 1 additions and the scale, (k + 2) v |s| S; products of two
 * f32 are exact in double, and underflow (f32 squared) is below 2^-298. */
#include <math.h>

#include "gemm/gemm.h"

static const double v = 0x1p-53;

static double end_of_range(enum at_format format) {
    const struct at_format_info *info = at_format_info(format);
    return format == AT_F64 ? (double)INFINITY : info->max + ldexp(1.0, info->emax - info->precision);
}

static int is_power_of_two(double x) {
    int exponent;
    return fabs(frexp(x, &exponent)) == 0.5;
}

/* One rounding of x, which is off by `error`, to a format. */
static double rounded(enum at_format format, double x, double error, int exact) {
    const struct at_format_info *f = at_format_info(format);
    return error + (exact ? 0 : f->u * (fabs(x) + error)) + (format == AT_F64 ? 0x1p-1074 : f->eta);
}

/* E; +inf out of range. */
static double sum_error(const struct at_gemm_declared *d, double size, double largest) {
    const struct at_sum_error e = at_accumulate_error_within(&d->order, d->length, largest);
    const double parts = (double)d->parts, most = (1 + e.e) * size + parts * e.eta;
    const double joined = (parts - 1) * at_format_info(d->wide)->u;
    const int in_range =
        most * (1 + joined) < end_of_range(at_unit_format(d->order.unit)); /* the join has as much at least */
    return in_range ? e.e * size + parts * e.eta + joined * most : (double)INFINITY;
}

double at_gemm_limit(const struct at_problem *p, const struct at_gemm_declared *declared,
                     const struct at_gemm_element *element, double largest) {
    const double value = isfinite(element->value) ? element->value : 0;
    const double scale = (double)p->params.scale,
                 own = ((double)at_gemm_own_of(p).k + 2) * v * fabs(scale) * element->size;
    const enum at_format out = (enum at_format)at_gemm_own_of(p).out;
    double error = 0;
    if (declared) {
        error = sum_error(declared, element->size, largest) * fabs(scale);
        if (fabs(scale) > 0 && scale != 1)
            error = rounded(declared->wide, value, error, is_power_of_two(scale));
        if (!(fabs(scale) * element->size + error < end_of_range(declared->wide)))
            error = INFINITY;
    }
    if (!isfinite(element->value))
        return isfinite(error) && !(declared && declared->order.guard != AT_GUARD_NONE) ? 0 : (double)INFINITY;
    if (declared && out != declared->wide && isfinite(error))
        error = rounded(out, value, error, 0);
    return isfinite(error) ? (error + own) * (1 + 0x1p-30) : (double)INFINITY;
}
