/* SiLU(gate) * up: its definition, limits, model, decoys and descriptor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limit of |a - SiLU(g)|, step by step; u = 2^-24, eta = 2^-150. e = exp(-g) and s = 1 + e in exact arithmetic.
 *   exp by libm       one unit in the last place of e.
 *   exp by ex2        f32(g * -c), c = log2(e) as f32, which is 0.22 u off: the argument is off by at most 1.23 u of itself, which
 *                     makes a factor exp(1.23 u |g|) of e; then the unit's own error, 2.45 u of e (measured on all arguments
 *                     whose result is normal), and three units of 2^-149 below 2^-126. With ftz, 0 may stand for what can be
 *                     below 2^-126.
 *   1 + e             one rounding of at most 1 + e + de; it does not underflow.
 *   the quotient      |g| / s falls with s, so an s that is off by ds moves it most at s - ds. Then the rounding: u for a division,
 *                     2 u (and u^2) for a rounded reciprocal and a product, (1 + 1.65 u)(1 + u) for rcp.approx and a product;
 *                     and eta. Reciprocals of s < 2^126 are normal.
 *   s from 2^126 on   e may be infinite, the reciprocal subnormal or flushed: a is anything between 0 and SiLU(g) and its error.
 *   tanh.approx       134 units in the last place of tanh(h) (special_function.c), times |h|; one rounding of the fma; h itself is
 *                     exact, or off by eta where it is subnormal, which moves a by up to 2 eta.
 * The reference's own: exp and 1 + e in double, a quotient and what is derived from it, 2^-50 of SiLU(g) together. */
#include "silu_mul/silu_mul.h"

#include <math.h>

#include "special/special.h"

static const double u = 0x1p-24, eta = 0x1p-150, least_normal = 0x1p-126, last_place = 0x1p-149;
const struct at_silu_errors at_silu_errors = { .ex2 = 2.45, .rcp = 1.65, .argument = 1.23, .tanh_units = 134 };
static const float log2_e = 0x1.715476p0f;

/* clang-format off */
static const struct at_decoy_spec decoys[AT_SILU_FAULTS] = {
    AT_GATED_DECOYS,
    [AT_SILU_NO_SIGMOID]    = { "no_sigmoid", "gate * up" },
    [AT_SILU_SIGMOID_ALONE] = { "sigmoid_alone", "the sigmoid of the gate, not times the gate" },
    [AT_SILU_EXP_OF_GATE]   = { "exp_of_gate", "exp(g) where exp(-g) belongs" },
    [AT_SILU_UP_RECTIFIED]  = { "up_rectified", "up is max(up, 0)" },
    [AT_SILU_TANH_OF_GATE]  = { "tanh_of_gate", "g / 2 (1 + tanh(g)), where tanh(g / 2) belongs" },
    [AT_SILU_GELU]          = { "gelu", "GELU of the gate in its tanh form" },
};
/* clang-format on */

/* ---- exact ---- */

/* Of a finite g but 0 it is not 0: below -745, where exp(-g) is infinite as a double, the least double stands for it. */
static double silu(double g) {
    const double a = g / (1 + exp(-g));
    return a == 0 && g != 0 ? copysign(0x1p-1074, g) : a;
}

static double own_error(double a) { return 0x1p-50 * fabs(a) + 0x1p-1000; }

static int is_ftz(const struct at_numerics *n) { return n->exp == AT_EXP_EX2_APPROX_FTZ; }

/* How far the declared exponential of -g may be from e. */
static double exponential_error(const struct at_numerics *n, double g, double e) {
    if (n->exp == AT_EXP_LIBM)
        return at_ulp(AT_F32, e);
    const double argument = expm1(at_silu_errors.argument * u * fabs(g));
    const double error = e * (argument + at_silu_errors.ex2 * u * (1 + argument)) + 3 * last_place;
    return is_ftz(n) && e - error < least_normal ? fmax(error, e) : error;
}

static double quotient_roundings(const struct at_numerics *n) {
    if (n->divide == AT_DIVIDE_DIVISION)
        return u;
    return n->divide == AT_DIVIDE_RECIPROCAL ? 2 * u + u * u : (1 + at_silu_errors.rcp * u) * (1 + u) - 1;
}

static double exp_form_error(const struct at_numerics *n, double g, double a) {
    const double e = exp(-g), s = 1 + e;
    if (!(s < 0x1p125)) /* with all its errors below 2^126 */
        return (1 + 0x1p-15) * fabs(a) + eta;
    double ds = exponential_error(n, g, e);
    ds += u * (s + ds);
    const double moved = fabs(g) / (s - ds) - fabs(g) / s;
    return moved + quotient_roundings(n) * (fabs(a) + moved) + eta;
}

static double tanh_form_error(double g, double a) {
    const double h = g / 2, moved = fabs(h) * (at_silu_errors.tanh_units * at_ulp(AT_F32, tanh(h)) + last_place);
    return moved + u * (fabs(a) + moved) + 3 * eta;
}

static struct at_gated_bounded activation(const struct at_numerics *n, double g) {
    const double a = silu(g);
    if (!isfinite(g) || g == 0)
        return (struct at_gated_bounded){ a, 0 };
    if (!n)
        return (struct at_gated_bounded){ a, own_error(a) };
    const double error = n->exp == AT_EXP_TANH_APPROX ? tanh_form_error(g, a) : exp_form_error(n, g, a);
    return (struct at_gated_bounded){ a, error + own_error(a) };
}

static double gelu(double g) { return g / 2 * (1 + tanh(sqrt(2 / acos(-1.0)) * (g + 0.044715 * g * g * g))); }

static double faulty(int fault, double g, double up) {
    switch (fault) {
    case AT_SILU_NO_SIGMOID:
        return g * up;
    case AT_SILU_SIGMOID_ALONE:
        return 1 / (1 + exp(-g)) * up;
    case AT_SILU_EXP_OF_GATE:
        return g / (1 + exp(g)) * up;
    case AT_SILU_UP_RECTIFIED:
        return silu(g) * (up > 0 ? up : up <= 0 ? 0 : up);
    case AT_SILU_TANH_OF_GATE:
        return g / 2 * (1 + tanh(g)) * up;
    case AT_SILU_GELU:
        return gelu(g) * up;
    default:
        return silu(g) * up;
    }
}

/* ---- the declared arithmetic ---- */

static float by_unit(enum at_special_function function, int ftz, float x) {
    return (float)at_special_value(function, ftz, (double)x);
}

static float quotient(const struct at_numerics *n, float g, float s) {
    if (n->divide == AT_DIVIDE_DIVISION)
        return g / s;
    if (n->divide == AT_DIVIDE_RECIPROCAL) {
        const float r = 1.0f / s;
        return g * r;
    }
    return g * by_unit(AT_SPECIAL_rcp, n->divide == AT_DIVIDE_RCP_APPROX_FTZ, s);
}

static float product(const struct at_numerics *n, float g, float e, float up) {
    const float s = 1.0f + e, a = quotient(n, g, s);
    return a * up;
}

/* e rounded is right for libm, and so are its neighbours that are within one unit of exp(-g). What follows is monotone in e. */
static struct at_gated_model libm_model(const struct at_numerics *n, float g, float up) {
    const double exact = exp(-(double)g), unit = at_ulp(AT_F32, exact);
    const float e = (float)exact, below = nextafterf(e, 0), above = nextafterf(e, INFINITY);
    struct at_gated_model m = { .product = product(n, g, e, up) };
    m.low = isfinite(e) && exact - (double)below <= unit ? product(n, g, below, up) : m.product;
    m.high = isfinite(above) && (double)above - exact <= unit ? product(n, g, above, up) : m.product;
    return m;
}

static struct at_gated_model model_product(const struct at_numerics *n, float g, float up) {
    float y;
    if (n->exp == AT_EXP_TANH_APPROX) {
        const float h = g * 0.5f, a = fmaf(h, by_unit(AT_SPECIAL_tanh, 0, h), h);
        y = a * up;
    } else if (n->exp == AT_EXP_LIBM) {
        return libm_model(n, g, up);
    } else {
        y = product(n, g, by_unit(AT_SPECIAL_ex2, is_ftz(n), g * -log2_e), up);
    }
    return (struct at_gated_model){ y, y, y };
}

static const char *declines(const struct at_numerics *n) {
    return n->divide == AT_DIVIDE_RECIPROCAL_F16 ? "divide=reciprocal_f16 is softmax's alone" : NULL;
}

static const struct at_gated_function function = { activation, faulty, model_product, declines };
AT_GATED_EVALUATIONS(function)

const struct at_op at_op_silu_mul = {
    .name = "silu_mul",
    .summary = "y = SiLU(gate) * up, SiLU(g) = g / (1 + exp(-g))",
    .source = "002",
    .decoys = decoys,
    .n_decoys = AT_SILU_FAULTS,
    .declares = AT_DECLARES(exp) | AT_DECLARES(divide),
    AT_GATED_FUNCTIONS,
};
