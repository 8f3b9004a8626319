/* Dot products of rows with keys: BLAS where it is exact, a compensated sum where it is not.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Let every element of a row be m 2^l with one l (its lowest set bit) and |m| < 2^(span + 1). The d products are then
 * whole multiples of 2^(lq + lk) below 2^(span_q + span_k + 2), and so is every partial sum up to a factor d: with
 * span_q + span_k + 2 + ceil(log2 d) <= 53 each is a double, in any order, with or without fma. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "fast/score_rows.h"
#include "fast/vector.h"

/* Keys that the compensated sum takes side by side. */
enum { LANES = 16 };
typedef double lanes8 __attribute__((vector_size(64), aligned(8)));

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- spans ---- */

/* Biased exponents of the largest magnitude and of the lowest set bit among the elements that are not 0. */
static int32_t span_of(int64_t d, const double *x) {
    uint64_t top = 0;
    int32_t low = 1 << 12;
    for (int64_t c = 0; c < d; c++) {
        uint64_t bits;
        memcpy(&bits, &x[c], sizeof bits);
        bits &= 0x7fffffffffffffffu;
        if (!bits)
            continue;
        top = bits > top ? bits : top;
        const int32_t exponent = (int32_t)(bits >> 52);
        const uint64_t fraction = bits & 0xfffffffffffffu;
        const int32_t unit = exponent ? exponent : 1; /* exponent of a subnormal's unit */
        const int32_t lowest = fraction ? unit - 52 + __builtin_ctzll(fraction) : unit;
        low = lowest < low ? lowest : low;
    }
    if (!top)
        return 0;
    const int32_t exponent = (int32_t)(top >> 52);
    if (exponent == 0x7ff)
        return AT_FAST_NOT_FINITE;
    return exponent > 1023 + 400 || low < 1023 - 500 ? AT_FAST_FAR : exponent - low;
}

void at_fast_spans(int64_t n, int64_t d, const double *x, int32_t *span) {
    for (int64_t i = 0; i < n; i++)
        span[i] = span_of(d, x + i * d);
}

int32_t at_fast_exact_span(int64_t d) {
    int32_t bits = 0;
    while (((int64_t)1 << bits) < d)
        bits++;
    return 51 - bits;
}

/* ---- the compensated sum ---- */

int64_t at_fast_lanes(int64_t keys) { return (keys + LANES - 1) / LANES * LANES; }

/* k as [d, lanes], zeros behind the keys. */
static void turn(const struct at_fast_product *x) {
    const int64_t lanes = at_fast_lanes(x->keys);
    for (int64_t c = 0; c < x->d; c++) {
        double *row = x->scratch + c * lanes;
        for (int64_t t = 0; t < x->keys; t++)
            row[t] = x->k[t * x->d + c];
        for (int64_t t = x->keys; t < lanes; t++)
            row[t] = 0;
    }
}

/* LANES keys of one row; products are exact. */
AT_CLONES
static void narrow_sums(int64_t d, const double *q, const double *k, int64_t lanes, double *out) {
    lanes8 sum[2], rest[2] = { { 0 }, { 0 } };
    for (int i = 0; i < 2; i++)
        sum[i] = q[0] * *(const lanes8 *)(k + 8 * i);
    for (int64_t c = 1; c < d; c++)
        for (int i = 0; i < 2; i++) {
            const lanes8 product = q[c] * *(const lanes8 *)(k + c * lanes + 8 * i);
            const lanes8 next = sum[i] + product, part = next - sum[i];
            rest[i] += (sum[i] - (next - part)) + (product - part);
            sum[i] = next;
        }
    for (int i = 0; i < 2; i++)
        *(lanes8 *)(out + 8 * i) = sum[i] + rest[i];
}

/* One key, products with their errors. */
static double wide_sum(int64_t d, const double *q, const double *k) {
    double sum = q[0] * k[0], rest = fma(q[0], k[0], -sum);
    for (int64_t c = 1; c < d; c++) {
        const double product = q[c] * k[c], error = fma(q[c], k[c], -product);
        const double next = sum + product, part = next - sum;
        rest += ((sum - (next - part)) + (product - part)) + error;
        sum = next;
    }
    return sum + rest;
}

static double plain_sum(int64_t d, const double *q, const double *k) {
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += q[c] * k[c];
    return sum;
}

/* Keys [t0, t0 + LANES) of row i that BLAS may not do. */
static void compensate(const struct at_fast_product *x, int64_t i, int64_t t0) {
    const double *q = x->q + i * x->d;
    double *out = x->out + i * x->stride, sums[LANES];
    const int64_t end = least(x->keys, t0 + LANES);
    const int finite = x->q_span[i] < AT_FAST_NOT_FINITE;
    if (x->narrow && finite)
        narrow_sums(x->d, q, x->scratch + t0, at_fast_lanes(x->keys), sums);
    for (int64_t t = t0; t < end; t++) {
        const double *k = x->k + t * x->d;
        double sum = (double)NAN;
        if (finite && x->k_span[t] < AT_FAST_NOT_FINITE)
            sum = x->narrow ? sums[t - t0] : wide_sum(x->d, q, k);
        out[t] = isfinite(sum) ? sum : plain_sum(x->d, q, k);
    }
}

static int32_t largest(int64_t n, const int32_t *span) {
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = span[i] > most ? span[i] : most;
    return most;
}

void at_fast_product(const struct at_fast_product *x) {
    const int32_t exact = x->use_blas ? at_fast_exact_span(x->d) : -1;
    const int32_t most_k = largest(x->keys, x->k_span), most_q = largest(x->rows, x->q_span);
    int32_t least_k = AT_FAST_NOT_FINITE, least_q = AT_FAST_NOT_FINITE;
    for (int64_t t = 0; t < x->keys; t++)
        least_k = x->k_span[t] < least_k ? x->k_span[t] : least_k;
    for (int64_t i = 0; i < x->rows; i++)
        least_q = x->q_span[i] < least_q ? x->q_span[i] : least_q;
    if (least_q + least_k <= exact)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)x->rows, (int)x->keys, (int)x->d, 1, x->q, (int)x->d,
                    x->k, (int)x->d, 0, x->out, (int)x->stride);
    if (most_q + most_k <= exact)
        return;
    if (x->narrow)
        turn(x);
    for (int64_t i = 0; i < x->rows; i++) {
        if (x->q_span[i] + most_k <= exact)
            continue;
        for (int64_t t0 = 0; t0 < x->keys; t0 += LANES)
            if (x->q_span[i] + largest(least(LANES, x->keys - t0), x->k_span + t0) > exact)
                compensate(x, i, t0);
    }
}
