/* The fast tier against the plain operator, on sampled rows of the same run.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The bound: both tiers are within the limit that the operator derives for "no kernel" (the reference's own error,
 * sums in any order) of the exact value, so they differ by at most twice that. */
#include <math.h>
#include <stdlib.h>

#include "fast/fast.h"

/* Plain values and own errors. Whole tensors, because evaluate() indexes them so; the pages of rows that
 * are not sampled are never touched. */
struct plain {
    struct at_eval eval;
};

static void release(struct plain *plain) {
    for (int i = 0; i < AT_MAX_TENSORS; i++) {
        free(plain->eval.value[i]);
        free(plain->eval.limit[i]);
    }
}

static at_status prepare(const struct at_problem *problem, const struct at_eval *fast, struct plain *plain) {
    *plain = (struct plain){ 0 };
    for (int i = 0; i < problem->op->n_tensors; i++) {
        if (!fast->value[i])
            continue;
        size_t n = (size_t)at_tensor_count(&problem->tensors[i]);
        plain->eval.value[i] = calloc(n + 1, sizeof(double));
        plain->eval.limit[i] = calloc(n + 1, sizeof(double));
        if (!plain->eval.value[i] || !plain->eval.limit[i]) {
            release(plain);
            return AT_FAIL(AT_NO_MEMORY, "no room for %zu plain values of %s", n, problem->op->tensors[i].name);
        }
    }
    return AT_OK;
}

/* Error over bound: 0 for equal values and equal classes, infinite for different classes. */
static double ratio_of(double fast, double plain, double bound) {
    if (isnan(plain))
        return isnan(fast) ? 0 : (double)INFINITY;
    if (fast == plain)
        return 0;
    if (!isfinite(plain) || !isfinite(fast))
        return (double)INFINITY;
    return bound > 0 ? fabs(fast - plain) / bound : (double)INFINITY;
}

static at_status check_row(const struct at_problem *problem, const struct at_eval *fast, const struct plain *plain,
                           int64_t row, double *worst) {
    for (int t = 0; t < problem->op->n_tensors; t++) {
        int64_t first, count;
        if (!fast->value[t])
            continue;
        problem->op->row_span(problem, t, row, &first, &count);
        for (int64_t i = first; i < first + count; i++) {
            double got = fast->value[t][i], want = plain->eval.value[t][i], bound = 2 * plain->eval.limit[t][i];
            double ratio = ratio_of(got, want, bound);
            *worst = ratio > *worst ? ratio : *worst;
            if (!(ratio <= 1))
                return AT_FAIL(AT_BUG, "fast tier: %s[%lld] of row %lld is %.17g, plain C says %.17g, bound %.3g",
                               problem->op->tensors[t].name, (long long)i, (long long)row, got, want, bound);
        }
    }
    return AT_OK;
}

/* A row of the i-th of `samples` equal parts. */
static int64_t sample(int64_t rows, int samples, int i, uint64_t seed) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    double at = (double)i + (double)((z ^ z >> 31) >> 11) * 0x1p-53;
    int64_t row = (int64_t)(at * (double)rows / samples);
    return row < rows ? row : rows - 1;
}

at_status at_fast_cross_check(const struct at_problem *problem, const struct at_eval *fast, int samples, uint64_t seed,
                              double *worst_ratio) {
    const int64_t rows = problem->op->rows(problem);
    struct plain plain;
    double worst = 0;
    at_status status = AT_OK;
    AT_TRY(prepare(problem, fast, &plain));
    for (int i = 0; i < samples && rows > 0; i++) {
        int64_t row = sample(rows, samples, i, seed);
        AT_TRY_OUT(problem->op->evaluate(problem, NULL, row, row + 1, &plain.eval));
        AT_TRY_OUT(check_row(problem, fast, &plain, row, &worst));
    }
out:
    release(&plain);
    *worst_ratio = worst;
    return status;
}
