/* The fused dot-product-add and its table of parameters.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything here is exact in double until the one rounding at the end: a product of two 11-bit
 * significands has 22 bits; scaled by 2^(F - e_max), a power of two, its cast to an integer is the cut
 * towards zero that the rule asks for; cut terms are below 2^(F+2), at most 2^27: each fits 32 bits, as processors
 * cast several at a time, and 65 of them fit 53. */
#include "tensor_core/fdpa.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "attest/clones.h"

enum { BIAS = 1023, NO_EXPONENT = -10000 };
static const uint64_t SIGN = 0x8000000000000000u, INFINITE = 0x7ff0000000000000u;

/* name, L, F, accumulator, its significand bits, rounding, e_zero, least exponent of c. L, F and rounding: MMA-Sim (arXiv
 * 2511.10909) and arXiv 2512.07004, which agree; e_zero: measured for Hopper, else the first (the second has -19, -20,
 * -21 for f16 accumulators, and -21 is what Hopper has). The exponent of a subnormal c: the first has emin, as here; the
 * second reads c as f32, so that a subnormal f16 has the exponent of its leading bit, down to -24. */
/* clang-format off */
static const struct at_tc_rule rules[] = {
    { "volta_f16_f32",           4, 23, AT_F32, 24, AT_TC_RZ,  -131, -126 },
    { "volta_f16_f16",           4, 23, AT_F16, 11, AT_TC_RNE,  -20,  -14 },
    { "turing_f16_f32",          8, 24, AT_F32, 24, AT_TC_RZ,  -132, -126 },
    { "turing_f16_f16",          8, 24, AT_F16, 11, AT_TC_RNE,  -21,  -14 },
    { "ampere_f16_f32",          8, 24, AT_F32, 24, AT_TC_RZ,  -132, -126 }, /* and bf16; Ada the same */
    { "ampere_f16_f16",          8, 24, AT_F16, 11, AT_TC_RNE,  -21,  -14 },
    { "ampere_tf32_f32",         4, 24, AT_F32, 24, AT_TC_RZ,  -132, -126 },
    { "ada_fp8_f32",            16, 13, AT_F32, 14, AT_TC_RZ,  -132, -126 }, /* E8M13: f32 with 13 fraction bits */
    { "ada_fp8_f16",            16, 13, AT_F16, 11, AT_TC_RNE,  -21,  -14 },
    { "hopper_f16_f32",         16, 25, AT_F32, 24, AT_TC_RZ,  -133, -126 },
    { "hopper_bf16_f32",        16, 25, AT_F32, 24, AT_TC_RZ,  -133, -126 },
    { "hopper_mma_f16_f16",     16, 25, AT_F16, 11, AT_TC_RNE,  -21,  -14 },
    { "hopper_wgmma_f16_f16",   16, 25, AT_F16, 11, AT_TC_RNE,  -21,  -14 },
    { "hopper_tf32_f32",         8, 25, AT_F32, 24, AT_TC_RZ,  -133, -126 },
    { "hopper_wgmma_fp8_f32",   32, 13, AT_F32, 14, AT_TC_RZ,  -133, -126 },
    { "hopper_wgmma_fp8_f16",   32, 13, AT_F16, 11, AT_TC_RNE, -133,  -14 }, /* e_zero: no operands tell */
    { "blackwell_f16_f32",      16, 25, AT_F32, 24, AT_TC_RZ,  -133, -126 }, /* and bf16 */
    { "blackwell_mma_f16_f16",  16, 25, AT_F16, 11, AT_TC_RNE,  -22,  -14 },
    { "blackwell_tcgen05_f16_f16", 16, 25, AT_F16, 11, AT_TC_RNE, -133,  -14 },
    { "blackwell_tf32_f32",      8, 25, AT_F32, 24, AT_TC_RZ,  -133, -126 },
    { "blackwell_f8f6f4_f32",   32, 25, AT_F32, 24, AT_TC_RZ,  -133, -126 },
    { "blackwell_tcgen05_f8f6f4_f16", 32, 25, AT_F16, 11, AT_TC_RNE, -133,  -14 },
    { "blackwell_mma_f8f6f4_f16", 32, 25, AT_F16, 11, AT_TC_RNE,  -22,  -14 },
    /* Model only, not measured; another arithmetic: tensor_core/cdna3.h. */
    { "cdna3_f16_f32",           8, 24, AT_F32, 24, AT_TC_RNE, -126, -126 }, /* and bf16 */
    { "cdna3_xf32_f32",          4, 24, AT_F32, 24, AT_TC_RNE, -126, -126 },
};
/* clang-format on */

int at_tc_rule_count(void) { return (int)(sizeof rules / sizeof rules[0]); }

const struct at_tc_rule *at_tc_rule_at(int i) { return &rules[i]; }

const struct at_tc_rule *at_tc_rule_find(const char *name) {
    for (int i = 0; i < at_tc_rule_count(); i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Exponent of a double's leading bit as its format's unpacker sees it, and 1023 more; zero gives emin's too. */
static inline int exponent_of(double x, int biased_emin) {
    const int e = (int)(bits_of(x) >> 52 & 0x7ff);
    return e > biased_emin ? e : biased_emin;
}

/* Towards zero to p significant bits, no finer than the format's smallest subnormal. */
static double cut_to(double x, int p, int emin, int emax) {
    if (fabs(x) < at_tc_power_of_two(emin)) {
        double grain = at_tc_power_of_two(emin - (p - 1));
        return copysign(trunc(x / grain) * grain, x);
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~((UINT64_C(1) << (53 - p)) - 1);
    memcpy(&x, &bits, sizeof x);
    return fabs(x) < at_tc_power_of_two(emax + 1) ? x : copysign(INFINITY, x);
}

static double convert(const struct at_tc_rule *rule, double sum) {
    const struct at_format_info *out = at_format_info(rule->out);
    if (rule->rounding == AT_TC_RNE && rule->out_bits == out->precision)
        return at_round(rule->out, sum);
    if (rule->rounding == AT_TC_RNE) { /* no hardware: the neighbour of E8M13 that rounds to nearest */
        const double grain = ldexp(1, (ilogb(sum) > out->emin ? ilogb(sum) : out->emin) - rule->out_bits + 1);
        return at_round(rule->out, rint(sum / grain) * grain);
    }
    return cut_to(sum, rule->out_bits, out->emin, out->emax);
}

double at_tc_convert(const struct at_tc_rule *rule, double sum) {
    return sum == 0 ? 0.0 : convert(rule, sum) + 0.0; /* -0 + 0 is +0 */
}

double at_fdpa(const struct at_tc_rule *rule, enum at_format in, const double *a, ptrdiff_t sa, const double *b,
               ptrdiff_t sb, int n, double c) {
    return at_fdpa_mixed(rule, in, in, a, sa, b, sb, n, c);
}

/* In two loops, each of which compilers make vector instructions of. */
static inline __attribute__((always_inline)) int64_t cut_sum(const double *product, int n, double scale) {
    int32_t cut[AT_TC_BLOCK_MAX];
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        cut[i] = (int32_t)(product[i] * scale);
    for (int i = 0; i < n; i++)
        sum += cut[i];
    return sum;
}

/* Steps 2 to 5 for finite terms, from the largest exponent of the products on. */
static inline __attribute__((always_inline)) double cut_and_add(const struct at_tc_rule *rule, const double *product,
                                                                int n, double c, int e_max) {
    if (c != 0) {
        const int e = exponent_of(c, rule->addend_exponent + BIAS) - BIAS;
        e_max = e > e_max ? e : e_max;
    }
    const double scale = at_tc_power_of_two(rule->kept_bits - e_max);
    const int64_t sum = (int32_t)(c * scale) + cut_sum(product, n, scale);
    return at_tc_convert(rule, (double)sum * at_tc_power_of_two(e_max - rule->kept_bits));
}

double at_fdpa_mixed(const struct at_tc_rule *rule, enum at_format in_a, enum at_format in_b, const double *a,
                     ptrdiff_t sa, const double *b, ptrdiff_t sb, int n, double c) {
    double product[AT_TC_BLOCK_MAX];
    const int emin_a = at_format_info(in_a)->emin + BIAS, emin_b = at_format_info(in_b)->emin + BIAS;
    int e_max = rule->zero_exponent + 2 * BIAS;
    uint64_t largest = bits_of(c) & ~SIGN; /* of all terms, by their bits: not finite as soon as one is not */
    for (int i = 0; i < n; i++) {
        const double x = a[i * sa], y = b[i * sb], p = x * y;
        const int e = exponent_of(x, emin_a) + exponent_of(y, emin_b);
        const uint64_t size = bits_of(p) & ~SIGN;
        e_max = size && e > e_max ? e : e_max;
        largest = size > largest ? size : largest;
        product[i] = p;
    }
    if (largest >= INFINITE) {
        double sum = c; /* finite terms leave infinities and NaNs as they are */
        for (int i = 0; i < n; i++)
            sum += product[i];
        return sum;
    }
    return cut_and_add(rule, product, n, c, e_max - 2 * BIAS);
}

void at_tc_row_know(enum at_format in, struct at_tc_row *row, int n) {
    const int emin = at_format_info(in)->emin + BIAS;
    row->finite = 1;
    for (int i = 0; i < n; i++) {
        row->exponent[i] = (int16_t)(row->x[i] == 0 ? NO_EXPONENT : exponent_of(row->x[i], emin) - BIAS);
        row->finite &= (bits_of(row->x[i]) & ~SIGN) < INFINITE;
    }
}

/* Step 1 and the others for n finite products; with n a constant, no loop is left over. */
static inline __attribute__((always_inline)) double rows_of(const struct at_tc_rule *rule, const struct at_tc_row *a,
                                                            const struct at_tc_row *b, int first, int n, double c) {
    double product[AT_TC_ROW_MAX];
    int16_t e_max = (int16_t)rule->zero_exponent;
    for (int i = 0; i < n; i++) {
        const int16_t e = (int16_t)(a->exponent[first + i] + b->exponent[first + i]);
        e_max = e > e_max ? e : e_max;
    }
    for (int i = 0; i < n; i++)
        product[i] = a->x[first + i] * b->x[first + i];
    return cut_and_add(rule, product, n, c, e_max);
}

AT_CLONES double at_fdpa_rows(const struct at_tc_rule *rule, const struct at_tc_row *a, const struct at_tc_row *b,
                              int first, int n, double c) {
    if ((bits_of(c) & ~SIGN) >= INFINITE)
        return c; /* products of finite factors are finite */
    if (n == 16)  /* what Hopper's instructions of 16 bits take at a time */
        return rows_of(rule, a, b, first, 16, c);
    return rows_of(rule, a, b, first, n, c);
}
