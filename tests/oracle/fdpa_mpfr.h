/* A second, independent fused dot-product-add: from bit patterns to a bit pattern, on MPFR numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FDPA_MPFR_H
#define TESTS_FDPA_MPFR_H

#include <stdint.h>

/* A binary format by its field widths: f16 {5, 10}, bf16 {8, 7}, f32 {8, 23}; e4m3 {4, 3, 1}. */
struct oracle_format {
    int exponent_bits, fraction_bits;
    int finite; /* no infinities; NaN is all ones */
};

/* What a unit might do instead. */
enum oracle_doubt {
    ORACLE_NO_DOUBT,
    ORACLE_C_LEADS,          /* a subnormal c has the exponent of its leading bit */
    ORACLE_C_FLUSHED,        /* a subnormal c is 0 */
    ORACLE_OPERANDS_LEAD,    /* a subnormal operand has the exponent of its leading bit */
    ORACLE_OPERANDS_FLUSHED, /* a subnormal operand is 0 */
    ORACLE_CUT_DOWN,         /* terms are cut towards minus infinity */
    ORACLE_C_CUT_DOWN,       /* c alone is */
    ORACLE_C_LAST,           /* c is added to the rounded sum of products, to nearest */
    ORACLE_ROUNDED_TWICE,    /* an f16 result is cut to F + 1 bits before it is rounded */
    ORACLE_NOTHING_OF_ZERO,  /* infinity times 0 is 0 */
    ORACLE_FIRST_INFINITY,   /* of infinities of both signs the first stays, c before all */
    ORACLE_NAN_LOSES,        /* an infinity is stronger than a NaN */
    ORACLE_DOUBTS
};

struct oracle_fdpa {
    struct oracle_format a, b, out;
    int kept;       /* fraction bits kept at alignment */
    int to_nearest; /* final rounding: nearest even, else towards zero */
    int floor;      /* least exponent of the alignment */
    int dropped;    /* last fraction bits of the format that results do not have: 10 for E8M13 */
    enum oracle_doubt doubt;
};

/* Code of c + sum a_i b_i in the output format; NaN is all ones without the sign. At most 64 products. */
uint32_t oracle_fdpa(const struct oracle_fdpa *rule, int n, const uint32_t *a, const uint32_t *b, uint32_t c);
/* Code of x + y, rounded once to nearest. */
uint32_t oracle_add(struct oracle_format format, uint32_t x, uint32_t y);

#endif
