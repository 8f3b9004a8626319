/* The data families that sit on an edge of a number format.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/fill/families.h"

#include <math.h>
#include <stddef.h>

static int64_t kv_head_of(const struct at_data *data, int64_t head) { return head / (data->h / data->hk); }

double at_least_normal(const struct at_data *data) { return ldexp(1, at_format_info(data->dtype)->emin); }

double at_nonfinite(uint64_t i) { return i % 3 == 0 ? (double)NAN : i % 3 == 1 ? (double)INFINITY : -(double)INFINITY; }

/* ---- near_65504: q = 16 e, k = +-B e with 16 B d = 65504, each a little shorter. All products of a score have
 * one sign, so every partial sum is inside f16 and the last one just so; the rounding of q and k to bf16 (2^-8
 * together) stays inside too. A kernel that scales late, or multiplies by log2(e) first, overflows here. ---- */

enum { NEAR_Q = 16 };

AT_FAMILY_ROW(at_near_query) {
    struct at_random random = at_data_random(data, "q length");
    double length = 1 - 0.1 * at_random_uniform(&random, at_data_query_row(data, request, i, head));
    for (int64_t c = 0; c < data->d; c++)
        row[c] = NEAR_Q * length * at_direction(data, request, kv_head_of(data, head), c);
}

/* factor times 65504 / (16 d) along the direction, sign by lot */
static void near_row(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head, double factor,
                     double *row) {
    struct at_random random = at_data_random(data, "k sign");
    int up = at_random_bits(&random, at_data_key_row(data, request, t, kv_head)) & 1;
    double length = factor * 65504.0 / (NEAR_Q * (double)data->d) * (up ? 1 : -1);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = length * at_direction(data, request, kv_head, c);
}

AT_FAMILY_ROW(at_near_key) {
    struct at_random random = at_data_random(data, "k length");
    near_row(data, request, i, head, 0.95 + 0.035 * at_random_uniform(&random, at_data_key_row(data, request, i, head)),
             row);
}

/* ---- overflow: every fourth key's score is 1.4 to 4 times 65504, the others are of order 1 after the scale.
 * f16 accumulation makes Inf, and with both signs about, Inf - Inf may follow in the FIR; AsyncT's clamp then
 * turns Inf into a healthy 1, which the ledger must not let pass. f32 kernels must not care. ---- */

AT_FAMILY_ROW(at_overflow_key) {
    if (i % 4 == 1) {
        struct at_random random = at_data_random(data, "k length");
        near_row(data, request, i, head,
                 1.6 + 2.4 * at_random_uniform(&random, at_data_key_row(data, request, i, head)), row);
        return;
    }
    at_along(data, "k", at_data_key_row(data, request, i, head), request, head, 0, 1.0 / NEAR_Q, row);
}

/* ---- cancel: neighbouring channels carry the same q and nearly opposite k, so <q,k> is 300 times smaller than
 * sum |q||k|; neighbouring keys carry nearly opposite V. The limit must come from the sum of magnitudes: one
 * taken from the result accuses right kernels, one that ignores signs is slack. ---- */

AT_FAMILY_ROW(at_cancel_query) {
    at_along(data, "q", at_data_query_row(data, request, i, head), request, 0, 0, 2, row);
    for (int64_t c = 1; c < data->d; c += 2)
        row[c] = row[c - 1];
}

AT_FAMILY_ROW(at_cancel_key) {
    at_along(data, "k", at_data_key_row(data, request, i, head), request, 0, 0, 16, row);
    for (int64_t c = 1; c < data->d; c += 2)
        row[c] = -row[c - 1] + row[c] * 0.03125;
}

AT_FAMILY_ROW(at_cancel_value) {
    double rest[AT_DATA_MAX_D];
    at_along(data, "v", at_data_key_row(data, request, i - i % 2, head), request, 0, 0, 16, row);
    if (i % 2 == 0)
        return;
    at_along(data, "v", at_data_key_row(data, request, i, head), request, 0, 0, 0.5, rest);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = rest[c] - row[c];
}

/* ---- swamped: every key of a request and kv head is the same, so the weights are equal to the bit and those of the
 * softmax are 1. In the even channels V comes in threes, a small one, a large one and its negative: the exact sum is
 * that of the small ones, 13 bits below what a running sum holds, so that which of their bits are lost, and with them
 * the order of the sum, shows in outputs of 8 and 11 bits. The odd channels are normal: there a limit made from sizes is
 * of use. But every fourth is an eighth of the least normal number: halves of a subnormal result's unit have few bits, and
 * a sum of weights that counts keys, divided to within an ulp of f32 only, falls on the wrong side of one. ---- */

enum { SWAMPED_FROM = 6 }; /* the first keys of a filter see fewer scores, and their weights differ */

AT_FAMILY_ROW(at_swamped_query) {
    at_along(data, "q", at_data_query_row(data, request, i, head), request, kv_head_of(data, head), 1, 0.3, row);
}

AT_FAMILY_ROW(at_swamped_key) {
    (void)i;
    at_along(data, "k", at_data_key_row(data, request, 0, head), request, head, 0.8 / ((double)data->d * data->scale),
             0.3 / ((double)data->d * data->scale), row);
}

AT_FAMILY_ROW(at_swamped_value) {
    double large[AT_DATA_MAX_D];
    at_along(data, "v", at_data_key_row(data, request, i, head), request, 0, 0, 1, row);
    for (int64_t c = 3; c < data->d; c += 4)
        row[c] *= at_least_normal(data) / 8;
    if (i % 3 == 0 || i < SWAMPED_FROM)
        return;
    at_along(data, "v", at_data_key_row(data, request, i - i % 3 + 1, head), request, 0, 0, 8192, large);
    for (int64_t c = 0; c < data->d; c += 2)
        row[c] = i % 3 == 1 ? large[c] : -large[c];
}

/* ---- subnormal: V an eighth of the least normal number and below, so P*V and o are subnormal; every fourth key
 * is 2^-14 of the others, so its score is subnormal in f16. Hardware that flushes, or a build with
 * -ffast-math's start-up code, gives 0. ---- */

AT_FAMILY_ROW(at_subnormal_key) {
    at_along(data, "k", at_data_key_row(data, request, i, head), request, 0, 0, i % 4 == 2 ? 0x1p-14 : 1, row);
}

AT_FAMILY_ROW(at_subnormal_value) {
    at_along(data, "v", at_data_key_row(data, request, i, head), request, 0, 0, at_least_normal(data) / 8, row);
}

/* ---- all_masked: every product of a score is negative. AsyncT (relu_pre, clip_min 0): all p are 0 and o is
 * exactly 0, whatever V holds; a stale accumulator or a forgotten clear shows. Softmax: all scores lie between
 * about -500 and -2500, below the -1e4-like numbers some kernels use to mask only by luck, and beyond exp's
 * range unless the row's maximum is subtracted: o is an ordinary mean. ---- */

static void one_sided(const struct at_data *data, const char *name, uint64_t row_number, int64_t request,
                      int64_t kv_head, double factor, double *row) {
    struct at_random random = at_data_random(data, name);
    at_random_uniforms(&random, row_number * (uint64_t)data->d, data->d, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = factor * (0.5 + row[c]) * at_direction(data, request, kv_head, c);
}

AT_FAMILY_ROW(at_masked_query) {
    one_sided(data, "q", at_data_query_row(data, request, i, head), request, kv_head_of(data, head), 1, row);
}

AT_FAMILY_ROW(at_masked_key) {
    double mean = data->asynct ? 1 : 1200 / ((double)data->d * data->scale);
    one_sided(data, "k", at_data_key_row(data, request, i, head), request, head, -mean, row);
}

/* ---- nonfinite: one channel of some rows is NaN, Inf or -Inf: a sixteenth of the queries, a 32nd of the keys
 * and of the values. Every class must come out where the reference has it and nowhere else; with several
 * requests the first one is clean and must stay so. ---- */

static void sprinkle(const struct at_data *data, const char *name, uint64_t row_number, int64_t request, int64_t one_in,
                     double *row) {
    struct at_random random = at_data_random(data, name);
    if ((data->b > 1 && request == 0) || at_random_below(&random, 4 * row_number, one_in))
        return;
    row[at_random_below(&random, 4 * row_number + 1, data->d)] =
        at_nonfinite(at_random_bits(&random, 4 * row_number + 2));
}

AT_FAMILY_ROW(at_nonfinite_query) {
    at_normal_query(data, request, i, head, row);
    sprinkle(data, "nonfinite q", at_data_query_row(data, request, i, head), request, 16, row);
}

AT_FAMILY_ROW(at_nonfinite_key) {
    at_normal_key(data, request, i, head, row);
    sprinkle(data, "nonfinite k", at_data_key_row(data, request, i, head), request, 32, row);
}

AT_FAMILY_ROW(at_nonfinite_value) {
    at_normal_value(data, request, i, head, row);
    sprinkle(data, "nonfinite v", at_data_key_row(data, request, i, head), request, 32, row);
}

/* ---- random_bits: every significand bit and every exponent from 2^-24 to 2^15 equally likely. Conversions meet
 * all their cases, sums swamp at every step. Wider exponents of bf16 and f32 are left out: their products leave
 * f32's range, and a result of NaN and Inf alone judges nothing. ---- */

double at_random_value(const struct at_data *data, const struct at_random *random, uint64_t i) {
    uint32_t bits = at_random_bits(random, 2 * i);
    if (data->dtype == AT_F16) {
        uint32_t code = bits & 0xffff;
        return at_decode(AT_F16, (code & 0x7c00) == 0x7c00 ? code & ~0x4000u : code);
    }
    if (data->dtype == AT_E4M3) /* one NaN a sign */
        return at_decode(AT_E4M3, (bits & 0x7f) == 0x7f ? bits & 0xbf : bits & 0xff);
    if (data->dtype == AT_E5M2)
        return at_decode(AT_E5M2, (bits & 0x7c) == 0x7c ? bits & 0xbf : bits & 0xff);
    double significand = 1 + (double)(at_random_bits(random, 2 * i + 1) >> 8) * 0x1p-24;
    if (data->dtype == AT_BF16)
        significand = 1 + (double)(bits >> 25) * 0x1p-7;
    return ldexp(bits & 1 ? -significand : significand, (int)((bits >> 1) % 40) - 24);
}

static void random_values(const struct at_data *data, const char *name, uint64_t row_number, double *row) {
    struct at_random random = at_data_random(data, name);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = at_random_value(data, &random, row_number * (uint64_t)data->d + (uint64_t)c);
}

AT_FAMILY_ROW(at_bits_query) { random_values(data, "q", at_data_query_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_bits_key) { random_values(data, "k", at_data_key_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_bits_value) { random_values(data, "v", at_data_key_row(data, request, i, head), row); }

/* ---- adversarial: not random at all. A sum whose first term is 1 and whose others are a little more than half
 * an ulp of the accumulator rounds up at every step: the error is n u (to 1 part in 64), all that the limit
 * allows, where random data reach its square root. Terms of nearly a whole ulp do the same to an accumulator
 * that truncates. ulps of f32 and of f16 alternate.
 *
 * Keys are open when t mod 3 = 0 (the pool closes the two after), all others closed. Where request + kv head is
 * even the sums under attack are P*V: open keys have p = 1. Where it is odd they are Q*K: p is inside the gate
 * and V is normal. ---- */

/* Term c of the sum: 1, then just above half an ulp of 1 in f32 or f16, or just below a whole one. */
static double climbing_term(int64_t c, int half_precision) {
    double half_ulp = half_precision ? 0x1p-11 : 0x1p-24;
    return c == 0 ? 1 : half_ulp * (c % 8 < 6 ? 1 + 0x1p-6 : 2 - 0x1p-6);
}

static int attacks_pv(int64_t request, int64_t kv_head) { return (request + kv_head) % 2 == 0; }

AT_FAMILY_ROW(at_adversarial_query) {
    (void)request, (void)i, (void)head;
    for (int64_t c = 0; c < data->d; c++)
        row[c] = 1;
}

AT_FAMILY_ROW(at_adversarial_key) {
    int open = i % 3 == 0;
    double closed = data->asynct ? -1 : -1500;
    if (attacks_pv(request, head) || !open) {
        double score = open ? 8 : closed;
        for (int64_t c = 0; c < data->d; c++)
            row[c] = score / (data->scale * (double)data->d);
        return;
    }
    for (int64_t c = 0; c < data->d; c++)
        row[c] = climbing_term(c, i % 2) * 8; /* a power of two: scores 8 scale, 0.7 for d = 128 */
}

AT_FAMILY_ROW(at_adversarial_value) {
    if (!attacks_pv(request, head)) {
        at_normal_value(data, request, i, head, row);
        return;
    }
    for (int64_t c = 0; c < data->d; c++)
        row[c] = climbing_term(i / 3, (int)(c % 2));
}
