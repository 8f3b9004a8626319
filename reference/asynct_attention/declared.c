/* What the numerics of a variant mean for AsyncT.
 * SPDX-License-Identifier: Apache-2.0 */
#include "asynct_attention/declared.h"

#include <math.h>

/* Why a unit cannot multiply values of formats a and b, NULL if it can. */
static const char *refused(enum at_unit unit, enum at_format a, enum at_format b) {
    switch (unit) {
    case AT_UNIT_F64:
        return NULL;
    case AT_UNIT_F32:
    case AT_UNIT_F32_FMA:
        return a == AT_F64 || b == AT_F64 ? "wanted operands no wider than f32" : NULL;
    case AT_UNIT_TC_F32:
        return a == b && (a == AT_F16 || a == AT_BF16) ? NULL : "wanted both operands f16 or both bf16";
    case AT_UNIT_TC_FP8:
    case AT_UNIT_TC_FP8_ADA:
    case AT_UNIT_TC_FP8_BY_F16:
    case AT_UNIT_TC_FP8_BY_F16_F16:
        return "wanted another unit: nothing here is of 8 bits";
    case AT_UNIT_TC_TF32:
    case AT_UNIT_TC_TF32_RNA:
        return (a == AT_F32 || a == AT_TF32) && b == AT_F32 ? NULL : "wanted operands f32 (or P in tf32)";
    case AT_UNIT_TC_F16:
    case AT_UNIT_F16_FMA:
        break;
    }
    return a == AT_F16 && b == AT_F16 ? NULL : "wanted both operands f16";
}

static at_status check_unit(const char *name, enum at_unit unit, enum at_format a, enum at_format b) {
    const char *why = refused(unit, a, b);
    if (!why)
        return AT_OK;
    return AT_FAIL(AT_UNSUPPORTED, "%s multiplies %s by %s here, %s", name, at_format_info(a)->name,
                   at_format_info(b)->name, why);
}

at_status at_asynct_declared(const struct at_problem *problem, const struct at_numerics *numerics,
                             struct at_asynct_formats *out) {
    const enum at_unit qk = (enum at_unit)numerics->qk_unit, pv = (enum at_unit)numerics->pv_unit;
    AT_TRY(at_numerics_check(numerics));
    out->step = qk == AT_UNIT_F64 && pv == AT_UNIT_F64 ? AT_F64 : AT_F32;
    out->sum = pv == AT_UNIT_F64 ? AT_F64 : AT_F32;
    out->q = problem->dtype;
    if (numerics->scale_on == AT_SCALE_ON_Q)
        out->q = qk == AT_UNIT_F64 ? AT_F64 : AT_F32;
    enum at_format p = numerics->gamma_on == AT_GAMMA_AFTER_P ? out->step : (enum at_format)numerics->p;
    AT_TRY(check_unit("qk_unit", qk, out->q, problem->dtype));
    AT_TRY(check_unit("pv_unit", pv, p, problem->dtype));
    if (numerics->fir_order == AT_FIR_ORDER_POOLED && problem->params.fir_form != AT_FIR_POOLED)
        return AT_FAIL(AT_UNSUPPORTED, "fir_order=pooled needs fir_form=pooled, this problem gives taps");
    if (numerics->scale_on == AT_SCALE_ON_TAPS && numerics->fir_order == AT_FIR_ORDER_POOLED)
        return AT_FAIL(AT_UNSUPPORTED, "scale_on=taps with fir_order=pooled, which has no taps");
    if (numerics->scale_on == AT_SCALE_ON_TAPS && problem->params.relu_pre && !(problem->params.scale >= 0))
        return AT_FAIL(AT_UNSUPPORTED, "scale_on=taps with scale %g: behind the ReLU it would not change the sign",
                       (double)problem->params.scale);
    return AT_OK;
}

int64_t at_asynct_spread(const struct at_problem *problem, const struct at_numerics *numerics) {
    const int64_t page = problem->sizes.page, keys = numerics->pv_spread;
    return keys && page % keys ? 0 : keys;
}

int at_asynct_exact_factor(double x) {
    int exponent;
    return fabs(frexp(x, &exponent)) == 0.5 || x == 0;
}
