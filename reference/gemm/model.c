/* What a kernel with declared numerics must produce, bit for bit, and which declarations there are.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "gemm/gemm.h"

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
        return format == AT_E4M3 || format == AT_E5M2 ? NULL : "wanted e4m3 or e5m2";
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
    return AT_OK;
}

static double once(enum at_format wide, double x) { return wide == AT_F64 ? x : (double)(float)x; }

/* Sums of two floats and products of two floats are rounded from double as from the exact value: 53 >= 2 * 24 + 2. */
static double model_element(const struct at_problem *p, const struct at_gemm_declared *d, const double *a,
                            const double *b, const struct at_watch *watch) {
    double sum = 0;
    for (int64_t first = 0; first < at_gemm_own_of(p).k; first += d->length) {
        const int64_t left = at_gemm_own_of(p).k - first, n = left < d->length ? left : d->length;
        const double part = at_accumulate(&d->order, n, a + first, 1, b + first, 1, 0, watch);
        sum = first == 0 ? part : once(d->wide, sum + part);
    }
    const double value = once(d->wide, (double)p->params.scale * sum);
    if (watch)
        at_gemm_note(watch->ledger, watch->place.q, watch->place.k, sum, value);
    return at_round((enum at_format)at_gemm_own_of(p).out, value);
}

at_status at_gemm_model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                        struct at_eval *eval) {
    at_status status = AT_OK;
    const struct at_gemm_own z = at_gemm_own_of(p);
    const int64_t n = z.n, k = z.k;
    struct at_gemm_declared declared;
    AT_TRY(at_gemm_declare(p, numerics, &declared));
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "free_order=1: the variant declares no order of summation to follow");
    double *a = at_gemm_rows(p, row0, row1 - row0), *b = at_gemm_columns(p);
    if (!a || !b)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for factors of %lld", (long long)k);
    for (int64_t row = row0; row < row1; row++)
        for (int64_t j = 0; j < n; j++) {
            const struct at_watch watch = { eval->ledger, AT_STAGE_qk_acc, { .q = row, .k = j } };
            const double value =
                model_element(p, &declared, a + (row - row0) * k, b + j * k, eval->ledger ? &watch : NULL);
            if (eval->value[AT_GEMM_D])
                eval->value[AT_GEMM_D][row * n + j] = value;
            if (eval->limit[AT_GEMM_D])
                eval->limit[AT_GEMM_D][row * n + j] = 0; /* to the bit */
        }
out:
    free(a);
    free(b);
    return status;
}
