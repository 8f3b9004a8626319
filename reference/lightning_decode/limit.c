/* How far a kernel with declared arithmetic can be from the exact states and answers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A hat marks what the kernel has; u, eta: roundoff and underflow of f32. E bounds |x^ - x| of an element of the state.
 *
 * Decay. libm: one unit in the last place, 2^-23 D + 2^-149. ex2: its argument y = f32(-slope c), c = f32(log2(e)), which is
 *   0.23 2^-24 off relative to log2(e): an exponential of |slope| 1.25 2^-24 natural units more or less, and 2^-149; then two
 *   units beside what 2^y rounds to, 2.5 in all, and where ftz may flush, all of D. slope = 0: D^ = 1 = D.
 * Step. D^ x^ is off by dD (|x| + E) + D E; unfused, it is rounded: + u |D^ x^| + eta, none where D^ = 1. What t = k v loses
 *   in f32 is known: it is rounded from numbers that are known exactly. The sum is rounded: + u |x'^|, and no underflow, or
 *   with fma both at once: + u |x'^| + eta.
 * Answer. S = sum |q| (|x| + E): sum |q| E, + e S + eta_s of the declared unit and order (tensor_core/accumulate_error.c),
 *   + u_out |o^| + eta_out where the format of o is not the sum's.
 *
 * Range. Where a product, a state or a sum can reach the end of f32's range there is no limit (class RANGE): +inf. Where
 * numbers are not finite, NaN and infinities are those of exact arithmetic with one reservation: an infinity times what may
 * be 0 in the kernel, and is not, says nothing.
 *
 * The reference's own error, v = 2^-53: D within 2v, its product with x and the sum v each; d + 1 v of S. */
#include <math.h>

#include "lightning_decode/lightning_decode.h"

static const double v53 = 0x1p-53, least_normal = 0x1p-126, slack = 1 + 0x1p-30;

at_status at_lightning_declare(const struct at_problem *p, const struct at_numerics *numerics,
                               struct at_lightning_declared *out) {
    const int unit = numerics->qk_unit;
    AT_TRY(at_numerics_check(numerics));
    if (unit != AT_UNIT_F64 && unit != AT_UNIT_F32 && unit != AT_UNIT_F32_FMA)
        return AT_FAIL(AT_UNSUPPORTED, "%s: states are f32, summed in f32 or f64; qk_unit declares another unit",
                       p->op->name);
    if (numerics->exp == AT_EXP_TANH_APPROX)
        return AT_FAIL(AT_UNSUPPORTED, "%s: exp=tanh_approx is silu_mul's", p->op->name);
    *out = (struct at_lightning_declared){
        .order = at_order_qk(numerics), .exp = numerics->exp, .fused = numerics->fir_fma, .f64 = unit == AT_UNIT_F64
    };
    return AT_OK;
}

struct at_lightning_bound at_lightning_decay(const struct at_lightning_declared *declared, double slope) {
    const double value = exp(-slope);
    struct at_lightning_bound decay = { value, 0 };
    if (!isfinite(slope) || slope == 0 || !isfinite(value) || value == 0)
        return decay; /* what is 0 or infinite in double is so in f32 */
    decay.error = 2 * v53 * value + 0x1p-900;
    if (!declared)
        return decay;
    if (declared->exp == AT_EXP_LIBM) {
        decay.error += 0x1p-23 * value + 0x1p-149;
    } else {
        const double argued = value * expm1(fabs(slope) * 1.25 * 0x1p-24 + 0x1p-149);
        decay.error += argued + 2.5 * (0x1p-23 * (value + argued) + 0x1p-149);
        if (declared->exp == AT_EXP_EX2_APPROX_FTZ && !(value - decay.error >= least_normal))
            decay.error = fmax(decay.error, value);
    }
    return decay;
}

/* a * b, off by what the errors of a and b do to it; neither +inf. Where one is not finite: 0, or +inf where the other may be
 * 0 and is not, or of another sign. */
static struct at_lightning_bound times(struct at_lightning_bound a, struct at_lightning_bound b) {
    const struct at_lightning_bound out = { a.value * b.value, 0 };
    const int unsure = (isinf(a.value) && b.error > 0 && !(fabs(b.value) > b.error)) ||
                       (isinf(b.value) && a.error > 0 && !(fabs(a.value) > a.error));
    if (!isfinite(a.value) || !isfinite(b.value))
        return (struct at_lightning_bound){ out.value, unsure ? (double)INFINITY : 0 };
    return (struct at_lightning_bound){ out.value, a.error * (fabs(b.value) + b.error) + fabs(a.value) * b.error };
}

/* One rounding of x to f32; +inf where it may leave the range. */
static struct at_lightning_bound rounded(struct at_lightning_bound x, double eta) {
    if (!isfinite(x.value))
        return (struct at_lightning_bound){ x.value, x.error < INFINITY ? 0 : x.error };
    x.error += at_format_info(AT_F32)->u * (fabs(x.value) + x.error) + eta;
    x.error = fabs(x.value) + x.error < at_format_info(AT_F32)->end ? x.error : (double)INFINITY;
    return x;
}

/* Numbers of f32 of finite size. */
static int fits(struct at_lightning_bound x) {
    return !isfinite(x.value) || fabs(x.value) + x.error < at_format_info(AT_F32)->end;
}

static struct at_lightning_bound sum_of(struct at_lightning_bound a, struct at_lightning_bound b) {
    return (struct at_lightning_bound){ a.value + b.value, isnan(a.value + b.value) ? 0 : a.error + b.error };
}

static double own_error(double a, double sum) {
    return (isfinite(a) ? v53 * fabs(a) : 0) + (isfinite(sum) ? v53 * fabs(sum) : 0);
}

struct at_lightning_bound at_lightning_step(const struct at_problem *p, const struct at_lightning_declared *declared,
                                            struct at_lightning_bound decay, struct at_lightning_bound state, double k,
                                            double v) {
    const double eta = at_format_info(AT_F32)->eta;
    struct at_lightning_bound t = { at_lightning_product(p, k, v), 0 };
    if (!(state.error < INFINITY) || (declared && !fits(decay)))
        return (struct at_lightning_bound){ decay.value * state.value + t.value, INFINITY };
    struct at_lightning_bound a = times(decay, state);
    const double own = own_error(a.value, a.value + t.value);
    if (!declared) {
        a = sum_of(a, t);
        a.error = isfinite(a.value) ? a.error + own : a.error;
        return a;
    }
    const double kept = at_lightning_product_declared(p, k, v);
    if (isfinite(t.value))
        t.error = isfinite(kept) ? fabs(kept - t.value) : (double)INFINITY;
    if (!declared->fused && decay.error + fabs(decay.value - 1) > 0)
        a = rounded(a, eta);
    a = sum_of(a, t);
    a.error += isfinite(a.value) ? own : 0;
    return rounded(a, declared->fused ? eta : 0);
}

/* Sizes of a sum, of its finite terms. */
struct sizes {
    double sum, size, moved, products;
    int unsure;
};

static struct sizes add_up(int64_t d, const double *q, const struct at_lightning_bound *x) {
    struct sizes s = { 0, 0, 0, 0, 0 };
    for (int64_t i = 0; i < d; i++) {
        const struct at_lightning_bound term = times((struct at_lightning_bound){ q[i], 0 }, x[i]);
        s.sum += term.value;
        s.unsure |= !(x[i].error < INFINITY) || !(term.error < INFINITY);
        if (!isfinite(term.value))
            continue;
        s.size += fabs(term.value) + term.error;
        s.moved += term.error;
    }
    return s;
}

struct at_lightning_bound at_lightning_answer(const struct at_problem *p, const struct at_lightning_declared *declared,
                                              const double *q, const struct at_lightning_bound *x) {
    const struct sizes s = add_up(p->sizes.d, q, x);
    const struct at_format_info *out = at_format_info(p->dtype);
    double error = s.moved + ((double)p->sizes.d + 1) * v53 * s.size;
    if (s.unsure)
        return (struct at_lightning_bound){ s.sum, INFINITY };
    if (declared) {
        const struct at_sum_error e = at_accumulate_error(&declared->order, p->sizes.d);
        if (!(s.size * (1 + e.e) + e.eta < at_format_info(declared->f64 ? AT_F64 : AT_F32)->end))
            return (struct at_lightning_bound){ s.sum, INFINITY };
        error += e.e * s.size + e.eta;
        if (p->dtype != (declared->f64 ? AT_F64 : AT_F32))
            error += out->u * (fabs(s.sum) + error) + out->eta;
    }
    return (struct at_lightning_bound){ s.sum, isfinite(s.sum) ? error * slack : 0 };
}
