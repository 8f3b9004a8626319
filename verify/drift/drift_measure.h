/* How far two distributions over the same bins are from each other.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counts are of the codes of a 16-bit format in numeric order, as verify/archive/README.md describes them. Every
 * measure is of shares, so that the two may have different numbers of values; NaN when either has none. */
#ifndef AT_DRIFT_MEASURE_H
#define AT_DRIFT_MEASURE_H

#include <stdint.h>

#include "attest/format.h"

/* Kolmogorov-Smirnov: the largest difference of the cumulative shares, 0 to 1, over all n bins. *at (NULL allowed): the
 * bin after which it is. */
double at_drift_ks(int64_t n, const uint64_t *a, const uint64_t *b, int64_t *at);

/* Wasserstein's first distance between the finite values: the area between the cumulative shares, in the unit of
 * value[], which ascends and may end in infinities. */
double at_drift_wasserstein(int64_t n, const double *value, const uint64_t *a, const uint64_t *b);

/* Jensen-Shannon divergence in bits, 0 to 1. */
double at_drift_js(int64_t n, const uint64_t *a, const uint64_t *b);

/* Standard deviation of the finite values, in the unit of value[]. */
double at_drift_spread(int64_t n, const double *value, const uint64_t *counts);

/* Share of the values that are not finite, or of those that are zero of either sign. */
double at_drift_infinite_share(int64_t n, const double *value, const uint64_t *counts);
double at_drift_zero_share(int64_t n, const double *value, const uint64_t *counts);

/* Significant bits: the largest difference, over j, of the shares of finite values other than zero that are multiples
 * of 2^j units in the last place of `format` (F16 or BF16). Values rounded to fewer bits on their way show here though
 * no cumulative share moves. *bits (NULL allowed): that j, negative where it is side A that has more of them. */
double at_drift_grain(enum at_format format, int64_t n, const double *value, const uint64_t *a, const uint64_t *b,
                      int *bits);

#endif
