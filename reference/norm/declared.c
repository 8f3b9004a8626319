/* The UClip and RMS steps in declared arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "norm/norm.h"

#include <math.h>

#include "special/special.h"
#include "tensor_core/accumulate.h"

static int is_double(const struct at_numerics *numerics) { return numerics->qk_unit == AT_UNIT_F64; }

/* One rounding of an operation's exact-enough result: sums, products and quotients of two floats rounded from double
 * are correctly rounded floats, because 53 >= 2 * 24 + 2. */
static double once(const struct at_numerics *numerics, double value) {
    return is_double(numerics) ? value : (double)(float)value;
}

double at_add_declared(const struct at_numerics *numerics, double a, double b) { return once(numerics, a + b); }

/* As the hardware: max(NaN, lo) is lo, max(-0, 0) is 0, min(-0, 0) is -0. */
static double declared_clamp(const struct at_numerics *numerics, double t, double lo, double hi) {
    if (isnan(t))
        return numerics->clamp == AT_CLAMP_PROPAGATE ? t : lo;
    return t <= lo ? lo : t > hi ? hi : t;
}

double at_uclip_gamma(const struct at_uclip *p, int64_t channel) {
    return at_tensor_get(p->gamma, at_tensor_count(p->gamma) == 1 ? 0 : channel);
}

double at_uclip_declared(const struct at_uclip *p, const struct at_numerics *numerics, int64_t channel, double x) {
    double t = once(numerics, at_tensor_get(p->alpha, channel) * x), gamma = at_uclip_gamma(p, channel);
    double c = declared_clamp(numerics, t, p->lo, p->hi), beta = p->beta ? at_tensor_get(p->beta, channel) : 0;
    if (!p->beta)
        return once(numerics, gamma * c);
    if (numerics->fir_fma)
        return is_double(numerics) ? fma(gamma, c, beta) : (double)fmaf((float)gamma, (float)c, (float)beta);
    return once(numerics, once(numerics, gamma * c) + beta);
}

static double inverse_root(const struct at_numerics *numerics, double x) {
    if (numerics->rsqrt == AT_RSQRT_LIBM)
        return once(numerics, 1 / once(numerics, sqrt(x)));
    return at_decode(AT_F32, at_special_rsqrt((uint32_t)at_encode(AT_F32, x), numerics->rsqrt == AT_RSQRT_APPROX_FTZ));
}

void at_rms_declared(const struct at_numerics *numerics, int64_t n, const double *x, const struct at_tensor *gamma,
                     double eps, double *y) {
    struct at_order order = at_order_qk(numerics);
    double sum = at_accumulate(&order, n, x, 1, x, 1, 0, NULL);
    double mean = once(numerics, once(numerics, sum / (double)n) + eps);
    double inverse = inverse_root(numerics, mean);
    for (int64_t i = 0; i < n; i++)
        y[i] = once(numerics, at_tensor_get(gamma, i) * once(numerics, x[i] * inverse));
}
