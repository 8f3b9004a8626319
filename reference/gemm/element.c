/* An element of a product in double, from rows of factors, and what the ledger notes of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "gemm/gemm.h"

static double *values(int64_t n) { return calloc((size_t)(n > 0 ? n : 1), sizeof(double)); }

static void decode(const struct at_tensor *t, int64_t first, int64_t n, double *out) {
    at_decode_array(t->format, (size_t)n, (const char *)t->data + first * (int64_t)at_format_info(t->format)->bytes,
                    out);
}

double *at_gemm_rows(const struct at_problem *p, int64_t first, int64_t count) {
    const int64_t k = at_gemm_own_of(p).k;
    double *rows = values(count * k);
    if (rows && count * k > 0)
        decode(&p->tensors[AT_GEMM_A], first * k, count * k, rows);
    return rows;
}

enum { TILE = 64 };

double *at_gemm_columns(const struct at_problem *p) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    double *columns = values(z.n * z.k), tile[TILE];
    if (!columns || z.n * z.k == 0)
        return columns;
    if (z.layout == AT_GEMM_NK) {
        decode(&p->tensors[AT_GEMM_B], 0, z.n * z.k, columns);
        return columns;
    }
    for (int64_t j = 0; j < z.n; j += TILE) /* few columns at a time, so that what is written stays near */
        for (int64_t l = 0; l < z.k; l++) {
            const int64_t count = z.n - j < TILE ? z.n - j : TILE;
            decode(&p->tensors[AT_GEMM_W], l * z.n + j, count, tile);
            for (int64_t i = 0; i < count; i++)
                columns[(j + i) * z.k + l] = tile[i];
        }
    return columns;
}

double at_gemm_factor(const struct at_problem *p) {
    const double scale = (double)p->params.scale;
    if (!at_gemm_own_of(p).scales)
        return scale;
    return scale * at_tensor_get(&p->tensors[AT_GEMM_SCALE_A], 0) * at_tensor_get(&p->tensors[AT_GEMM_SCALE_B], 0);
}

double at_gemm_addend(const struct at_problem *p, int64_t j) {
    return at_gemm_own_of(p).bias == AT_GEMM_BIAS_NONE ? 0 : at_tensor_get(&p->tensors[AT_GEMM_BIAS], j);
}

static int vanishes(double x) { return x != 0 && fabs(x) < 0x1p-136; }

/* NaN and infinities as IEEE arithmetic has them. */
struct at_gemm_element at_gemm_element(const struct at_problem *p, const double *a, const double *b, int64_t j) {
    struct at_gemm_element e = { .addend = at_gemm_addend(p, j) };
    for (int64_t l = 0, k = at_gemm_own_of(p).k; l < k; l++) {
        const double product = a[l] * b[l];
        e.sum += product;
        if (isfinite(product))
            e.size += fabs(product);
        else
            e.vanishing |= vanishes(a[l]) || vanishes(b[l]);
    }
    e.value = e.sum * at_gemm_factor(p) + e.addend;
    return e;
}

void at_gemm_note(struct at_ledger *ledger, int64_t i, int64_t j, double sum, double value) {
    const struct at_place place = { .q = i, .k = j, .step = -1 };
    at_ledger_note(ledger, AT_STAGE_score, sum, &place);
    at_ledger_note(ledger, AT_STAGE_out, value, &place);
}
