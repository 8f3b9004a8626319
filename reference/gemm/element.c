/* An element of a product in double, from rows of factors, and what the ledger notes of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "gemm/gemm.h"

double *at_gemm_rows(const struct at_problem *p, int factor, int64_t first, int64_t count) {
    const int64_t k = at_gemm_own_of(p).k, n = count * k;
    const struct at_tensor *t = &p->tensors[factor];
    double *rows = calloc((size_t)(n > 0 ? n : 1), sizeof *rows);
    if (rows && n > 0)
        at_decode_array(t->format, (size_t)n,
                        (const char *)t->data + first * k * (int64_t)at_format_info(t->format)->bytes, rows);
    return rows;
}

/* NaN and infinities as IEEE arithmetic has them. */
struct at_gemm_element at_gemm_element(const struct at_problem *p, const double *a, const double *b) {
    struct at_gemm_element e = { 0, 0, 0 };
    for (int64_t l = 0, k = at_gemm_own_of(p).k; l < k; l++) {
        const double product = a[l] * b[l];
        e.sum += product;
        e.size += isfinite(product) ? fabs(product) : 0;
    }
    e.value = e.sum * (double)p->params.scale;
    return e;
}

void at_gemm_note(struct at_ledger *ledger, int64_t i, int64_t j, double sum, double value) {
    const struct at_place place = { .q = i, .k = j, .step = -1 };
    at_ledger_note(ledger, AT_STAGE_score, sum, &place);
    at_ledger_note(ledger, AT_STAGE_out, value, &place);
}
