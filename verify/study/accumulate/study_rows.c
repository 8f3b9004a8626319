/* Rows of a study: their fields, the fits of their errors over the length, their table.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_fit.h>

#include "verify/study/accumulate/study.h"
#include "verify/result/table.h"

/* clang-format off */
#define STUDY_FIELDS(X)                                                                                      \
    X(TEXT, attention,        "1", "asynct or softmax")                                                      \
    X(TEXT, product,          "1", "qk: q.k; pv: p.v, softmax's weights divided at the end; pv_unit: before") \
    X(TEXT, mode,             "1", "mode of accumulation")                                                   \
    X(TEXT, data,             "1", "data family, or dataset/layer")                                          \
    X(TEXT, case_id,          "1", "the case that the operands are from")                                    \
    X(I64,  d,                "1", "head size")                                                              \
    X(I64,  length,           "1", "products of the longest sum")                                            \
    X(I64,  length_min,       "1", "products of the shortest sum")                                           \
    X(I64,  sums,             "1", "sums looked at")                                                         \
    X(I64,  compared,         "1", "sums with finite operands and a finite result: those that errors are of") \
    X(I64,  inputs_nonfinite, "1", "sums with an operand that is not finite: left out of all that follows")  \
    X(I64,  result_inf,       "1", "infinite results")                                                       \
    X(I64,  result_nan,       "1", "results that are NaN")                                                   \
    X(F64,  err_max,          "1", "largest abs(sum - exact) / sum abs(a b)")                                \
    X(F64,  err_mean,         "1", "its mean")                                                               \
    X(F64,  bias,             "1", "mean of (sum - exact) sign(exact) / sum abs(a b); negative: too short")   \
    X(U64,  ulp_p50,          "ulp", "median error in last places of f16, both sides rounded to it")         \
    X(U64,  ulp_p99,          "ulp", "99th percentile")                                                      \
    X(U64,  ulp_max,          "ulp", "largest")                                                              \
    X(I64,  additions,        "1", "steps whose products do not add up to 0")                                \
    X(I64,  swamped,          "1", "those that leave the accumulator as it was")                             \
    X(F64,  swamped_share,    "1", "swamped / additions")                                                    \
    X(I64,  overflowed,       "1", "sums with an accumulator beyond 65504 at some step")                     \
    X(PLACE, earliest_step,   "1", "least step at which one of them went there; -1: none")                  \
    X(I64,  laundered,        "1", "sums whose accumulator was infinite and whose result is finite")                                  \
    X(I64,  guarded,          "1", "values that the guard changed")                                          \
    X(F64,  guarded_err_max,  "1", "largest error of a sum that the guard changed")                          \
    X(F64,  bound,            "1", "what theory allows in any inputs, for the longest sum")                  \
    X(F64,  probable,         "1", "the same with the square root of the number of roundings")               \
    X(I64,  beyond_bound,     "1", "sums in range beyond their bound: none, or theory or code is wrong")     \
    X(I64,  beyond_probable,  "1", "sums in range beyond the probable error")                                \
    X(F64,  slope,            "1", "of log2 err_mean over log2 length, fitted to the rows of other lengths") \
    X(F64,  slope_error,      "1", "its standard error")                                                     \
    X(INT,  slope_points,     "1", "lengths that it was fitted to")
/* clang-format on */

static const struct at_field fields[] = {
#define X(kind, field, units, meaning) AT_ROW_FIELD(at_study_row, kind, field, units, meaning)
    STUDY_FIELDS(X)
#undef X
};

const struct at_field *at_study_field(int i) {
    return i >= 0 && (size_t)i < sizeof fields / sizeof *fields ? &fields[i] : NULL;
}

const struct at_table at_study_table_accumulate = {
    .parent = "studies",
    .group = "accumulate",
    .type = "attest.study",
    .signal = "err_mean",
    .row = "row: one mode on one product of a case",
    .field = at_study_field,
    .row_bytes = sizeof(struct at_study_row),
    .has_ledger = 1,
    .ledger = offsetof(struct at_study_row, ledger),
};

void at_study_rows_release(struct at_study_rows *rows) {
    free(rows->items);
    *rows = (struct at_study_rows){ 0 };
}

at_status at_study_rows_add(struct at_study_rows *rows, int64_t more, struct at_study_row **first) {
    if (rows->n + more > rows->capacity) {
        const int64_t capacity = 2 * rows->capacity + more;
        struct at_study_row *items = realloc(rows->items, (size_t)capacity * sizeof *items);
        if (!items)
            return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld rows", (long long)capacity);
        rows->items = items;
        rows->capacity = capacity;
    }
    *first = &rows->items[rows->n];
    memset(*first, 0, (size_t)more * sizeof **first);
    rows->n += more;
    return AT_OK;
}

/* ---- fits ---- */

/* Rows of one series differ in length alone; q.k has d products, so its length is the head size. */
static int compare_series(const struct at_study_row *a, const struct at_study_row *b) {
    int order = strcmp(a->attention, b->attention);
    order = order ? order : strcmp(a->product, b->product);
    order = order ? order : strcmp(a->mode, b->mode);
    order = order ? order : strcmp(a->data, b->data);
    return order || strcmp(a->product, "qk") == 0 ? order : (a->d > b->d) - (a->d < b->d);
}

static int by_series(const void *a, const void *b) {
    const struct at_study_row *x = *(struct at_study_row *const *)a, *y = *(struct at_study_row *const *)b;
    const int order = compare_series(x, y);
    return order ? order : (x > y) - (x < y);
}

/* x, y: room for n points. */
static void fit_series(struct at_study_row *const *series, int64_t n, double *x, double *y) {
    double intercept, slope = NAN, c00, c01, c11, squares, slope_error = NAN;
    size_t points = 0, different = 0;
    for (int64_t i = 0; i < n; i++)
        if (series[i]->length > 0 && series[i]->err_mean > 0) {
            x[points] = log2((double)series[i]->length);
            y[points] = log2(series[i]->err_mean);
            different += x[points] != x[0];
            points++;
        }
    if (different > 0) {
        gsl_fit_linear(x, 1, y, 1, points, &intercept, &slope, &c00, &c01, &c11, &squares);
        slope_error = points > 2 ? sqrt(c11) : NAN;
    }
    for (int64_t i = 0; i < n; i++) {
        series[i]->slope = slope;
        series[i]->slope_error = slope_error;
        series[i]->slope_points = (int)points;
    }
}

at_status at_study_fit(struct at_study_rows *rows) {
    const size_t n = (size_t)rows->n;
    struct at_study_row **order = malloc((n + 1) * sizeof *order);
    double *x = malloc((n + 1) * sizeof *x), *y = malloc((n + 1) * sizeof *y);
    at_status status = AT_OK;
    if (!order || !x || !y)
        AT_FAIL_OUT(AT_NO_MEMORY, "study: no memory to fit %zu rows", n);
    for (size_t i = 0; i < n; i++)
        order[i] = &rows->items[i];
    qsort(order, n, sizeof *order, by_series);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && compare_series(order[i], order[end]) == 0;)
            end++;
        fit_series(order + i, (int64_t)(end - i), x, y);
    }
out:
    free(order);
    free(x);
    free(y);
    return status;
}
