/* A second, independent group of a CDNA3 matrix core: from bit patterns to a bit pattern, on MPFR numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MFMA_MPFR_H
#define TESTS_MFMA_MPFR_H

#include "tests/oracle/fdpa_mpfr.h"

/* What the unit might do instead. */
enum mfma_doubt {
    MFMA_NO_DOUBT,
    MFMA_KEPT_LESS,       /* products and c keep a bit less */
    MFMA_KEPT_MORE,       /* a bit more */
    MFMA_SUM_LESS,        /* the sum of products keeps 30 bits */
    MFMA_SUM_MORE,        /* 32 */
    MFMA_SUM_AS_PRODUCTS, /* 24 */
    MFMA_PRODUCTS_DOWN,   /* products are rounded down */
    MFMA_SUM_CUT,         /* the sum of products is cut towards zero */
    MFMA_C_CUT,           /* c is */
    MFMA_C_IN_ALIGNMENT,  /* products are cut beside c as well */
    MFMA_RESULT_CUT,      /* the result is cut towards zero */
    MFMA_ZERO_IGNORED,    /* a product of zero has no exponent */
    MFMA_FINITE_PRODUCTS, /* a product of 2^128 is a number */
    MFMA_RENORMALISED,    /* 1.5 * 1.5 has exponent 1 */
    MFMA_DOUBTS
};

/* f32 code of c + sum a_i b_i, i < n <= 64, in one group; NaN is all ones without the sign. */
uint32_t oracle_mfma(struct oracle_format in, enum mfma_doubt doubt, int n, const uint32_t *a, const uint32_t *b,
                     uint32_t c);

#endif
