/* The matrix cores of AMD's CDNA3: one group of products and an addend. Model only: not measured.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rule, for up to L products and an addend c; exponents as in tensor_core/fdpa.h:
 *   1. e_p: the largest exponent of the products alone, one that is zero counting as e_zero. Each product is cut
 *      towards zero to a multiple of 2^(e_p - F), and they are added exactly.
 *   2. e: the larger of e_p and the exponent of c. The sum of step 1 is rounded down, towards minus infinity, to a
 *      multiple of 2^(e - 31), c down to one of 2^(e - F).
 *   3. The two are added exactly and rounded once to nearest even; a negative sum that is rounded to zero is -0, an
 *      exact sum of zero +0.
 *   4. A product of 2^128 or more counts as infinite. NaNs and infinities are as in tensor_core/fdpa.h.
 * Source: the public model MMA-Sim (arXiv 2511.10909), which calls e_zero open; its signs of zero are those of the
 * language it is written in. No public vectors of the hardware are at hand. Not described: fp8, whose formats (FNUZ) this
 * suite does not have. */
#ifndef AT_CDNA3_H
#define AT_CDNA3_H

#include "tensor_core/fdpa.h"

enum { AT_CDNA3_SUM_BITS = 31 };

/* c + sum a[i] * b[i], i < n <= AT_TC_BLOCK_MAX, in one group; rule: its row of the table, or a neighbour of it. Operands
 * hold values of the format; of AT_TF32 (xf32) any of f32, whose last 13 bits are cut off. */
double at_cdna3_multiply_add(const struct at_tc_rule *rule, enum at_format in, const double *a, const double *b, int n,
                             double c);

#endif
