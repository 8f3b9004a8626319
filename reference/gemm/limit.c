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
 * Scale. f^ is what the declared arithmetic makes of the factor f, which is known: an error of g = |f^ - f| beside it.
 *   |f^| E + g |x| + u |f^| (|x| + E) + eta; u is 0 for a power of two, both are 0 for 1. Call it E' from here on.
 * Bias. One addition, without underflow: E' + u (|f x + bias| + E'); nothing without a bias.
 * Output. E + u_out (|d| + E) + eta_out, nothing where its format holds the sum's. That bound also holds where the sum
 *   rounds to the largest finite number of the output; infinities there are for the comparison to decide, which knows
 *   the format.
 *
 * Range: where size can reach the end of the accumulator's range, or what is scaled that of f32, there is no limit
 * (class RANGE): +inf. Where inputs are not finite, NaN and infinities are those of the exact sum as long as the finite
 * terms stay inside the range in the same sense: limit 0; but a guard of f16 sums makes numbers of them, and tf32
 * makes NaN of an infinity times what it has as 0; then nothing is promised.
 *
 * amax. Where element i may lie anywhere within E_i of |d_i|, the largest lies between max(|d_i| - E_i) and max(|d_i| + E_i);
 *   it is stored in f32, which the elements are but beside qk_unit=f64.
 *
 * The reference's own error, v = 2^-53: k products and k - 1 additions, the factor, the scale and the bias, (k + 5) v (|f| S
 * + |bias|); products of two f32 are exact in double, and underflow (f32 squared) is below 2^-298. */
#include <math.h>

#include "gemm/gemm.h"

static const double v = 0x1p-53;

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
        most * (1 + joined) < at_format_info(at_unit_format(d->order.unit))->end; /* the join has as much at least */
    return in_range ? e.e * size + parts * e.eta + joined * most : (double)INFINITY;
}

/* What the finished sum may be off by, times the factor, with the bias. */
static double epilogue_error(const struct at_problem *p, const struct at_gemm_declared *d,
                             const struct at_gemm_element *e, double largest) {
    const double factor = at_gemm_factor(p), used = fabs(d->factor), u = at_format_info(d->wide)->u;
    const double value = isfinite(e->value) ? e->value : 0, sum = isfinite(e->sum) ? e->sum : 0;
    if (!isfinite(d->factor) || (!isfinite(e->sum) && (d->factor == 0) != (factor == 0))) /* class RANGE */
        return INFINITY;
    double error = sum_error(d, e->size, largest) * used;
    if (used > 0 && d->factor != 1)
        error = rounded(d->wide, fabs(factor * sum), error, is_power_of_two(used));
    if (d->factor != factor)
        error += fabs(d->factor - factor) * (1 + u) * fabs(sum) + at_format_info(d->wide)->eta;
    if (at_gemm_own_of(p).bias != AT_GEMM_BIAS_NONE)
        error += u * (fabs(value) + error);
    const double most = fmax(used, fabs(factor)) * e->size + fabs(e->addend) + error;
    return most < at_format_info(d->wide)->end ? error : INFINITY;
}

double at_gemm_error(const struct at_problem *p, const struct at_gemm_declared *declared,
                     const struct at_gemm_element *element, double largest) {
    const double own =
        ((double)at_gemm_own_of(p).k + 5) * v * (fabs(at_gemm_factor(p)) * element->size + fabs(element->addend));
    const double error = declared ? epilogue_error(p, declared, element, largest) : 0;
    if (!isfinite(element->value)) {
        const int kept = !declared || (declared->order.guard == AT_GUARD_NONE &&
                                       !(element->vanishing && at_unit_is_tf32(declared->order.unit)));
        return isfinite(error) && kept ? 0 : (double)INFINITY;
    }
    return isfinite(error) ? (error + own) * (1 + 0x1p-30) : (double)INFINITY;
}

double at_gemm_limit(const struct at_problem *p, const struct at_gemm_declared *declared,
                     const struct at_gemm_element *element, double largest) {
    const enum at_format out = (enum at_format)at_gemm_own_of(p).out;
    const double error = at_gemm_error(p, declared, element, largest);
    if (!isfinite(element->value) || !isfinite(error) || !declared || out == declared->wide)
        return error;
    return rounded(out, element->value, error, 0) * (1 + 0x1p-30);
}

void at_gemm_raise(struct at_gemm_most *most, double value, double error) {
    const double size = fabs(value);
    if (isnan(value) || isnan(most->value))
        most->value = NAN;
    else if (size > most->value)
        most->value = size;
    most->unlimited |= !(error < INFINITY);
    if (size + error > most->upper)
        most->upper = size + error;
    if (size - error > most->least)
        most->least = size - error;
}

double at_gemm_amax_limit(const struct at_gemm_declared *declared, const struct at_gemm_most *most) {
    double error = 0;
    if (isfinite(most->value))
        error = fmax(most->upper - most->value, most->value - most->least);
    else if (most->unlimited)
        error = INFINITY;
    if (declared && declared->wide != AT_F32 && isfinite(most->value))
        error = rounded(AT_F32, most->value, error, 0);
    return error;
}
