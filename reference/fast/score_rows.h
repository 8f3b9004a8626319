/* Rows of attention scores that a recording counts: exact products, exponentials, codes, ledgers; vectorised.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every number here is defined by a fixed sequence of IEEE operations in double (no fma, no libm), or is exact in any
 * order, so that no BLAS, thread count, block size or instruction set changes a bit, and a GPU can meet it. */
#ifndef AT_FAST_SCORE_ROWS_H
#define AT_FAST_SCORE_ROWS_H

#include <stdint.h>

#include "attest/format.h"
#include "attest/ledger.h"

/* ---- products (exact_scores.c) ---- */

/* Of a row that holds NaN or an infinity; else largest exponent minus lowest set bit over the elements that are not 0.
 * FAR: more than any sum allows, for rows with an exponent above 400 or a bit below -500, whose products could leave the
 * range of double on the way (no format but f64 has them). */
enum { AT_FAST_NOT_FINITE = 1 << 20, AT_FAST_FAR = 1 << 12 };
/* Spans of n rows of d values. */
void at_fast_spans(int64_t n, int64_t d, const double *x, int32_t *span);
/* Products of rows whose spans add up to no more than this are exact in any order: their terms lie within 53 bits. */
int32_t at_fast_exact_span(int64_t d);

struct at_fast_product {
    int64_t rows, keys, d;
    const double *q, *k; /* [rows d], [keys d] */
    const int32_t *q_span, *k_span;
    int narrow;      /* a product of two elements is exact in double (f32 and shorter formats) */
    double *scratch; /* [d * at_fast_lanes(keys)] */
    double *out;     /* [rows stride] */
    int64_t stride;
    int use_blas; /* 0: every pair goes through the compensated sum; the same bits */
};
int64_t at_fast_lanes(int64_t keys);
/* out[i, t] = <q_i, k_t>: the sum in the order c = 0 .. d-1 compensated by the errors of products and sums (Ogita, Rump
 * and Oishi 2005, Dot2), which is the exact sum where the spans allow it, so that BLAS may do those. Where a row is not
 * finite, or the compensated sum is not, the plain sum in the same order. A zero is +0. */
void at_fast_product(const struct at_fast_product *x);

/* ---- rows (plain_rows.c) ---- */

/* e[t] = exp(s[t] - shift), by at_plain_exp(). */
void at_fast_exp_row(int64_t n, double shift, const double *s, double *e);
/* s[t] = scale * dot[t]; the largest s (NaNs passed over; -inf when there is none); *has_nan. */
double at_fast_scale_row(int64_t n, double scale, const double *dot, double *s, int *has_nan);
/* p[t] = e[t] / sum. */
void at_fast_divide_row(int64_t n, double sum, const double *e, double *p);
/* y[t] = p[t] * at_plain_log2(p[t]); no p[t] is 0. */
void at_fast_entropy_row(int64_t n, const double *p, double *y);
/* Sums in ascending order of two arrays, and of one. */
double at_fast_sum_row(int64_t n, const double *x);
/* Bit t % 16 of mask[t / 16]: p[t] is not 0. mask: (n + 15) / 16 words, bits beyond n are 0. */
void at_fast_mask_row(int64_t n, const double *p, uint16_t *mask);
/* Sum of |p[t]| each rounded to a multiple of 2^-24, in units of it, for values up to 2^26 (larger ones and NaN must
 * not be there), n < 2^12; at_fast_mass_fits() says whether a row may be given to it. */
uint64_t at_fast_mass(int64_t n, const double *p);
int at_fast_mass_fits(int64_t n, const double *p);
/* w[t] = gamma * p[t]. */
void at_fast_multiply_row(int64_t n, double gamma, const double *p, double *w);
/* o[c] = fma(w[t], v[t, c], o[c]) over the keys t of [0, n) whose mask bit is set, ascending. v: [n d]; mask begins at t = 0. */
void at_fast_weigh_values(int64_t n, int64_t d, const double *w, const uint16_t *mask, const double *v, double *o);

/* ---- codes (code_rows.c) ---- */

/* Slots of a histogram: the bins of the format's codes in numeric order (-inf first), then NaN, and finite values that
 * round to +inf and to -inf. At most 65536. */
struct at_fast_codes {
    int64_t bias, normal, infinity, magic;
    double lift;
    int shift;
    uint16_t bins; /* number of bins: slot of NaN; +1: finite to +inf; +2: finite to -inf */
};
void at_fast_codes_init(enum at_format format, struct at_fast_codes *codes);
/* Each value rounded once, ties to even, to its slot. */
void at_fast_slots(const struct at_fast_codes *codes, int64_t n, const double *x, uint32_t *slots);
/* counts[slot]++ for each. */
void at_fast_count(int64_t n, const uint32_t *slots, uint32_t *counts);
/* at_ledger_note() of n values, the place of value t being `first` with k + t (`step_k` 1) or first itself (0). */
void at_fast_ledger_row(int64_t n, const double *x, const struct at_place *first, int step_k,
                        struct at_ledger_row *row);

#endif
