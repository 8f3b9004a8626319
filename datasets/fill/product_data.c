/* Rows of the two factors of a product, where queries and keys do not serve: a row of the first by one of the second is
 * one element.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "datasets/fill/families.h"

static void uniforms(const struct at_data *data, const char *name, int64_t i, double *row) {
    struct at_random random = at_data_random(data, name);
    at_random_uniforms(&random, (uint64_t)i * (uint64_t)data->d, data->d, row);
}

/* ---- exact: integers with sum |a b| <= 2048, so that every partial sum is a number of f16 and of an accumulator with
 * 13 fraction bits, in any order. a is +-1, +-2 or +-3 everywhere, b is the same in as many places as that allows,
 * others in every row. ---- */

enum { MAX = 3, BUDGET = 2048 / (MAX * MAX) };

static double integer(double u) {
    const int x = 1 + (int)(u * 2 * MAX) % MAX;
    return u < 0.5 ? x : -x;
}

AT_FAMILY_ROW(at_product_exact_left) {
    (void)request, (void)head;
    uniforms(data, "exact a", i, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = integer(row[c]);
}

AT_FAMILY_ROW(at_product_exact_right) {
    (void)request, (void)head;
    const int64_t stride = (data->d + BUDGET - 1) / BUDGET;
    uniforms(data, "exact b", i, row);
    for (int64_t c = 0; c < data->d; c++) /* the last product counts in every stride-th row */
        row[c] = (data->d - 1 - c + i) % stride ? 0 : integer(row[c]);
}

/* ---- same_sign: a and b in [0.5, 1.5]. Sums only grow: f16 and E8M13 accumulators swamp what they add, a truncating
 * one drifts to one side. ---- */

static void same_sign(const struct at_data *data, const char *name, int64_t i, double *row) {
    uniforms(data, name, i, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] += 0.5;
}

AT_FAMILY_ROW(at_product_same_sign_left) {
    (void)request, (void)head;
    same_sign(data, "a", i, row);
}

AT_FAMILY_ROW(at_product_same_sign_right) {
    (void)request, (void)head;
    same_sign(data, "b", i, row);
}

/* ---- ties: a is 1, b integers about a mean that brings the sum to where only even numbers are values of the output's
 * format: half of the elements are odd, half-way between two. ---- */

AT_FAMILY_ROW(at_product_ties_left) {
    (void)request, (void)i, (void)head;
    for (int64_t c = 0; c < data->d; c++)
        row[c] = 1;
}

AT_FAMILY_ROW(at_product_ties_right) {
    (void)request, (void)head;
    const int bits = at_format_info(data->out)->precision;
    const double mean = floor(ldexp(1.5, bits > 11 ? 11 : bits) / (double)data->d);
    uniforms(data, "b", i, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = mean + floor(row[c] * 3) - 1;
}

/* ---- adversarial: the first product is 1, each of the others a little more than half an ulp of an accumulator of 1,
 * or nearly a whole one: rounding to nearest goes up at every step, truncation down. ulps of f32 and of f16 alternate
 * by rows; factors of 8 bits meet the 13 bits that their accumulator keeps, with products of 1.75 ulps. ---- */

AT_FAMILY_ROW(at_product_adversarial_left) {
    (void)request, (void)i, (void)head;
    const int narrow = at_format_info(data->dtype)->bytes == 1;
    for (int64_t c = 0; c < data->d; c++)
        row[c] = narrow && c > 0 ? 0x1p-6 : 1;
}

AT_FAMILY_ROW(at_product_adversarial_right) {
    (void)request, (void)head;
    const int narrow = at_format_info(data->dtype)->bytes == 1;
    const double half_ulp = i % 2 ? 0x1p-11 : 0x1p-24;
    for (int64_t c = 0; c < data->d; c++)
        row[c] = c == 0 ? 1 : narrow ? 0x1.cp-7 : half_ulp * (c % 8 < 6 ? 1 + 0x1p-6 : 2 - 0x1p-6);
}

/* ---- stall: 32 products of 2^-8 are 1/8 a step. With 13 fraction bits the ulp of 64 is 2^-7 and one product less than
 * that: a sum stays at 64, wherever it should have gone. ---- */

AT_FAMILY_ROW(at_product_stall) {
    (void)request, (void)i, (void)head;
    for (int64_t c = 0; c < data->d; c++)
        row[c] = 0.0625;
}
