/* Steps of the modelled softmax, each on a value and on the interval around it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The scores are declared to the bit, and so is ex2 of the special-function unit (special/special.h): all that follows
 * from these is a single value. libm's exponential is within one ulp (2u) only. The model takes the correctly rounded
 * one, so a kernel's weight is within 2u + u of the modelled one, widened to 3u(1 + 2^-20); f64: two libms, 4u. An
 * argument of exactly 0 gives exactly 1; far below the format's range every one gives 0.
 *
 * Rounding to nearest (and truncation) is monotone, so an interval goes through a rounded operation by its ends:
 * exactly when the ends are equal, which is what makes most of them a single value again once P is rounded. A tensor
 * core's step is not monotone (the largest exponent decides what is cut); its exact sum is, and the step differs from
 * it by less than (L + 1) 2^(e_max - F) before its one monotone rounding. */
#include <math.h>

#include "softmax_attention/model.h"
#include "special/special.h"
#include "tensor_core/fdpa.h"

static const float log2_e = 0x1.715476p0f, log_2 = 0x1.62e43p-1f;

void at_softmax_math_init(const struct at_problem *problem, const struct at_numerics *numerics,
                          struct at_softmax_math *out) {
    const struct at_softmax_own own = at_softmax_own_of(problem);
    const int bent = own.softcap > 0 || own.alibi > 0, late = numerics->exp_arg == AT_EXP_ARG_FMA && !bent;
    const float scale = problem->params.scale, early = numerics->scale_on == AT_SCALE_ON_SCORE && !late ? scale : 1;
    *out = (struct at_softmax_math){
        .f64 = at_softmax_is_f64(numerics),
        .ordered = numerics->l_lanes > 0,
        .p = at_softmax_rounds_p(numerics) ? (enum at_format)numerics->p : AT_F64,
        .pv = at_order_pv(numerics),
        .numerics = numerics,
        .bent = bent,
        .score_scale = (double)early,
        .scale = bent ? 1 : scale,
        .log2_scale = bent ? log2_e : scale * log2_e,
        .cap = (double)own.softcap,
    };
    if (own.softcap > 0)
        out->to_cap = out->f64 ? (double)early / (double)own.softcap : (double)(early / own.softcap);
    out->accumulator = at_unit_format(out->pv.unit);
}

double at_softmax_round(const struct at_softmax_math *math, double x) { return math->f64 ? x : (double)(float)x; }

static double round_to(enum at_format format, double x) {
    return format == AT_F64 ? x : format == AT_F32 ? (double)(float)x : at_round(format, x);
}

static struct at_span point(double x) { return (struct at_span){ x, x, x }; }

/* w with a relative and an absolute allowance; weights are not negative. */
static struct at_span around(double w, double relative, double absolute) {
    double low = w * (1 - relative) - absolute;
    return (struct at_span){ low > 0 ? low : 0, w, w * (1 + relative) + absolute };
}

/* Arguments so far down that every exponential is asked to give 0: exp(-120) = 2^-173. */
static const double f32_nothing = -120, f64_nothing = -760;

static struct at_span libm_exp(const struct at_softmax_math *math, double a, double b) {
    if (math->f64) { /* not a == b: two infinities differ by a NaN */
        const double x = a - b;
        return x < f64_nothing ? point(0) : x == 0 ? point(1) : around(exp(x), 0x1p-51, 0x1p-1073);
    }
    const float x = (float)a - (float)b;
    if ((double)x < f32_nothing)
        return point(0);
    return x == 0 ? point(1) : around((double)(float)exp((double)x), 3 * 0x1p-24 * (1 + 0x1p-20), 0x1p-148);
}

static int flushes(const struct at_softmax_math *math) { return math->numerics->exp == AT_EXP_EX2_APPROX_FTZ; }

static double ex2(const struct at_softmax_math *math, float x, int by_polynomial) {
    if (by_polynomial && x >= AT_EX2_POLY3_LOW)
        return (double)at_softmax_ex2_poly3(x);
    return at_special_value(AT_SPECIAL_ex2, flushes(math), (double)x);
}

/* What is subtracted for a maximum of m. */
static float base_of(double m) { return isinf(m) && m < 0 ? 0 : (float)m; }

/* ---- scores ---- */

/* Another libm's tanh is within 2 ulp, 4u, of the true one, and in f32 5u of the modelled one; f64: two libms. A zero stays,
 * and far out every one gives 1. */
static struct at_span libm_tanh(const struct at_softmax_math *math, double y) {
    const double t = at_softmax_round(math, tanh(y)), wide = math->f64 ? 0x1p-50 : 5 * 0x1p-24 * (1 + 0x1p-20);
    if (isnan(y) || y == 0 || fabs(y) > (math->f64 ? 40 : 22))
        return point(t);
    const double more = fabs(t) * wide + (math->f64 ? 0x1p-1073 : 0x1p-148);
    return (struct at_span){ fmax(t - more, -1), t, fmin(t + more, 1) };
}

static struct at_span tanh_of(const struct at_softmax_math *math, double y) {
    const float two_log2_e = 2 * log2_e;
    switch ((enum at_tanh)math->numerics->tanh) {
    case AT_TANH_APPROX:
        return point(at_special_value(AT_SPECIAL_tanh, 0, y));
    case AT_TANH_EX2_RCP: {
        const float e = (float)at_special_value(AT_SPECIAL_ex2, 1, (double)((float)y * two_log2_e));
        return point((double)fmaf(-2, (float)at_special_value(AT_SPECIAL_rcp, 1, (double)(1 + e)), 1));
    }
    default:
        return libm_tanh(math, y);
    }
}

/* Not inlined: gcc 12 makes one vector product of two of the three ends and leaves their rounding to f32 out (seen on
 * 12.2 at -O2; test_softmax_capped.c). */
__attribute__((noinline)) static double times_cap(const struct at_softmax_math *math, double t) {
    return at_softmax_round(math, t * math->cap);
}

static double biased(const struct at_softmax_math *math, const struct at_softmax_form *form, double s, double away) {
    const double slope = form->slope;
    if (math->numerics->fir_fma)
        return math->f64 ? fma(slope, away, s) : (double)fmaf((float)slope, (float)away, (float)s);
    return math->f64 ? s + slope * away : (double)((float)s + (float)slope * (float)away);
}

struct at_span at_softmax_score(const struct at_softmax_math *math, const struct at_softmax_form *form, double dot,
                                int64_t t) {
    struct at_span s = point(at_softmax_round(math, dot * math->score_scale));
    if (math->cap > 0) {
        s = tanh_of(math, at_softmax_round(math, dot * math->to_cap));
        s = (struct at_span){ times_cap(math, s.low), times_cap(math, s.mid), times_cap(math, s.high) };
    }
    if (form->slope > 0 || form->slope < 0) {
        const double away = (double)t - form->place;
        s = (struct at_span){ biased(math, form, s.low, away), biased(math, form, s.mid, away),
                              biased(math, form, s.high, away) };
    }
    return s;
}

struct at_span at_softmax_larger(struct at_span m, struct at_span s) {
    return (struct at_span){ s.low > m.low ? s.low : m.low, s.mid > m.mid ? s.mid : m.mid,
                             s.high > m.high ? s.high : m.high };
}

/* ---- weights and factors ---- */

static int is_range(struct at_span x) { return x.low < x.high; }

/* What is known of exponentials at arguments between two others: within the error of each of the ends, whose exponential
 * need not be monotone; the roundings of exp_arg = fma grow with the maximum. */
static double slack(const struct at_softmax_math *math, double m) {
    const struct at_numerics *n = math->numerics;
    const double u = math->f64 ? 0x1p-53 : 0x1p-24;
    return (n->ex2_poly3 ? 0x1p-12 : 16 * u) + (n->exp_arg == AT_EXP_ARG_FMA ? 8 * u * fabs(m) : 0);
}

/* The hull of exponentials of s - m for s and m in their ranges, s <= m: from `lowest` = exp(s.low - m.high) to `highest`,
 * exp(s.high - m.low) or 1 where that is above. */
static struct at_span hull(const struct at_softmax_math *math, struct at_span lowest, struct at_span mid,
                           struct at_span highest, double m) {
    const double wide = slack(math, m);
    return (struct at_span){ fmin(lowest.low * (1 - wide), mid.low), mid.mid,
                             fmax(highest.high * (1 + wide), mid.high) };
}

static struct at_span weight_of(const struct at_softmax_math *math, double s, double m, int64_t i) {
    const struct at_numerics *n = math->numerics;
    const float base = base_of(m), b = math->log2_scale;
    if (n->exp == AT_EXP_LIBM)
        return libm_exp(math, s, isinf(m) && m < 0 ? 0 : m);
    const float x = n->exp_arg == AT_EXP_ARG_FMA ? fmaf((float)s, b, -(base * b)) : ((float)s - base) * log2_e;
    return point(ex2(math, x, i % AT_EX2_POLY3_OF >= AT_EX2_POLY3_OF - n->ex2_poly3));
}

struct at_span at_softmax_weight(const struct at_softmax_math *math, struct at_span s, struct at_span m, int64_t i) {
    const struct at_span mid = weight_of(math, s.mid, m.mid, i);
    if (isnan(s.mid) || (!is_range(s) && !is_range(m)))
        return mid;
    return hull(math, weight_of(math, s.low, m.high, i), mid, weight_of(math, fmin(s.high, m.low), m.low, i), m.mid);
}

static struct at_span factor_of(const struct at_softmax_math *math, double old, double now) {
    const struct at_numerics *n = math->numerics;
    if (old == now)
        return point(1);
    if (n->exp == AT_EXP_LIBM)
        return libm_exp(math, old, isinf(now) && now < 0 ? 0 : now);
    const float difference = (float)old - base_of(now);
    return point(ex2(math, difference * (n->exp_arg == AT_EXP_ARG_FMA ? math->log2_scale : log2_e), 0));
}

struct at_span at_softmax_factor(const struct at_softmax_math *math, struct at_span old, struct at_span now) {
    const struct at_span mid = factor_of(math, old.mid, now.mid);
    if (!is_range(old) && !is_range(now))
        return mid;
    return hull(math, factor_of(math, old.low, now.high), mid, factor_of(math, fmin(old.high, now.low), now.low),
                now.mid);
}

struct at_span at_softmax_sum_factor(const struct at_softmax_math *math, struct at_span r) {
    if (math->numerics->rescale == AT_RESCALE_FACTOR)
        return r;
    return (struct at_span){ at_round(AT_F16, r.low), at_round(AT_F16, r.mid), at_round(AT_F16, r.high) };
}

struct at_span at_softmax_p(const struct at_softmax_math *math, struct at_span w) {
    return (struct at_span){ round_to(math->p, w.low), round_to(math->p, w.mid), round_to(math->p, w.high) };
}

struct at_span at_span_scale(enum at_format format, struct at_span x, struct at_span factor) {
    return (struct at_span){ round_to(format, x.low * (x.low < 0 ? factor.high : factor.low)),
                             round_to(format, x.mid * factor.mid),
                             round_to(format, x.high * (x.high < 0 ? factor.low : factor.high)) };
}

/* One rounding: float's own addition, since a double's sum of two floats may be rounded already. */
static double sum_of(const struct at_softmax_math *math, double x, double y) {
    return math->f64 ? x + y : (double)((float)x + (float)y);
}

struct at_span at_softmax_add(const struct at_softmax_math *math, struct at_span x, struct at_span y) {
    return (struct at_span){ sum_of(math, x.low, y.low), sum_of(math, x.mid, y.mid), sum_of(math, x.high, y.high) };
}

struct at_span at_softmax_scale_sum(const struct at_softmax_math *math, struct at_span x, struct at_span factor) {
    const struct at_span out = { x.low * factor.low, at_softmax_round(math, x.mid * factor.mid), x.high * factor.high };
    return math->ordered ? at_span_scale(math->f64 ? AT_F64 : AT_F32, x, factor) : out;
}

struct at_span at_softmax_add_sum(const struct at_softmax_math *math, struct at_span x, struct at_span y) {
    const struct at_span out = at_softmax_add(math, x, y);
    return math->ordered ? out : (struct at_span){ x.low + y.low, out.mid, x.high + y.high };
}

struct at_span at_softmax_any_order(const struct at_softmax_math *math, struct at_span sum, int64_t depth) {
    const double u = math->f64 ? 0x1p-53 : 0x1p-24;
    const double e = expm1((double)depth * (u + 0x1p-52)) + 0x1p-52;
    return (struct at_span){ sum.low * (1 - e), sum.mid, sum.high * (1 + e) };
}

enum { STEP_MAX = 64 };

/* The weights that push the sum of n <= STEP_MAX terms up, or down; 1 when they differ from the opposite ones. */
static int end_weights(int n, const struct at_span *p, const double *v, int64_t sv, int up, double *weights) {
    int differs = 0;
    for (int t = 0; t < n; t++) {
        int high = (v[t * sv] >= 0) == up;
        weights[t] = high ? p[t].high : p[t].low;
        differs |= p[t].low < p[t].high && v[t * sv] != 0;
    }
    return differs;
}

/* A weight or an element of V as the unit multiplies it. What tf32 leaves of a number does not fall where the number rises, so
 * the ends of an interval are those of what is left. */
static double operand(const struct at_softmax_math *math, double x) {
    return at_unit_is_tf32(math->pv.unit) ? at_tf32_operand(math->pv.unit, x) : x;
}

/* How far a tensor core's cut sum can be from the exact one, for any weights within p. */
static double cut_slack(const struct at_softmax_math *math, const struct at_tc_rule *rule, int n,
                        const struct at_span *p, const double *v, int64_t sv, struct at_span acc) {
    double size = fmax(fabs(acc.low), fabs(acc.high)), v_max = 0;
    for (int t = 0; t < n; t++) {
        const double of_v = fabs(operand(math, v[t * sv]));
        size = fmax(size, operand(math, p[t].high) * of_v);
        v_max = fmax(v_max, of_v);
    }
    /* 2^e_max: at most the largest term, or what an operand below the normal range counts as */
    double normal = ldexp(1.0, at_format_info(math->pv.input)->emin);
    double top = fmax(fmax(size, 2 * normal * fmax(v_max, 1)), ldexp(1.0, rule->zero_exponent));
    return (n + 2) * ldexp(top, -rule->kept_bits);
}

/* One end after a step: in the unit's own arithmetic, or for a tensor core the exact sum and its slack, rounded. */
static double pv_end(const struct at_softmax_math *math, int n, const double *weights, const double *v, int64_t sv,
                     double c, double slack) {
    const struct at_tc_rule *rule = at_unit_rule(math->pv.unit);
    if (!rule)
        return at_accumulate(&math->pv, n, weights, 1, v, sv, c, NULL);
    for (int t = 0; t < n; t++)
        c += operand(math, weights[t]) * operand(math, v[t * sv]);
    c = at_tc_convert(rule, c + slack);
    return math->accumulator == AT_F16 ? at_guarded(math->pv.guard, c) : c;
}

/* n terms that are one step of a tensor core, or any number of another unit's. */
static struct at_span pv_step(const struct at_softmax_math *math, int n, const struct at_span *p, const double *v,
                              int64_t sv, struct at_span acc) {
    const struct at_tc_rule *rule = at_unit_rule(math->pv.unit);
    double weights[STEP_MAX];
    for (int t = 0; t < n; t++)
        weights[t] = p[t].mid;
    struct at_span out = point(at_accumulate(&math->pv, n, weights, 1, v, sv, acc.mid, NULL));
    int differs = end_weights(n, p, v, sv, 0, weights) || acc.low < acc.high;
    if (!differs)
        return out;
    double slack = rule ? cut_slack(math, rule, n, p, v, sv, acc) : 0;
    out.low = pv_end(math, n, weights, v, sv, acc.low, -slack);
    end_weights(n, p, v, sv, 1, weights);
    out.high = pv_end(math, n, weights, v, sv, acc.high, slack);
    return out;
}

struct at_span at_softmax_pv(const struct at_softmax_math *math, int64_t n, const struct at_span *p, const double *v,
                             int64_t sv, struct at_span acc, int intervals, const struct at_watch *watch) {
    const ptrdiff_t stride = sizeof *p / sizeof p->mid;
    double mid = at_accumulate(&math->pv, n, &p->mid, stride, v, sv, acc.mid, watch);
    if (!intervals)
        return point(mid);
    const int64_t step = at_unit_rule(math->pv.unit) ? at_order_chunk(&math->pv) : STEP_MAX;
    for (int64_t t = 0; t < n; t += step)
        acc = pv_step(math, (int)(n - t < step ? n - t : step), p + t, v + t * sv, sv, acc);
    acc.mid = mid;
    return acc;
}

static double quotient(const struct at_softmax_math *math, double x, double y) {
    const float l = (float)y;
    switch ((enum at_divide)math->numerics->divide) {
    case AT_DIVIDE_RECIPROCAL:
        return math->f64 ? x * (1 / y) : (double)((float)x * (1 / l));
    case AT_DIVIDE_RECIPROCAL_F16: /* no f64: the product is exact in double */
        return at_round(AT_F16, x * at_round(AT_F16, (double)(1 / l)));
    case AT_DIVIDE_RCP_APPROX:
    case AT_DIVIDE_RCP_APPROX_FTZ:
        return (double)((float)x *
                        (float)at_special_value(AT_SPECIAL_rcp, math->numerics->divide == AT_DIVIDE_RCP_APPROX_FTZ, y));
    default:
        return math->f64 ? x / y : (double)((float)x / l);
    }
}

/* Each way to divide is monotone in the sum but for rcp.approx, which nobody has proven to be: there the ends of an
 * interval are moved by its error, 1.65u, on either side. */
struct at_span at_softmax_divide(const struct at_softmax_math *math, struct at_span acc, struct at_span l) {
    struct at_span out = { quotient(math, acc.low, acc.low < 0 ? l.low : l.high), quotient(math, acc.mid, l.mid),
                           quotient(math, acc.high, acc.high < 0 ? l.high : l.low) };
    if (math->numerics->divide >= AT_DIVIDE_RCP_APPROX && l.low < l.high) {
        out.low -= 4 * 0x1p-24 * fabs(out.low) + 0x1p-149;
        out.high += 4 * 0x1p-24 * fabs(out.high) + 0x1p-149;
    }
    return out;
}

/* libm: the kernel's logarithm is within 2u |log l| of the true one; the last terms are double's own error here. */
static struct at_span libm_lse(const struct at_softmax_math *math, struct at_span max, struct at_span l) {
    const double m = max.mid, u = math->f64 ? 0x1p-53 : 0x1p-24, floor = 4 * 0x1p-53 * fabs(m);
    double low = log(l.low), mid = at_softmax_round(math, log(l.mid)), high = log(l.high);
    low -= (2 * u + 4 * 0x1p-53) * fabs(low) + floor;
    high += (2 * u + 4 * 0x1p-53) * fabs(high) + floor;
    if (math->numerics->exp_arg == AT_EXP_ARG_FMA) {
        const double scale = (double)math->scale;
        return (struct at_span){ (double)(float)(max.low * scale + low),
                                 (double)fmaf((float)m, math->scale, (float)mid),
                                 (double)(float)(max.high * scale + high) };
    }
    return (struct at_span){ at_softmax_round(math, max.low + low), sum_of(math, m, mid),
                             at_softmax_round(math, max.high + high) };
}

/* By the unit: lg2(l) log(2), rounded. */
static double unit_lse(const struct at_softmax_math *math, double m, double l) {
    const int ftz = math->numerics->lse == AT_LSE_LG2_APPROX_FTZ;
    const float log_l = (float)at_special_value(AT_SPECIAL_lg2, ftz, l) * log_2;
    if (math->numerics->exp_arg == AT_EXP_ARG_FMA)
        return (double)fmaf((float)m, math->scale, log_l);
    return (double)((float)m + log_l);
}

/* lg2.approx has an error of 2^-22.14 near 1 and of 3.85u beyond. */
struct at_span at_softmax_lse(const struct at_softmax_math *math, struct at_span m, struct at_span l) {
    if (math->numerics->lse == AT_LSE_LIBM)
        return libm_lse(math, m, l);
    struct at_span out = { unit_lse(math, m.low, l.low), unit_lse(math, m.mid, l.mid), unit_lse(math, m.high, l.high) };
    if (l.low < l.high) {
        const double more = 0x1p-21 + 16 * 0x1p-24 * fmax(fabs(log(l.low)), fabs(log(l.high)));
        out.low -= more + 4 * 0x1p-24 * fabs(out.low);
        out.high += more + 4 * 0x1p-24 * fabs(out.high);
    }
    return out;
}
