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
    if (unit == AT_UNIT_TC_FP8)
        return AT_FAIL(AT_UNSUPPORTED, "%s with operands of 8 bits, here %s and %s", which, name,
                       at_format_info(dtype)->name);
    if (is_tensor_core(unit) && (offered != dtype || (offered != AT_F16 && offered != AT_BF16)))
        return AT_FAIL(AT_UNSUPPORTED, "%s on tensor cores with operands %s and %s, wanted both f16 or both bf16",
                       which, name, at_format_info(dtype)->name);
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
    return check_operands("p.v", numerics->pv_unit, (enum at_format)numerics->p, dtype);
}

/* The smallest magnitude that rounds to infinity; double's own range is the reference's as well. */
static double range_end(enum at_format format) {
    const struct at_format_info *info = at_format_info(format);
    return format == AT_F64 ? INFINITY : info->max + ldexp(1.0, info->emax - info->precision);
}

static void set_scores(const struct at_problem *problem, const struct at_numerics *numerics,
                       const struct at_format_info *work, struct at_softmax_limit *out) {
    const struct at_format_info *f32 = at_format_info(AT_F32), *dtype = at_format_info(problem->dtype);
    out->qk = at_order_qk(numerics);
    out->qk.input = problem->dtype;
    out->e_qk = at_accumulate_error(&out->qk, problem->sizes.d).e;
    out->qk_end = range_end(at_unit_format(out->qk.unit));
    out->q_end = INFINITY;
    if (numerics->scale_on == AT_SCALE_ON_SCORE) {
        /* an f64 product is rounded before it is stored as f32 */
        out->u_score = work->u + (out->qk.unit == AT_UNIT_F64 && work == f32 ? 0x1p-52 : 0);
        out->eta_score = work->eta;
        return;
    }
    out->u_q = f32->u;
    out->eta_q = f32->eta;
    out->q_end = range_end(AT_F32);
    if (numerics->scale_on == AT_SCALE_ON_Q_ROUNDED && problem->dtype != AT_F32) {
        out->u_q = (1 + f32->u) * (1 + dtype->u) - 1;
        out->eta_q = f32->eta * (1 + dtype->u) + dtype->eta;
        out->q_end = range_end(problem->dtype);
    }
    if (out->qk.unit == AT_UNIT_F64) { /* the finished f64 dot product goes into f32 arithmetic */
        out->u_score = work == f32 ? f32->u : 0;
        out->eta_score = work == f32 ? f32->eta : 0;
    }
}

static void set_exponential(const struct at_numerics *numerics, const struct at_format_info *work,
                            struct at_softmax_limit *out) {
    out->u_argument = work->u;
    out->u_exp = 2 * work->u;
    out->flush = 2 * work->eta;
    out->u_log = 2 * work->u;
    out->u_divide = work->u;
    out->eta_divide = work->eta;
    if (numerics->exp == AT_EXP_LIBM)
        return;
    const double u = at_format_info(AT_F32)->u;
    out->u_argument = 2.25 * u;
    out->u_shift = numerics->block || numerics->split ? u : 0;
    out->u_exp = 4 * u; /* an H200's ex2.approx: 2.45 u at most, on every f32 (datasets/measurements/h200_exp2.txt) */
    out->flush = 0x1p-126;
    out->u_log = 8 * u;
    out->log_floor = 0x1p-21;
    out->u_max = 3 * u;
    out->u_divide = 4 * u;
    out->eta_divide = 0x1p-126;
}

static void set_sums(const struct at_numerics *numerics, const struct at_format_info *work,
                     struct at_softmax_limit *out) {
    const struct at_format_info *accumulator;
    out->pv = at_order_pv(numerics);
    accumulator = at_format_info(at_unit_format(out->pv.unit));
    out->pv_end = range_end(at_unit_format(out->pv.unit));
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
    if (out->pv.unit == AT_UNIT_F64 && work != at_format_info(AT_F64))
        out->u_store = work->u;
}

static void set_outputs(const struct at_problem *problem, const struct at_format_info *work,
                        struct at_softmax_limit *out) {
    const struct at_format_info *o = at_format_info(problem->tensors[AT_SOFTMAX_O].format);
    const struct at_format_info *f32 = at_format_info(AT_F32);
    out->u_out = o == work ? 0 : o->u;
    out->eta_out = o == work ? 0 : o->eta;
    out->out_end = range_end(problem->tensors[AT_SOFTMAX_O].format);
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
    out->block = numerics->block;
    out->score_end = range_end(format);
    set_scores(problem, numerics, work, out);
    set_exponential(numerics, work, out);
    set_sums(numerics, work, out);
    set_outputs(problem, work, out);
    return AT_OK;
}
