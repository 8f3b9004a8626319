/* Products made wrong on purpose.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "gemm/gemm.h"

/* The second factor of product l of column j, as the faulty kernel reads it. */
static double factor_of(const struct at_gemm_own *z, enum at_gemm_fault fault, const double *b, int64_t j, int64_t l) {
    if (fault == AT_GEMM_NEXT_COLUMN)
        j = j + 1 < z->n ? j + 1 : 0;
    if (fault == AT_GEMM_B_ROWS_SWAPPED)
        j = (j ^ 1) < z->n ? j ^ 1 : j;
    if (fault != AT_GEMM_B_TRANSPOSED)
        return b[j * z->k + l];
    const int64_t as_read = j * z->k + l; /* of w, which lies by rows of n */
    return z->layout == AT_GEMM_NK ? b[l * z->n + j] : b[as_read % z->n * z->k + as_read / z->n];
}

/* Element (i, j); a: row i of the first factor, the next behind it. */
static double element(const struct at_problem *p, enum at_gemm_fault fault, const double *a, const double *b, int64_t i,
                      int64_t j) {
    const struct at_gemm_own own = at_gemm_own_of(p), *z = &own;
    const double scale = (double)p->params.scale;
    const int64_t whole = fault == AT_GEMM_LAST_K_DROPPED   ? z->k - 1
                          : fault == AT_GEMM_K_TAIL_DROPPED ? z->k / 16 * 16
                                                            : z->k;
    double sum = 0;
    if (fault == AT_GEMM_LAST_COLUMN_ZEROED && j == z->n - 1)
        return 0;
    for (int64_t l = 0; l < whole; l++)
        sum += a[l] * factor_of(z, fault, b, j, l);
    if (fault == AT_GEMM_HIDDEN_K_ADDED && i + 1 < z->m && j + 1 < z->n)
        sum += a[z->k] * b[(j + 1) * z->k];
    return sum * (fault == AT_GEMM_NO_SCALE ? 1 : fault == AT_GEMM_SCALE_TWICE ? scale * scale : scale);
}

at_status at_gemm_decoy(const struct at_problem *p, const struct at_numerics *numerics, int decoy, int64_t row0,
                        int64_t row1, struct at_eval *eval) {
    at_status status = AT_OK;
    const struct at_gemm_own own = at_gemm_own_of(p), *z = &own;
    const int64_t behind = row1 < z->m; /* HIDDEN_K_ADDED reads the row after the last */
    (void)numerics;
    double *a = at_gemm_rows(p, row0, row1 - row0 + behind), *b = at_gemm_columns(p);
    if (!a || !b)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for factors of %lld", (long long)z->k);
    for (int64_t row = row0; row < row1; row++)
        for (int64_t j = 0; eval->value[AT_GEMM_D] && j < z->n; j++)
            eval->value[AT_GEMM_D][row * z->n + j] =
                element(p, (enum at_gemm_fault)decoy, a + (row - row0) * z->k, b, row, j);
out:
    free(a);
    free(b);
    return status;
}
