/* The UClip and RMS steps in declared arithmetic, and the RMS step with its bound.
 * SPDX-License-Identifier: Apache-2.0 */
#include "norm/norm.h"

#include <math.h>

#include "tensor_core/accumulate.h"

static int is_double(const struct at_numerics *numerics) { return numerics->qk_unit == AT_UNIT_F64; }

/* One rounding of an operation's exact-enough result: sums, products and quotients of two floats rounded from double
 * are correctly rounded floats, because 53 >= 2 * 24 + 2. */
static double once(const struct at_numerics *numerics, double value) {
    return is_double(numerics) ? value : (double)(float)value;
}

double at_add_declared(const struct at_numerics *numerics, double a, double b) { return once(numerics, a + b); }

static double declared_clamp(const struct at_numerics *numerics, double t, double lo, double hi) {
    if (isnan(t))
        return numerics->clamp == AT_CLAMP_PROPAGATE ? t : lo; /* max(NaN, lo) is lo */
    return t < lo ? lo : t > hi ? hi : t;
}

double at_uclip_declared(const struct at_uclip *p, const struct at_numerics *numerics, int64_t channel, double x) {
    double t = once(numerics, at_tensor_get(p->alpha, channel) * x), gamma = at_tensor_get(p->gamma, channel);
    double c = declared_clamp(numerics, t, p->lo, p->hi), beta = p->beta ? at_tensor_get(p->beta, channel) : 0;
    if (!p->beta)
        return once(numerics, gamma * c);
    if (numerics->fir_fma)
        return is_double(numerics) ? fma(gamma, c, beta) : (double)fmaf((float)gamma, (float)c, (float)beta);
    return once(numerics, once(numerics, gamma * c) + beta);
}

void at_rms_declared(const struct at_numerics *numerics, int64_t n, const double *x, const struct at_tensor *gamma,
                     double eps, double *y) {
    struct at_order order = at_order_qk(numerics);
    double sum = at_accumulate(&order, n, x, 1, x, 1, 0, NULL);
    double mean = once(numerics, once(numerics, sum / (double)n) + eps);
    double inverse = once(numerics, 1 / once(numerics, sqrt(mean)));
    for (int64_t i = 0; i < n; i++)
        y[i] = once(numerics, at_tensor_get(gamma, i) * once(numerics, x[i] * inverse));
}

/* The sum's error: e times the sum of squares in the declared order, plus what errors of x do to the squares. */
static double sum_error(const struct at_numerics *numerics, int64_t n, const struct at_bounded *x, double sum) {
    struct at_order order = at_order_qk(numerics);
    struct at_sum_error sum_bound = at_accumulate_error(&order, n);
    double moved = 0;
    for (int64_t i = 0; i < n; i++)
        moved += 2 * fabs(x[i].value) * x[i].error + x[i].error * x[i].error;
    double e = sum_bound.e * at_norm_test_scales.sum;
    return moved + e * (sum + moved) + sum_bound.eta + (double)n * 0x1p-53 * sum;
}

/* 1/sqrt(m) for m known to within dm; two roundings after that, four units so that rsqrt approximations good to two
 * units in the last place stay inside. */
static struct at_bounded inverse_root(struct at_norm_arith arith, double m, double dm) {
    double root = 1 / sqrt(m);
    if (!(dm < m))
        return (struct at_bounded){ root, INFINITY };
    double largest = 1 / sqrt(m - dm);
    return (struct at_bounded){ root, (largest - root) + 4 * arith.u * largest + arith.eta + 0x1p-51 * root };
}

static double mean_square(int64_t n, const struct at_bounded *x, double eps, enum at_rms_fault fault, double *sum) {
    int64_t seen = fault == AT_RMS_LAST_CHANNEL_UNSEEN ? n - 1 : n;
    *sum = 0;
    for (int64_t i = 0; i < seen; i++)
        *sum += x[i].value * x[i].value;
    return *sum / (fault == AT_RMS_NO_MEAN ? 1 : (double)n) + eps;
}

void at_rms_bounded(const struct at_numerics *numerics, int64_t n, const struct at_bounded *x,
                    const struct at_tensor *gamma, double eps, enum at_rms_fault fault, struct at_bounded *y) {
    struct at_norm_arith a = at_norm_arithmetic(numerics);
    double sum, m = mean_square(n, x, eps, fault, &sum);
    double ds = sum_error(numerics, n, x, sum), range = at_format_info(is_double(numerics) ? AT_F64 : AT_F32)->max;
    /* quotient and + eps: one rounding each of at most m + dm */
    double dm = (ds / (double)n + 2 * a.u * m) * (1 + 4 * a.u) + 2 * a.eta + 0x1p-51 * m;
    struct at_bounded r = inverse_root(a, m, sum + ds < range ? dm : INFINITY);
    for (int64_t i = 0; i < n; i++) {
        int64_t channel = fault == AT_RMS_NEXT_CHANNEL ? (i + 1) % n : i;
        double g = fault == AT_RMS_NO_GAMMA ? 1 : at_tensor_get(gamma, channel);
        double size = (fabs(x[i].value) + x[i].error) * (r.value + r.error);
        double moved = fabs(x[i].value) * r.error + x[i].error * (r.value + r.error);
        y[i].value = g * (x[i].value * r.value);
        y[i].error = fabs(g) * (moved + a.eta + 2 * a.u * (1 + a.u) * size) + a.eta + 0x1p-51 * fabs(g) * size;
    }
}
