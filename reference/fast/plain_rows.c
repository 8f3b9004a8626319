/* Rows of scores: exponentials, sums, masks, and the weighted values.
 * SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "attest/plain_math.h"
#include "fast/score_rows.h"
#include "fast/vector.h"

typedef double lanes8 __attribute__((vector_size(64), aligned(8)));

AT_CLONES
void at_fast_exp_row(int64_t n, double shift, const double *restrict s, double *restrict e) {
    for (int64_t t = 0; t < n; t++)
        e[t] = at_plain_exp(s[t] - shift);
}

AT_CLONES
double at_fast_scale_row(int64_t n, double scale, const double *restrict dot, double *restrict s, int *has_nan) {
    enum { SIDE = 8 };
    double top[SIDE], most = -(double)INFINITY;
    int64_t nan = 0;
    const int64_t whole = n - n % SIDE;
    for (int i = 0; i < SIDE; i++)
        top[i] = -(double)INFINITY;
    for (int64_t t = 0; t < whole; t += SIDE)
        for (int i = 0; i < SIDE; i++) {
            const double x = scale * dot[t + i];
            s[t + i] = x;
            top[i] = x > top[i] ? x : top[i];
            nan += x != x;
        }
    for (int64_t t = whole; t < n; t++) {
        s[t] = scale * dot[t];
        most = s[t] > most ? s[t] : most;
        nan += s[t] != s[t];
    }
    for (int i = 0; i < SIDE; i++)
        most = top[i] > most ? top[i] : most;
    *has_nan = nan > 0;
    return most;
}

AT_CLONES
void at_fast_divide_row(int64_t n, double sum, const double *restrict e, double *restrict p) {
    for (int64_t t = 0; t < n; t++)
        p[t] = e[t] / sum;
}

AT_CLONES
void at_fast_entropy_row(int64_t n, const double *restrict p, double *restrict y) {
    for (int64_t t = 0; t < n; t++) {
        y[t] = p[t] * at_plain_log2(p[t]);
    }
}

double at_fast_sum_row(int64_t n, const double *x) {
    double sum = 0;
    for (int64_t t = 0; t < n; t++)
        sum += x[t];
    return sum;
}

/* Eight flags of 0 or 1 in the bytes of a word, the first in the lowest, to eight bits. */
static uint16_t gather(const uint8_t *flags) {
    uint64_t word;
    memcpy(&word, flags, sizeof word);
    return (uint16_t)((word * 0x0102040810204080u) >> 56);
}

AT_CLONES
static void flag_row(int64_t n, const double *restrict p, uint8_t *restrict flags) {
    for (int64_t t = 0; t < n; t++)
        flags[t] = p[t] != 0;
}

void at_fast_mask_row(int64_t n, const double *p, uint16_t *mask) {
    enum { PIECE = 1024 };
    uint8_t flags[PIECE];
    for (int64_t t0 = 0; t0 < n; t0 += PIECE) {
        const int64_t count = n - t0 < PIECE ? n - t0 : PIECE, whole = (count + 15) / 16 * 16;
        flag_row(count, p + t0, flags);
        memset(flags + count, 0, (size_t)(whole - count));
        for (int64_t t = 0; t < whole; t += 16)
            mask[(t0 + t) / 16] = (uint16_t)(gather(flags + t) | gather(flags + t + 8) << 8);
    }
}

AT_CLONES
uint64_t at_fast_mass(int64_t n, const double *p) {
    const double place = 0x1p52;
    uint64_t sum = 0;
    for (int64_t t = 0; t < n; t++) {
        const double units = fabs(p[t]) * 0x1p24 + place;
        uint64_t bits;
        memcpy(&bits, &units, sizeof bits);
        sum += bits & 0xfffffffffffffu;
    }
    return sum;
}

AT_CLONES
int at_fast_mass_fits(int64_t n, const double *p) {
    int64_t beyond = 0;
    for (int64_t t = 0; t < n; t++)
        beyond += !(fabs(p[t]) <= 0x1p26);
    return beyond == 0;
}

AT_CLONES
void at_fast_multiply_row(int64_t n, double gamma, const double *restrict p, double *restrict w) {
    for (int64_t t = 0; t < n; t++)
        w[t] = gamma * p[t];
}

/* Channels [c, c + 8 VECTORS) of o, in registers over all keys. */
#define WEIGH(VECTORS) \
    do { \
        lanes8 sum[VECTORS]; \
        for (int i = 0; i < (VECTORS); i++) \
            sum[i] = *(lanes8 *)(o + c + 8 * i); \
        for (int64_t page = 0; page * 16 < n; page++) \
            for (uint32_t bits = mask[page]; bits; bits &= bits - 1) { \
                const int64_t t = page * 16 + __builtin_ctz(bits); \
                const double *row = v + t * d + c; \
                for (int i = 0; i < (VECTORS); i++) \
                    for (int lane = 0; lane < 8; lane++) \
                        sum[i][lane] = fma(w[t], row[8 * i + lane], sum[i][lane]); \
            } \
        for (int i = 0; i < (VECTORS); i++) \
            *(lanes8 *)(o + c + 8 * i) = sum[i]; \
        c += 8 * (VECTORS); \
    } while (0)

AT_FMA_CLONES
void at_fast_weigh_values(int64_t n, int64_t d, const double *w, const uint16_t *mask, const double *v, double *o) {
    int64_t c = 0;
    while (d - c >= 64)
        WEIGH(8);
    while (d - c >= 32)
        WEIGH(4);
    while (d - c >= 8)
        WEIGH(1);
    for (; c < d; c++)
        for (int64_t page = 0; page * 16 < n; page++)
            for (uint32_t bits = mask[page]; bits; bits &= bits - 1) {
                const int64_t t = page * 16 + __builtin_ctz(bits);
                o[c] = fma(w[t], v[t * d + c], o[c]);
            }
}
