/* What a kernel with declared numerics must produce, bit for bit, and which declarations there are.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "gemm/gemm.h"

static double once(enum at_format wide, double x) { return wide == AT_F64 ? x : (double)(float)x; }

/* Why a unit does not multiply values of this format, NULL if it does. */
static const char *refused(enum at_unit unit, enum at_format format) {
    switch (unit) {
    case AT_UNIT_F64:
    case AT_UNIT_F32:
    case AT_UNIT_F32_FMA:
        return NULL;
    case AT_UNIT_TC_F32:
        return format == AT_F16 || format == AT_BF16 ? NULL : "wanted f16 or bf16";
    case AT_UNIT_TC_FP8:
    case AT_UNIT_TC_FP8_ADA:
    case AT_UNIT_TC_FP8_BY_F16:
    case AT_UNIT_TC_FP8_BY_F16_F16:
        return format == AT_E4M3 || format == AT_E5M2 ? NULL : "wanted e4m3 or e5m2";
    case AT_UNIT_TC_TF32:
    case AT_UNIT_TC_TF32_RNA:
        return format == AT_F32 ? NULL : "wanted f32";
    case AT_UNIT_TC_F16:
    case AT_UNIT_F16_FMA:
        break;
    }
    return format == AT_F16 ? NULL : "wanted f16";
}

at_status at_gemm_declare(const struct at_problem *p, const struct at_numerics *numerics,
                          struct at_gemm_declared *out) {
    AT_TRY(at_numerics_check(numerics));
    const enum at_unit unit = (enum at_unit)numerics->qk_unit;
    const char *why = refused(unit, p->dtype);
    if (why)
        return AT_FAIL(AT_UNSUPPORTED, "qk_unit multiplies %s here, %s", at_format_info(p->dtype)->name, why);
    *out = (struct at_gemm_declared){ .order = at_order_qk(numerics), .length = at_gemm_own_of(p).k, .parts = 1 };
    out->order.input = p->dtype;
    if (numerics->split % at_order_chunk(&out->order))
        return AT_FAIL(AT_UNSUPPORTED, "split is %d, wanted whole steps of %d products", numerics->split,
                       at_order_chunk(&out->order));
    if (numerics->split > 0 && numerics->split < at_gemm_own_of(p).k) {
        out->length = numerics->split;
        out->parts = (at_gemm_own_of(p).k + numerics->split - 1) / numerics->split;
    }
    out->wide = unit == AT_UNIT_F64 ? AT_F64 : AT_F32;
    out->factor = (double)p->params.scale;
    for (int t = AT_GEMM_SCALE_A; at_gemm_own_of(p).scales && t <= AT_GEMM_SCALE_B; t++)
        out->factor = once(out->wide, out->factor * at_tensor_get(&p->tensors[t], 0));
    return AT_OK;
}

/* Element j of a row before it is rounded to the format of d. Sums of two floats and products of two floats are rounded from
 * double as from the exact value: 53 >= 2 * 24 + 2. */
static double model_element(const struct at_problem *p, const struct at_gemm_declared *d, const double *a,
                            const double *b, int64_t j, const struct at_watch *watch) {
    double sum = 0;
    for (int64_t first = 0; first < at_gemm_own_of(p).k; first += d->length) {
        const int64_t left = at_gemm_own_of(p).k - first, n = left < d->length ? left : d->length;
        const double part = at_accumulate(&d->order, n, a + first, 1, b + first, 1, 0, watch);
        sum = first == 0 ? part : once(d->wide, sum + part);
    }
    double value = once(d->wide, d->factor * sum);
    if (at_gemm_own_of(p).bias != AT_GEMM_BIAS_NONE)
        value = once(d->wide, value + at_gemm_addend(p, j));
    if (watch)
        at_gemm_note(watch->ledger, watch->place.q, watch->place.k, sum, value);
    return value;
}

/* The row behind those of d: the largest magnitude of all, in f32. */
static at_status model_amax(const struct at_problem *p, const struct at_gemm_declared *d, const double *b,
                            struct at_eval *eval) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    struct at_gemm_most most = { 0 };
    for (int64_t row = 0; row < z.m; row++) {
        double *a = at_gemm_rows(p, row, 1);
        if (!a)
            return AT_FAIL(AT_NO_MEMORY, "no memory for a row of %lld", (long long)z.k);
        for (int64_t j = 0; j < z.n; j++)
            at_gemm_raise(&most, model_element(p, d, a, b + j * z.k, j, NULL), 0);
        free(a);
    }
    if (eval->value[AT_GEMM_AMAX])
        eval->value[AT_GEMM_AMAX][0] = at_round(AT_F32, most.value);
    if (eval->limit[AT_GEMM_AMAX])
        eval->limit[AT_GEMM_AMAX][0] = 0; /* to the bit */
    return AT_OK;
}

static void model_row(const struct at_problem *p, const struct at_gemm_declared *d, const double *a, const double *b,
                      int64_t row, struct at_eval *eval) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    for (int64_t j = 0; j < z.n; j++) {
        const struct at_watch watch = { eval->ledger, AT_STAGE_qk_acc, { .q = row, .k = j } };
        const double value = model_element(p, d, a, b + j * z.k, j, eval->ledger ? &watch : NULL);
        if (eval->value[AT_GEMM_D])
            eval->value[AT_GEMM_D][row * z.n + j] = at_round((enum at_format)z.out, value);
        if (eval->limit[AT_GEMM_D])
            eval->limit[AT_GEMM_D][row * z.n + j] = 0; /* to the bit */
    }
}

at_status at_gemm_model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                        struct at_eval *eval) {
    at_status status = AT_OK;
    const struct at_gemm_own z = at_gemm_own_of(p);
    const int64_t end = row1 < z.m ? row1 : z.m;
    struct at_gemm_declared declared;
    AT_TRY(at_gemm_declare(p, numerics, &declared));
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "free_order=1: the variant declares no order of summation to follow");
    double *a = at_gemm_rows(p, row0 < end ? row0 : 0, row0 < end ? end - row0 : 0), *own_b = NULL;
    const double *b = eval->prepared ? eval->prepared : (own_b = at_gemm_columns(p));
    if (!a || !b)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for factors of %lld", (long long)z.k);
    for (int64_t row = row0; row < end; row++)
        model_row(p, &declared, a + (row - row0) * z.k, b, row, eval);
    if (row1 > z.m)
        AT_TRY_OUT(model_amax(p, &declared, b, eval));
out:
    free(a);
    free(own_b);
    return status;
}
