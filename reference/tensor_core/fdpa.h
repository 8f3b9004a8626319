/* The one primitive of a tensor core: the fused dot-product-add of a few products and an accumulator,
 * bit for bit.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rule, for up to L products a_i * b_i and an accumulator c:
 *   1. Exponents: of a normal value its own, of a subnormal its format's emin (subnormals are neither
 *      flushed nor normalised). A product has the exact significand and exponent ea + eb, and is not
 *      renormalised: 1.5 * 1.5 keeps exponent 0.
 *   2. e_max: the largest exponent among the products and c. A zero term counts as e_zero; since every
 *      c other than zero has an exponent above it, e_zero is a floor of e_max.
 *   3. Every term's magnitude is cut (towards zero, no guard bits) to a multiple of 2^(e_max - F).
 *   4. The cut terms are added exactly, and the sum is rounded once to the accumulator: towards zero, or
 *      to nearest even, with gradual underflow. Magnitudes past its range become infinite even when
 *      rounding goes towards zero (2^128 and above for f32).
 *   5. A NaN, infinity times zero, or infinities of both signs among the terms give NaN; otherwise an
 *      infinite term gives infinity. A sum of zero is +0, also one that only rounding made zero.
 * Sources: the public models MMA-Sim (arXiv 2511.10909) and those of arXiv 2512.07004, whose published
 * hardware vectors this rule reproduces. They do not cover specials, subnormals and e_zero; for Hopper those were
 * measured (attest study tensor-core, datasets/measurements/h200_tensor_core.txt). Where the card differs from those
 * models: a negative sum that is rounded to zero is +0, not -0; e_zero of an f16 accumulator is -21, for mma.sync and
 * for wgmma. */
#ifndef AT_FDPA_H
#define AT_FDPA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "attest/format.h"

enum at_tc_rounding { AT_TC_RZ, AT_TC_RNE };

/* The arithmetic of a unit: a row of the table. Which instructions it is the arithmetic of: tensor_core/instruction.h.
 */
struct at_tc_rule {
    const char *name;
    int block;          /* L: products in one fused step */
    int kept_bits;      /* F: fraction bits kept at alignment, relative to e_max */
    enum at_format out; /* format of c and of the result: AT_F32 or AT_F16 */
    int out_bits;       /* significand bits of the result, hidden bit included */
    enum at_tc_rounding rounding;
    int zero_exponent;   /* e_zero */
    int addend_exponent; /* the least that c counts with: its format's emin */
};

enum { AT_TC_BLOCK_MAX = 64 };

/* 2^e for exponents of normal doubles, -1022 to 1023. */
static inline double at_tc_power_of_two(int e) {
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The row of that name, NULL if none; at_tc_rule_count()/at_tc_rule_at() walk the table. */
const struct at_tc_rule *at_tc_rule_find(const char *name);
int at_tc_rule_count(void);
const struct at_tc_rule *at_tc_rule_at(int i);

/* One fused step: c + sum a[i*sa] * b[i*sb], i < n <= rule->block, missing products being zeros. a and b
 * hold values of the format `in` (f16, bf16 or narrower), c and the result of rule->out. NaN results are
 * the quiet NaN; their sign and payload mean nothing. */
double at_fdpa(const struct at_tc_rule *rule, enum at_format in, const double *a, ptrdiff_t sa, const double *b,
               ptrdiff_t sb, int n, double c);
/* The same with a and b of two formats (e4m3 beside e5m2). */
double at_fdpa_mixed(const struct at_tc_rule *rule, enum at_format in_a, enum at_format in_b, const double *a,
                     ptrdiff_t sa, const double *b, ptrdiff_t sb, int n, double c);

/* Factors whose exponents are looked up once for many sums. Zeros have one that no product's reaches. */
enum { AT_TC_ROW_MAX = 32 };
struct at_tc_row {
    double x[AT_TC_ROW_MAX];
    int16_t exponent[AT_TC_ROW_MAX];
    int finite; /* all of x are */
};
/* Fills the rest of a row whose x[0..n) hold values of the format. */
void at_tc_row_know(enum at_format in, struct at_tc_row *row, int n);
/* at_fdpa_mixed of a->x and b->x from `first` on; both rows are finite. */
double at_fdpa_rows(const struct at_tc_rule *rule, const struct at_tc_row *a, const struct at_tc_row *b, int first,
                    int n, double c);

/* Steps 4 and 5's conversion alone: the sum of cut terms, as an exact double, to the accumulator. */
double at_tc_convert(const struct at_tc_rule *rule, double sum);

#endif
