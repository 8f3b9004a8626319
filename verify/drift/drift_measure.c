/* How far two distributions over the same bins are from each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/drift/drift_measure.h"

#include <math.h>
#include <string.h>

static double total_of(int64_t n, const uint64_t *counts) {
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += counts[i];
    return (double)total;
}

double at_drift_ks(int64_t n, const uint64_t *a, const uint64_t *b, int64_t *at) {
    const double all_a = total_of(n, a), all_b = total_of(n, b);
    uint64_t sum_a = 0, sum_b = 0;
    double largest = 0;
    if (at)
        *at = 0;
    if (all_a == 0 || all_b == 0)
        return NAN;
    for (int64_t i = 0; i < n; i++) {
        sum_a += a[i];
        sum_b += b[i];
        const double apart = fabs((double)sum_a / all_a - (double)sum_b / all_b);
        if (apart > largest) {
            largest = apart;
            if (at)
                *at = i;
        }
    }
    return largest;
}

static double finite_of(int64_t n, const double *value, const uint64_t *counts) {
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += isfinite(value[i]) ? counts[i] : 0;
    return (double)total;
}

double at_drift_wasserstein(int64_t n, const double *value, const uint64_t *a, const uint64_t *b) {
    const double all_a = finite_of(n, value, a), all_b = finite_of(n, value, b);
    uint64_t sum_a = 0, sum_b = 0;
    double area = 0;
    if (all_a == 0 || all_b == 0)
        return NAN;
    for (int64_t i = 0; i + 1 < n; i++) {
        if (!isfinite(value[i]))
            continue;
        sum_a += a[i];
        sum_b += b[i];
        if (isfinite(value[i + 1]))
            area += fabs((double)sum_a / all_a - (double)sum_b / all_b) * (value[i + 1] - value[i]);
    }
    return area;
}

/* share log2(share / middle) */
static double information(double share, double middle) { return share > 0 ? share * log2(share / middle) : 0; }

double at_drift_js(int64_t n, const uint64_t *a, const uint64_t *b) {
    const double all_a = total_of(n, a), all_b = total_of(n, b);
    double sum = 0;
    if (all_a == 0 || all_b == 0)
        return NAN;
    for (int64_t i = 0; i < n; i++) {
        const double p = (double)a[i] / all_a, q = (double)b[i] / all_b, middle = (p + q) / 2;
        sum += (information(p, middle) + information(q, middle)) / 2;
    }
    return sum > 0 ? sum : 0; /* equal shares: what is left is rounding */
}

double at_drift_spread(int64_t n, const double *value, const uint64_t *counts) {
    const double all = finite_of(n, value, counts);
    double mean = 0, square = 0;
    if (all == 0)
        return NAN;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(value[i]))
            mean += (double)counts[i] / all * value[i];
    for (int64_t i = 0; i < n; i++)
        if (isfinite(value[i]))
            square += (double)counts[i] / all * (value[i] - mean) * (value[i] - mean);
    return sqrt(square);
}

double at_drift_infinite_share(int64_t n, const double *value, const uint64_t *counts) {
    const double all = total_of(n, counts);
    return all > 0 ? 1 - finite_of(n, value, counts) / all : NAN;
}

double at_drift_zero_share(int64_t n, const double *value, const uint64_t *counts) {
    const double all = total_of(n, counts);
    uint64_t zero = 0;
    for (int64_t i = 0; i < n; i++)
        zero += value[i] == 0 ? counts[i] : 0;
    return all > 0 ? (double)zero / all : NAN;
}

enum { MAX_BITS = 16 };

/* by[j]: values that are multiples of 2^j units in their last place; by[0]: all. */
static void count_multiples(enum at_format format, int64_t n, const double *value, const uint64_t *counts,
                            uint64_t by[MAX_BITS]) {
    const int precision = at_format_info(format)->precision;
    memset(by, 0, MAX_BITS * sizeof *by);
    for (int64_t i = 0; i < n; i++) {
        if (counts[i] == 0 || value[i] == 0 || !isfinite(value[i]))
            continue;
        const uint64_t code = at_encode(format, fabs(value[i]));
        for (int j = 0; j < precision && !(code & (((uint64_t)1 << j) - 1)); j++)
            by[j] += counts[i];
    }
}

double at_drift_grain(enum at_format format, int64_t n, const double *value, const uint64_t *a, const uint64_t *b,
                      int *bits) {
    uint64_t by_a[MAX_BITS], by_b[MAX_BITS];
    double largest = 0;
    count_multiples(format, n, value, a, by_a);
    count_multiples(format, n, value, b, by_b);
    if (bits)
        *bits = 0;
    if (by_a[0] == 0 || by_b[0] == 0)
        return NAN;
    for (int j = 1; j < at_format_info(format)->precision; j++) {
        const double more = (double)by_b[j] / (double)by_b[0] - (double)by_a[j] / (double)by_a[0];
        if (fabs(more) > largest) {
            largest = fabs(more);
            if (bits)
                *bits = more > 0 ? j : -j;
        }
    }
    return largest;
}
