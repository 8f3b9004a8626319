/* Problems whose results no order of operations can change: their arithmetic and its conditions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_EXACT_H
#define AT_EXACT_H

#include "datasets/language/case_keys.h"

/* The odd number that divides every score: then sigma * pool / D is a binary fraction for every divisor D that
 * the pool can have. Odd part of K; with edge = shrink of lcm(1 .. K). */
int64_t at_exact_odd(int window, int edge);

/* The scale used when a case says auto. */
double at_auto_scale(const struct at_data_family *family, int asynct, enum at_format dtype, int64_t d);

/* Are the parameters of this exact case such that the promise holds? AT_USAGE with key, found, wanted. */
at_status at_exact_check(const struct at_case *c);

/* Fraction bits of the finest grid that gate inputs fall on: scale * sigma / D or scale * tap. -1: none up to 20. */
int at_exact_gate_bits(const struct at_data *data);

#endif
