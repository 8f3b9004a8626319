/* Sums of weights: exact with their limits, and as the declared arithmetic has them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limit of |kernel - c_j|; U = 2^-24. The argument of the exponential, y = (l_j - l_0) / T in exact arithmetic, is off by three
 * roundings of itself at most: the difference, 1 / T (or log2(e) / T, whose constant is 0.22 U off besides), the product; which
 * makes a factor exp(3.25 U |y|). Then the exponential: one unit in the last place, or the unit's 2.45 U of its result and three
 * units of 2^-149 below 2^-126 (as silu_mul derives them), where ftz may give 0. Below y = -200 both are 0. Sums of j + 1 numbers
 * above 0 in any order are off by j U of what they sum. The reference's own sums: 2^-52 of each term. */
#include <math.h>

#include "special/special.h"
#include "top_k/top_k.h"

static const double U = 0x1p-24, ARGUMENT = 3.25, EX2 = 2.45, LAST_PLACE = 0x1p-149, LEAST_NORMAL = 0x1p-126;
static const float log2_e = 0x1.715476p0f;

static int is_ftz(const struct at_numerics *n) { return n->exp == AT_EXP_EX2_APPROX_FTZ; }

/* Of the exponential e = exp(y), y < 0. */
static double weight_error(const struct at_numerics *n, double y, double e) {
    if (y < -200)
        return e;
    const double argument = expm1(ARGUMENT * U * -y);
    if (n->exp == AT_EXP_LIBM)
        return e * argument + at_ulp(AT_F32, e * (1 + argument));
    const double error = e * (argument + EX2 * U * (1 + argument)) + 3 * LAST_PLACE;
    return is_ftz(n) && e - error < LEAST_NORMAL ? fmax(error, e) : error;
}

void at_top_k_exact_sums(const struct at_problem *p, const struct at_numerics *n, const struct at_top_k_rank *ranks,
                         struct at_top_k_sums *s) {
    const struct at_top_k_own own = at_top_k_own_of(p);
    double c = 0, errors = 0;
    int inexact = 0;
    for (int64_t j = 0; j < own.kept; j++) {
        const double top = ranks[0].logit, logit = ranks[j].logit, y = (logit - top) / (double)own.temperature;
        const double w = logit == top ? 1 : isnan(top) ? (double)NAN : exp(y);
        c += w;
        errors += n && w != 1 && !isnan(w) ? weight_error(n, y, w) : 0;
        inexact |= w != 1 && w != 0;
        const double roundings = (n ? (double)j * U * (c + errors) : 0) + 0x1p-52 * (double)j * c;
        const double limit = errors + (inexact ? roundings : 0); /* whole numbers below 2^24 are summed exactly */
        s->c[j] = c;
        s->low[j] = isnan(c) ? 0 : c - limit;
        s->high[j] = isnan(c) ? 0 : c + limit;
    }
}

/* ---- the declared arithmetic ---- */

static float by_unit(const struct at_numerics *n, float x) {
    return (float)at_special_value(AT_SPECIAL_ex2, is_ftz(n), (double)x);
}

struct weights {
    float w, low, high;
};

static struct weights weights_of(const struct at_problem *p, const struct at_numerics *n, float top, float logit) {
    const float t = at_top_k_own_of(p).temperature;
    if (logit == top)
        return (struct weights){ 1, 1, 1 };
    const float d = logit - top;
    if (n->exp != AT_EXP_LIBM) {
        const float w = by_unit(n, d * (log2_e / t));
        return (struct weights){ w, w, w };
    }
    const float w = (float)exp((double)(d * (1.0f / t)));
    return (struct weights){ w, w > 0 ? nextafterf(w, 0.0f) : w, w < 1 ? nextafterf(w, 1.0f) : w };
}

/* A rounded sum falls with none of its terms: the ends of the weights give the ends of the sums. */
void at_top_k_modelled_sums(const struct at_problem *p, const struct at_numerics *n, const struct at_top_k_rank *ranks,
                            struct at_top_k_sums *s) {
    const int64_t kept = at_top_k_own_of(p).kept;
    struct weights c = { 0, 0, 0 };
    for (int64_t j = 0; j < kept; j++) {
        const struct weights w = weights_of(p, n, (float)ranks[0].logit, (float)ranks[j].logit);
        c = (struct weights){ c.w + w.w, c.low + w.low, c.high + w.high };
        s->c[j] = (double)c.w;
        s->low[j] = (double)c.low;
        s->high[j] = (double)c.high;
    }
}
