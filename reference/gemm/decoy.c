/* Products made wrong on purpose.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "gemm/gemm.h"

/* The column of the second factor that the faulty kernel reads as column j. */
static int64_t column_of(const struct at_gemm_own *z, enum at_gemm_fault fault, int64_t j) {
    if (fault == AT_GEMM_NEXT_COLUMN)
        return j + 1 < z->n ? j + 1 : 0;
    return fault == AT_GEMM_B_ROWS_SWAPPED && (j ^ 1) < z->n ? j ^ 1 : j;
}

/* Product l of column j of a second factor that is read as if it lay in the other layout. */
static double factor_across(const struct at_gemm_own *z, const double *b, int64_t j, int64_t l) {
    const int64_t as_read = j * z->k + l; /* of w, which lies by rows of n */
    return z->layout == AT_GEMM_NK ? b[l * z->n + j] : b[as_read % z->n * z->k + as_read / z->n];
}

enum { TOGETHER = 4 };

/* Sums over row a and columns j to j + TOGETHER - 1, as far as there are so many; each in the order of its products. Together, since
 * an addition waits for the one before it in its own sum. */
static void sums_of(const struct at_gemm_own *z, enum at_gemm_fault fault, const double *a, const double *b, int64_t j,
                    double sum[TOGETHER]) {
    const int64_t whole = fault == AT_GEMM_LAST_K_DROPPED   ? z->k - 1
                          : fault == AT_GEMM_K_TAIL_DROPPED ? z->k / 16 * 16
                                                            : z->k;
    const double *column[TOGETHER];
    for (int c = 0; c < TOGETHER; c++) {
        sum[c] = 0;
        column[c] = b + column_of(z, fault, j + c < z->n ? j + c : z->n - 1) * z->k;
    }
    if (fault == AT_GEMM_B_TRANSPOSED) {
        for (int c = 0; c < TOGETHER && j + c < z->n; c++)
            for (int64_t l = 0; l < whole; l++)
                sum[c] += a[l] * factor_across(z, b, j + c, l);
        return;
    }
    for (int64_t l = 0; l < whole; l++)
        for (int c = 0; c < TOGETHER; c++)
            sum[c] += a[l] * column[c][l];
}

/* What the sum is multiplied by, as the faulty kernel has it. */
static double factor_with(const struct at_problem *p, enum at_gemm_fault fault) {
    const double scale = (double)p->params.scale;
    double each[2] = { 1, 1 };
    for (int s = 0; s < 2 && at_gemm_own_of(p).scales; s++)
        each[s] = at_tensor_get(&p->tensors[AT_GEMM_SCALE_A + s], 0);
    if (fault == AT_GEMM_NO_SCALE_A || fault == AT_GEMM_SCALE_B_FOR_A)
        each[0] = fault == AT_GEMM_NO_SCALE_A ? 1 : each[1];
    if (fault == AT_GEMM_NO_SCALE_B || fault == AT_GEMM_SCALE_A_FOR_B)
        each[1] = fault == AT_GEMM_NO_SCALE_B ? 1 : each[0];
    return (fault == AT_GEMM_NO_SCALE ? 1 : fault == AT_GEMM_SCALE_TWICE ? scale * scale : scale) * each[0] * each[1];
}

/* What is added to element (i, j), as the faulty kernel has it. */
static double addend_with(const struct at_problem *p, enum at_gemm_fault fault, int64_t i, int64_t j) {
    const int64_t n = at_gemm_own_of(p).n;
    return fault == AT_GEMM_NO_BIAS || fault == AT_GEMM_AMAX_BEFORE_BIAS ? 0
           : fault == AT_GEMM_NEXT_BIAS                                  ? at_gemm_addend(p, j + 1 < n ? j + 1 : 0)
           : fault == AT_GEMM_BIAS_BY_ROW                                ? at_gemm_addend(p, i % n)
                                                                         : at_gemm_addend(p, j);
}

/* Element (i, j) of its sum; a: row i of the first factor, the next behind it. */
static double element(const struct at_problem *p, enum at_gemm_fault fault, double factor, const double *a,
                      const double *b, int64_t i, int64_t j, double sum) {
    const struct at_gemm_own own = at_gemm_own_of(p), *z = &own;
    const double addend = addend_with(p, fault, i, j);
    if (fault == AT_GEMM_LAST_COLUMN_ZEROED && j == z->n - 1)
        return 0;
    if (fault == AT_GEMM_HIDDEN_K_ADDED && i + 1 < z->m && j + 1 < z->n)
        sum += a[z->k] * b[(j + 1) * z->k];
    return sum * factor + (fault == AT_GEMM_BIAS_SCALED ? factor * addend : addend);
}

/* Row i of the faulty kernel's result. */
static void row_of(const struct at_problem *p, enum at_gemm_fault fault, const double *a, const double *b, int64_t i,
                   double *row) {
    const struct at_gemm_own own = at_gemm_own_of(p);
    const double factor = factor_with(p, fault);
    double sum[TOGETHER] = { 0 };
    for (int64_t j = 0; j < own.n; j++) {
        if (j % TOGETHER == 0)
            sums_of(&own, fault, a, b, j, sum);
        row[j] = element(p, fault, factor, a, b, i, j, sum[j % TOGETHER]);
    }
}

static int is_of_amax(enum at_gemm_fault fault) { return fault >= AT_GEMM_AMAX_ROUNDED; }

/* What an element of d counts with in the faulty kernel's maximum. */
static double counted(const struct at_problem *p, enum at_gemm_fault fault, double value) {
    return fault == AT_GEMM_AMAX_ROUNDED        ? at_round((enum at_format)at_gemm_own_of(p).out, value)
           : fault == AT_GEMM_AMAX_SIGNED       ? fmax(value, 0)
           : fault == AT_GEMM_AMAX_OF_NEGATIVES ? fmin(value, 0)
                                                : value;
}

/* The row behind those of d. */
static at_status amax(const struct at_problem *p, enum at_gemm_fault fault, const double *b, struct at_eval *eval) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    struct at_gemm_most most = { 0 };
    double *row = calloc((size_t)z.n + 1, sizeof *row); /* for the analyser, which does not see it filled */
    if (!row)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a row of %lld", (long long)z.n);
    for (int64_t i = 0; i < z.m - (fault == AT_GEMM_AMAX_LAST_ROW_LEFT_OUT); i++) {
        double *a = at_gemm_rows(p, i, i + 1 < z.m ? 2 : 1);
        if (!a) {
            free(row);
            return AT_FAIL(AT_NO_MEMORY, "no memory for rows of %lld", (long long)z.k);
        }
        row_of(p, fault, a, b, i, row);
        for (int64_t j = 0; j < z.n; j++)
            at_gemm_raise(&most, counted(p, fault, row[j]), 0);
        free(a);
    }
    free(row);
    if (eval->value[AT_GEMM_AMAX])
        eval->value[AT_GEMM_AMAX][0] = most.value;
    return AT_OK;
}

at_status at_gemm_decoy(const struct at_problem *p, const struct at_numerics *numerics, int decoy, int64_t row0,
                        int64_t row1, struct at_eval *eval) {
    at_status status = AT_OK;
    const enum at_gemm_fault fault = (enum at_gemm_fault)decoy;
    const struct at_gemm_own own = at_gemm_own_of(p), *z = &own;
    const int64_t end = row1 < z->m ? row1 : z->m, first = row0 < end ? row0 : end;
    const int64_t behind = end < z->m && first < end; /* HIDDEN_K_ADDED reads the row after the last */
    (void)numerics;
    double *a = at_gemm_rows(p, first, end - first + behind), *own_b = NULL;
    const double *b = eval->prepared ? eval->prepared : (own_b = at_gemm_columns(p));
    if (!a || !b)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for factors of %lld", (long long)z->k);
    for (int64_t row = first; eval->value[AT_GEMM_D] && row < end; row++)
        row_of(p, is_of_amax(fault) ? AT_GEMM_RIGHT : fault, a + (row - first) * z->k, b, row,
               eval->value[AT_GEMM_D] + row * z->n);
    if (row1 > z->m)
        AT_TRY_OUT(amax(p, fault, b, eval));
out:
    free(a);
    free(own_b);
    return status;
}
