/* Values with the distance a kernel may have from them: additions, roundings, the UClip step.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Derivation. fl(a op b) = (a op b)(1 + t) + s with |t| <= u, |s| <= eta, and only one of the two non-zero; t = s = 0
 * when the exact result is 0. So an operation on inputs that are off by da and db is off by what those do to the exact
 * result, plus u times the largest magnitude the computed result can have, plus eta; and where that magnitude can reach
 * what rounds to infinity, nothing is promised. Sums of two numbers of a format are exact where they underflow, so
 * additions and 1/sqrt (never small) have no eta. The reference's own rounding in double adds 2^-53 of each magnitude.
 *
 * Clamp. g is monotone with slope 0 or 1: an input anywhere in [t - dt, t + dt] gives something in
 * [g(t - dt), g(t + dt)], which is 0 wide where both ends are clipped; bounding it by dt would forgive a missing clamp.
 * alpha * x may overflow: its infinity is clamped to the same end as the number would be, unless that end is infinite.
 *
 * Sum of two activations, both numbers of a format F with p bits. The arithmetic A has F's precision or at least
 * 2p + 2 bits (f16, bf16 in f32: 24 >= 24; f32 in f64: 53 >= 50), so rounding the sum to A and then to F is rounding it
 * to F once (Figueroa 1995): what is stored is the rounded exact sum of the kernel's own operands. With exact operands
 * the rounded sum is therefore certain, its overflow to infinity included.
 *
 * Rounding anything else to F. It is monotone: what lies in [x - dx, x + dx] lands between the roundings of the two
 * ends. If A is F nothing is rounded, and |k - round(x)| <= dx + |x - round(x)| is the better bound. */
#include "norm/norm.h"

#include <math.h>

static const double REFERENCE_U = 0x1p-53;

struct at_norm_scales at_norm_test_scales = {
    .u = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
    .eta = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
};

struct at_norm_arith at_norm_arithmetic(const struct at_numerics *numerics) {
    if (!numerics)
        return (struct at_norm_arith){ .format = AT_F64, .edge = INFINITY, .own = 1 };
    enum at_format format = numerics->qk_unit == AT_UNIT_F64 ? AT_F64 : AT_F32;
    const struct at_format_info *f = at_format_info(format);
    return (struct at_norm_arith){ .format = format,
                                   .u = f->u,
                                   .eta = f->eta,
                                   .edge = at_format_info(format)->end,
                                   .fused = numerics->fir_fma,
                                   .launders = numerics->clamp != AT_CLAMP_PROPAGATE };
}

static int underflows(const struct at_norm_arith *arith, enum at_norm_stage stage) {
    if (stage == AT_NORM_SHIFT)
        return arith->fused;
    return stage != AT_NORM_ADD && stage != AT_NORM_EPS && stage != AT_NORM_ROOT;
}

/* One rounding with these constants of something off by `moved`. */
static struct at_bounded rounding(enum at_norm_stage stage, double u, double eta, double edge, double value,
                                  double moved) {
    if (!(moved < INFINITY))
        return (struct at_bounded){ value, INFINITY };
    double size = fabs(value) + moved, own = REFERENCE_U * size;
    if (!isfinite(value) || size == 0)
        return (struct at_bounded){ value, 0 };
    if (!(size + own < edge))
        return (struct at_bounded){ value, INFINITY };
    u *= at_norm_test_scales.u[stage];
    eta *= at_norm_test_scales.eta[stage];
    return (struct at_bounded){ value, moved + u * size + eta + own };
}

struct at_bounded at_bounded_step(const struct at_norm_arith *arith, enum at_norm_stage stage, double value,
                                  double moved) {
    return rounding(stage, arith->u, underflows(arith, stage) ? arith->eta : 0, arith->edge, value, moved);
}

/* x times the error of another value; an infinite x is no reason for doubt where that error is 0. */
static double times(double x, double error) { return error > 0 ? fabs(x) * error : 0; }

/* a makes a * b NaN or an infinity whatever b is within its error. */
static int decides(struct at_bounded a, struct at_bounded b) {
    return a.error == 0 && (isnan(a.value) || (isinf(a.value) && fabs(b.value) > b.error));
}

double at_bounded_moved(struct at_bounded a, struct at_bounded b) {
    if (decides(a, b) || decides(b, a))
        return 0;
    return times(a.value, b.error) + times(b.value, a.error) + times(a.error, b.error);
}

static double distance(double a, double b) { return a == b ? 0 : fabs(a - b); }

struct at_bounded at_bounded_round(const struct at_norm_arith *arith, enum at_format format, struct at_bounded x) {
    double value = at_round(format, x.value);
    if (!(x.error < INFINITY))
        return (struct at_bounded){ value, INFINITY };
    if (!isfinite(x.value))
        return (struct at_bounded){ value, 0 };
    double up = distance(at_round(format, x.value + x.error), value),
           down = distance(at_round(format, x.value - x.error), value), error = fmax(up, down);
    if (format == arith->format)
        error = fmin(error, x.error + distance(x.value, value));
    return (struct at_bounded){ value, error };
}

struct at_bounded at_bounded_store(const struct at_norm_arith *arith, enum at_format format, struct at_bounded x) {
    const struct at_format_info *f = at_format_info(format);
    if (arith->own || format == arith->format)
        return x;
    return rounding(AT_NORM_STORE, f->u, f->eta, at_format_info(format)->end, x.value, x.error);
}

struct at_residual at_bounded_residual(const struct at_norm_arith *arith, enum at_format format, int from,
                                       struct at_bounded a, struct at_bounded b) {
    struct at_norm_arith certain = { .format = AT_FORMAT_COUNT }; /* no step of the arithmetic before the rounding */
    struct at_bounded sum = { a.value + b.value, a.error + b.error };
    struct at_residual out = { .stored = sum };
    if (arith->own)
        out.stored = at_bounded_step(arith, AT_NORM_STORE, sum.value, sum.error);
    else
        out.stored =
            rounding(AT_NORM_STORE, at_format_info(format)->u, 0, at_format_info(format)->end, sum.value, sum.error);
    if (from == AT_FROM_EXACT) {
        out.used = at_bounded_step(arith, AT_NORM_ADD, sum.value, sum.error);
        return out;
    }
    if (sum.error > 0) /* the ends of the interval are rounded to double */
        sum.error += 2 * REFERENCE_U * (fabs(sum.value) + sum.error);
    out.used = at_bounded_round(&certain, format, sum);
    return out;
}

static double clamp(double t, double lo, double hi) { return isnan(t) ? t : t < lo ? lo : t > hi ? hi : t; }

/* max(-0, 0) is either zero in C; PTX has 0. Small enough to be no limit of anything else, and no factor makes it 0. */
static const double EITHER_ZERO = 1e-200;

static struct at_bounded clamped(const struct at_norm_arith *arith, struct at_bounded t, double lo, double hi) {
    struct at_bounded c = { clamp(t.value, lo, hi), 0 };
    if (!(t.error < INFINITY) || (isnan(t.value) && arith->launders)) {
        c.error = INFINITY;
    } else if (isfinite(t.value)) {
        c.error = fmax(clamp(t.value + t.error, lo, hi) - c.value, c.value - clamp(t.value - t.error, lo, hi));
        if (fabs(t.value) <= t.error && (lo == 0 || hi == 0))
            c.error = fmax(c.error, EITHER_ZERO);
        if (!(fabs(c.value) + c.error < arith->edge))
            c.error = INFINITY;
    }
    return c;
}

static int64_t next_of(const struct at_tensor *t, int64_t channel) {
    return channel + 1 < at_tensor_count(t) ? channel + 1 : 0;
}

struct at_bounded at_uclip_bounded(const struct at_uclip *p, const struct at_norm_arith *arith, int64_t channel,
                                   struct at_bounded x, enum at_uclip_fault fault) {
    channel = fault == AT_UCLIP_NEXT_CHANNEL ? next_of(p->alpha, channel) : channel;
    double alpha = fault == AT_UCLIP_NO_ALPHA ? 1 : at_tensor_get(p->alpha, channel);
    double gamma = fault == AT_UCLIP_NO_GAMMA ? 1 : at_uclip_gamma(p, channel);
    double beta = p->beta ? at_tensor_get(p->beta, channel) : 0;
    double lo = fault == AT_UCLIP_UNCLAMPED ? -INFINITY : p->lo, hi = fault == AT_UCLIP_UNCLAMPED ? INFINITY : p->hi;
    struct at_norm_arith unbounded = *arith;
    unbounded.edge = INFINITY;
    struct at_bounded t = at_bounded_step(&unbounded, AT_NORM_SLOPE, alpha * x.value, times(alpha, x.error));
    struct at_bounded c = clamped(arith, t, lo, hi);
    double product = gamma * c.value, moved = times(gamma, c.error);
    if (arith->fused && beta != 0)
        return at_bounded_step(arith, AT_NORM_SHIFT, product + beta, moved + REFERENCE_U * fabs(product));
    struct at_bounded y = at_bounded_step(arith, AT_NORM_FACTOR, product, moved);
    return beta == 0 ? y : at_bounded_step(arith, AT_NORM_SHIFT, y.value + beta, y.error);
}
