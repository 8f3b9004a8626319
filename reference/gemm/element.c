/* An element of a product in double, from rows of factors, and what the ledger notes of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/clones.h"
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

void at_gemm_lay_abreast(const struct at_problem *p, const double *b, int64_t j, double *abreast) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    for (int64_t l = 0; l < z.k; l++)
        for (int64_t c = 0; c < AT_GEMM_ABREAST; c++)
            abreast[l * AT_GEMM_ABREAST + c] = j + c < z.n ? b[(j + c) * z.k + l] : 0;
}

/* A vector type, since gcc 13 leaves a loop over eight local sums scalar. */
typedef double columns __attribute__((vector_size(AT_GEMM_ABREAST * sizeof(double)), aligned(8)));
typedef int64_t column_bits __attribute__((vector_size(AT_GEMM_ABREAST * sizeof(double)), aligned(8)));

/* Each column's sums in the order of its products. */
AT_CLONES static void sums_abreast(int64_t k, const double *a, const double *abreast, double *sum, double *size) {
    columns s = { 0 }, m = { 0 };
    for (int64_t l = 0; l < k; l++) {
        const columns product = a[l] * *(const columns *)(abreast + l * AT_GEMM_ABREAST);
        s += product;
        m += (columns)((column_bits)product & INT64_MAX); /* magnitudes */
    }
    memcpy(sum, &s, sizeof s);
    memcpy(size, &m, sizeof m);
}

void at_gemm_elements(const struct at_problem *p, const double *a, const double *b, const double *abreast, int64_t j,
                      struct at_gemm_element out[AT_GEMM_ABREAST]) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    const double factor = at_gemm_factor(p);
    double sum[AT_GEMM_ABREAST], size[AT_GEMM_ABREAST];
    sums_abreast(z.k, a, abreast, sum, size);
    for (int64_t c = 0; c < AT_GEMM_ABREAST && j + c < z.n; c++) {
        if (!isfinite(size[c])) { /* a product is infinite or NaN */
            out[c] = at_gemm_element(p, a, b + (j + c) * z.k, j + c);
            continue;
        }
        out[c] = (struct at_gemm_element){ .sum = sum[c], .size = size[c], .addend = at_gemm_addend(p, j + c) };
        out[c].value = out[c].sum * factor + out[c].addend;
    }
}

void at_gemm_note(struct at_ledger *ledger, int64_t i, int64_t j, double sum, double value) {
    const struct at_place place = { .q = i, .k = j, .step = -1 };
    at_ledger_note(ledger, AT_STAGE_score, sum, &place);
    at_ledger_note(ledger, AT_STAGE_out, value, &place);
}
