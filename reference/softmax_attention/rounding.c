/* The constants of a softmax declaration: what each step of a kernel with these numerics rounds.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Softmax arithmetic (scores, weights, sums, o before its last rounding) is f32; f64 when both units are
 * f64. limit.c says where each constant enters. */
#include <math.h>

#include "softmax_attention/internal.h"

static int is_tensor_core(int unit) { return unit == AT_UNIT_TC_F32 || unit == AT_UNIT_TC_F16; }

int at_softmax_is_f64(const struct at_numerics *numerics) {
    return numerics->qk_unit == AT_UNIT_F64 && numerics->pv_unit == AT_UNIT_F64;
}

/* f32 as the format of P says "none narrower"; f64 cannot be narrower than anything. */
int at_softmax_rounds_p(const struct at_numerics *numerics) { return numerics->p != AT_F32 && numerics->p != AT_F64; }

/* Operands a unit takes: `p` is what the problem or P offers. */
static at_status check_operands(const char *which, int unit, enum at_format offered, enum at_format dtype) {
    const char *name = at_format_info(offered)->name;
    if (unit == AT_UNIT_TC_FP8 || unit == AT_UNIT_TC_FP8_ADA || unit == AT_UNIT_TC_FP8_BY_F16 ||
        unit == AT_UNIT_TC_FP8_BY_F16_F16)
        return AT_FAIL(AT_UNSUPPORTED, "%s with operands of 8 bits, here %s and %s", which, name,
                       at_format_info(dtype)->name);
    if (is_tensor_core(unit) && (offered != dtype || (offered != AT_F16 && offered != AT_BF16)))
        return AT_FAIL(AT_UNSUPPORTED, "%s on tensor cores with operands %s and %s, wanted both f16 or both bf16",
                       which, name, at_format_info(dtype)->name);
    if (at_unit_is_tf32(unit) && ((offered != AT_F32 && offered != AT_TF32) || dtype != AT_F32))
        return AT_FAIL(AT_UNSUPPORTED, "%s as tf32 with operands %s and %s, wanted f32 (or P in tf32)", which, name,
                       at_format_info(dtype)->name);
    if (unit == AT_UNIT_F16_FMA && (offered != AT_F16 || dtype != AT_F16))
        return AT_FAIL(AT_UNSUPPORTED, "%s by f16 FMA with operands %s and %s, wanted f16", which, name,
                       at_format_info(dtype)->name);
    return AT_OK;
}

at_status at_softmax_check_numerics(const struct at_problem *problem, const struct at_numerics *numerics) {
    AT_TRY(at_numerics_check(numerics));
    enum at_format dtype = problem->dtype;
    enum at_format q = numerics->scale_on == AT_SCALE_ON_Q ? AT_F32 : dtype;
    AT_TRY(check_operands("q.k", numerics->qk_unit, q, dtype));
    if (numerics->scale_on == AT_SCALE_ON_TAPS || numerics->pv_spread)
        return AT_FAIL(AT_UNSUPPORTED, "softmax with scale_on=taps or pv_spread: it has no taps, and keys in order");
    if (numerics->exp == AT_EXP_TANH_APPROX)
        return AT_FAIL(AT_UNSUPPORTED, "softmax with exp=tanh_approx, which is no exponential");
    if (at_softmax_is_f64(numerics) &&
        (numerics->exp != AT_EXP_LIBM || numerics->divide >= AT_DIVIDE_RCP_APPROX || numerics->lse != AT_LSE_LIBM))
        return AT_FAIL(AT_UNSUPPORTED, "softmax in f64 by the special-function unit, whose results are f32");
    if (at_softmax_is_f64(numerics) &&
        (numerics->divide == AT_DIVIDE_RECIPROCAL_F16 || numerics->rescale != AT_RESCALE_FACTOR))
        return AT_FAIL(AT_UNSUPPORTED, "softmax in f64 with a reciprocal or a factor of f16");
    if (at_softmax_is_f64(numerics) && numerics->tanh != AT_TANH_LIBM)
        return AT_FAIL(AT_UNSUPPORTED, "softmax in f64 with a tanh of the special-function unit, which is f32");
    return check_operands("p.v", numerics->pv_unit, (enum at_format)numerics->p, dtype);
}

static void set_scores(const struct at_problem *problem, const struct at_numerics *numerics,
                       const struct at_format_info *work, struct at_softmax_limit *out) {
    const struct at_format_info *f32 = at_format_info(AT_F32), *dtype = at_format_info(problem->dtype);
    out->qk = at_order_qk(numerics);
    out->qk.input = problem->dtype;
    out->e_qk = at_accumulate_error(&out->qk, problem->sizes.d).e;
    out->qk_end = at_format_info(at_unit_format(out->qk.unit))->end;
    out->q_end = INFINITY;
    if (numerics->scale_on == AT_SCALE_ON_SCORE) {
        /* an f64 product is rounded before it is stored as f32 */
        out->u_score = work->u + (out->qk.unit == AT_UNIT_F64 && work == f32 ? 0x1p-52 : 0);
        out->eta_score = work->eta;
        return;
    }
    out->u_q = f32->u;
    out->eta_q = f32->eta;
    out->q_end = at_format_info(AT_F32)->end;
    if (numerics->scale_on == AT_SCALE_ON_Q_ROUNDED && problem->dtype != AT_F32) {
        out->u_q = (1 + f32->u) * (1 + dtype->u) - 1;
        out->eta_q = f32->eta * (1 + dtype->u) + dtype->eta;
        out->q_end = at_format_info(problem->dtype)->end;
    }
    if (out->qk.unit == AT_UNIT_F64) { /* the finished f64 dot product goes into f32 arithmetic */
        out->u_score = work == f32 ? f32->u : 0;
        out->eta_score = work == f32 ? f32->eta : 0;
    }
}

/* tanh.approx's largest error in units in the last place (reference/special_function/special_function.c); tanh by ex2 and
 * rcp, in u of 1: limit.c. */
static const double tanh_approx_units = 134, tanh_ex2_floor = 7.25;

static void set_capped(const struct at_problem *problem, const struct at_numerics *numerics,
                       const struct at_format_info *work, struct at_softmax_limit *out) {
    out->u_bias = work->u;
    if (!(at_softmax_own_of(problem).softcap > 0))
        return;
    out->u_capped = 3 * work->u;
    out->eta_capped = 3 * work->eta;
    out->u_tanh = numerics->tanh == AT_TANH_LIBM     ? 4 * work->u
                  : numerics->tanh == AT_TANH_APPROX ? 2 * tanh_approx_units * work->u
                                                     : work->u;
    out->tanh_floor = numerics->tanh == AT_TANH_EX2_RCP ? tanh_ex2_floor * work->u : work->eta;
}

/* The special-function unit's largest relative errors in units of u = 2^-24, over all f32 (tests/reference/special); of lg2 in
 * [1/2, 2] an absolute one. */
static const double ex2_error = 2.45, rcp_error = 1.65, lg2_error = 3.85, lg2_floor = 2.153e-7;
/* The polynomial of degree 3, and its roundings. */
static const double poly3_error = 8.58e-5;

static void set_exponential(const struct at_numerics *numerics, const struct at_format_info *work,
                            struct at_softmax_limit *out) {
    const double u = work->u;
    const int cut = numerics->block || numerics->split, folded = numerics->exp_arg == AT_EXP_ARG_FMA;
    out->u_argument = u;
    out->u_exp = out->u_weight = 2 * u;
    out->flush = 2 * work->eta;
    if (numerics->exp == AT_EXP_LIBM)
        return;
    out->u_argument = (folded && cut ? 4.25 : 2.25) * u;
    out->u_shift = folded && cut ? u * (1 + 0x1p-20) : 0;
    out->u_max = folded && !cut ? u * (1 + 0x1p-20) : 0;
    out->u_exp = ex2_error * u;
    out->u_weight = numerics->ex2_poly3 ? poly3_error : out->u_exp;
    out->flush = numerics->exp == AT_EXP_EX2_APPROX_FTZ ? 0x1p-126 : 0x1.8p-148;
    if (folded)
        out->score_end = 0x1p29; /* from 2^30 on the rounding of max b may alone be more than the range of exponents */
}

/* A product in f16 is o itself where o is of f16: set_outputs() has its rounding. */
static void set_reciprocal_f16(const struct at_format_info *work, struct at_softmax_limit *out) {
    const struct at_format_info *f16 = at_format_info(AT_F16);
    out->u_divide = (1 + work->u) * (1 + f16->u) - 1;
    out->eta_reciprocal = f16->eta;
    out->eta_divide = 0;
}

/* The division at the end, and the logarithm. */
static void set_epilogue(const struct at_numerics *numerics, const struct at_format_info *work,
                         struct at_softmax_limit *out) {
    const double u = work->u;
    out->u_log = 2 * u;
    out->u_divide = u;
    out->eta_divide = work->eta;
    if (numerics->divide == AT_DIVIDE_RECIPROCAL_F16)
        set_reciprocal_f16(work, out);
    else if (numerics->divide != AT_DIVIDE_DIVISION)
        out->u_divide = (1 + (numerics->divide == AT_DIVIDE_RECIPROCAL ? u : rcp_error * u)) * (1 + u) - 1;
    if (numerics->lse == AT_LSE_LIBM)
        return;
    out->u_log = (lg2_error + 1.06) * u * (1 + 0x1p-20); /* log(2) as f32 is 0.05u off, the product rounds */
    out->log_floor = lg2_floor * 0.6932;
}

static void set_sums(const struct at_numerics *numerics, const struct at_format_info *work,
                     struct at_softmax_limit *out) {
    const struct at_format_info *accumulator;
    out->pv = at_order_pv(numerics);
    accumulator = at_format_info(at_unit_format(out->pv.unit));
    out->pv_end = at_format_info(at_unit_format(out->pv.unit))->end;
    out->pv_share = 1;
    out->u_sum = work->u;
    out->eta_sum = work->eta;
    out->u_merge = work->u;
    out->eta_merge = work->eta;
    if (at_softmax_rounds_p(numerics)) {
        out->u_p = at_format_info((enum at_format)numerics->p)->u;
        out->eta_p = at_format_info((enum at_format)numerics->p)->eta;
    }
    if (numerics->block) {
        out->u_rescale = accumulator->u;
        out->eta_rescale = accumulator->eta;
    }
    if (numerics->rescale == AT_RESCALE_F16) {
        const struct at_format_info *f16 = at_format_info(AT_F16);
        out->u_rescale = (1 + f16->u) * (1 + accumulator->u) - 1;
        out->eta_factor = f16->eta;
    }
    if (out->pv.unit == AT_UNIT_F64 && work != at_format_info(AT_F64))
        out->u_store = work->u;
}

static void set_outputs(const struct at_problem *problem, const struct at_numerics *numerics,
                        const struct at_format_info *work, struct at_softmax_limit *out) {
    const struct at_format_info *o = at_format_info(problem->tensors[AT_SOFTMAX_O].format);
    const struct at_format_info *f32 = at_format_info(AT_F32);
    out->u_out = o == work ? 0 : o->u;
    out->eta_out = o == work ? 0 : o->eta;
    out->out_end = at_format_info(problem->tensors[AT_SOFTMAX_O].format)->end;
    if (numerics->divide == AT_DIVIDE_RECIPROCAL_F16 && o != at_format_info(AT_F16)) { /* a rounding to f16 before */
        const struct at_format_info *f16 = at_format_info(AT_F16);
        out->u_out = (1 + f16->u) * (1 + out->u_out) - 1;
        out->eta_out += f16->eta * (1 + o->u);
        out->out_end = fmin(out->out_end, at_format_info(AT_F16)->end);
    }
    out->u_add = work->u;
    out->u_lse = work == f32 ? 0 : f32->u;
}

at_status at_softmax_limit_init(const struct at_problem *problem, const struct at_numerics *numerics,
                                struct at_softmax_limit *out) {
    *out = (struct at_softmax_limit){ .d = problem->sizes.d, .scale = (double)problem->params.scale };
    out->q_end = out->qk_end = out->score_end = out->pv_end = out->out_end = INFINITY;
    if (!numerics)
        return AT_OK;
    AT_TRY(at_softmax_check_numerics(problem, numerics));
    const enum at_format format = at_softmax_is_f64(numerics) ? AT_F64 : AT_F32;
    const struct at_format_info *work = at_format_info(format);
    out->declared = 1;
    out->scale_on = numerics->scale_on;
    out->skips_zeros = numerics->pv_zero == AT_PV_ZERO_SKIPPED;
    out->split = numerics->split;
    out->splits = numerics->splits;
    out->block = numerics->block;
    out->score_end = at_format_info(format)->end;
    set_scores(problem, numerics, work, out);
    set_capped(problem, numerics, work, out);
    set_exponential(numerics, work, out);
    set_epilogue(numerics, work, out);
    set_sums(numerics, work, out);
    set_outputs(problem, numerics, work, out);
    return AT_OK;
}
