/* A second, independent fused dot-product-add: from bit patterns to a bit pattern, on MPFR numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FDPA_MPFR_H
#define TESTS_FDPA_MPFR_H

#include <stdint.h>

/* A binary format by its field widths: f16 {5, 10}, bf16 {8, 7}, f32 {8, 23}. */
struct oracle_format {
    int exponent_bits, fraction_bits;
};

struct oracle_fdpa {
    struct oracle_format in, out;
    int kept;       /* fraction bits kept at alignment */
    int to_nearest; /* final rounding: nearest even, else towards zero */
    int floor;      /* least exponent of the alignment */
};

/* Code of c + sum a_i b_i in the output format; NaN is all ones without the sign. At most 64 products. */
uint32_t oracle_fdpa(const struct oracle_fdpa *rule, int n, const uint32_t *a, const uint32_t *b, uint32_t c);

#endif
