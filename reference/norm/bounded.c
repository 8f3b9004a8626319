/* Values with the distance a kernel may have from them: additions, roundings, the UClip step.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Derivation. fl(a op b) = (a op b)(1 + t) + s with |t| <= u, |s| <= eta, and only one of the two non-zero. So an
 * operation on inputs that are off by da and db is off by what those do to the exact result, plus u times the largest
 * magnitude the computed result can have, plus eta. The clamp g is monotone with slope 0 or 1: an input anywhere in
 * [t - dt, t + dt] gives something in [g(t - dt), g(t + dt)], which is 0 wide where both ends are clipped; bounding it
 * by dt would forgive a missing clamp. The reference's own rounding in double adds 2^-53 of each magnitude. */
#include "norm/norm.h"

#include <math.h>

static const double REFERENCE_U = 0x1p-53;

struct at_norm_scales at_norm_test_scales = { 1, 1, 1 };

struct at_norm_arith at_norm_arithmetic(const struct at_numerics *numerics) {
    const struct at_format_info *f = at_format_info(numerics->qk_unit == AT_UNIT_F64 ? AT_F64 : AT_F32);
    return (struct at_norm_arith){ f->u * at_norm_test_scales.arithmetic, f->eta };
}

/* The error of an operation whose exact result is `value` and whose inputs' errors move it by `moved`. */
static struct at_bounded rounded(struct at_norm_arith a, double value, double moved) {
    double size = fabs(value) + moved;
    return (struct at_bounded){ value, isfinite(value) ? moved + a.u * size + a.eta + REFERENCE_U * size : 0 };
}

struct at_bounded at_bounded_add(struct at_norm_arith arith, struct at_bounded a, struct at_bounded b) {
    return rounded(arith, a.value + b.value, a.error + b.error);
}

static double distance(double a, double b) { return a == b ? 0 : fabs(a - b); }

struct at_bounded at_bounded_round(enum at_format format, struct at_bounded x) {
    double value = at_round(format, x.value);
    double up = distance(at_round(format, x.value + x.error), value),
           down = distance(at_round(format, x.value - x.error), value);
    return (struct at_bounded){ value, up > down ? up : down };
}

struct at_bounded at_bounded_store(enum at_format format, struct at_bounded x) {
    const struct at_format_info *f = at_format_info(format);
    double u = f->u * at_norm_test_scales.store;
    return (struct at_bounded){ x.value, x.error + u * (fabs(x.value) + x.error) + f->eta };
}

static double clamp(double t, double lo, double hi) { return isnan(t) ? t : t < lo ? lo : t > hi ? hi : t; }

static double channel_of(const struct at_tensor *t, int64_t channel, int next) {
    return at_tensor_get(t, next ? (channel + 1) % at_tensor_count(t) : channel);
}

struct at_bounded at_uclip_bounded(const struct at_uclip *p, struct at_norm_arith arith, int64_t channel,
                                   struct at_bounded x, enum at_uclip_fault fault) {
    int next = fault == AT_UCLIP_NEXT_CHANNEL;
    double alpha = fault == AT_UCLIP_NO_ALPHA ? 1 : channel_of(p->alpha, channel, next);
    double gamma = fault == AT_UCLIP_NO_GAMMA ? 1 : channel_of(p->gamma, channel, next);
    double beta = p->beta ? channel_of(p->beta, channel, next) : 0;
    double lo = fault == AT_UCLIP_UNCLAMPED ? -INFINITY : p->lo, hi = fault == AT_UCLIP_UNCLAMPED ? INFINITY : p->hi;
    struct at_bounded t = rounded(arith, alpha * x.value, fabs(alpha) * x.error), c;
    c.value = clamp(t.value, lo, hi);
    double up = clamp(t.value + t.error, lo, hi) - c.value, down = c.value - clamp(t.value - t.error, lo, hi);
    c.error = isfinite(t.value) ? fmax(up, down) : 0;
    /* Two roundings (product, sum) cover one fused as well. */
    struct at_bounded product = rounded(arith, gamma * c.value, fabs(gamma) * c.error);
    return beta == 0 ? product : rounded(arith, product.value + beta, product.error);
}
