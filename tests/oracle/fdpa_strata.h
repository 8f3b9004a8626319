/* Inputs for fused dot-product-adds, by stratum: what ordinary random numbers would never visit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FDPA_STRATA_H
#define TESTS_FDPA_STRATA_H

#include <stdint.h>

#include "tests/oracle/fdpa_mpfr.h"

enum fdpa_stratum {
    FDPA_ORDINARY,      /* magnitudes near 1 */
    FDPA_ANY_CODE,      /* every finite code alike */
    FDPA_CANCELLING,    /* products in pairs of opposite sign, small rests */
    FDPA_NEAR_TIE,      /* 1 or so, plus powers of two around the last kept and the last output bit */
    FDPA_SUBNORMAL,     /* operands and c at the bottom of their formats */
    FDPA_NEAR_OVERFLOW, /* sums around the largest output */
    FDPA_SWAMPED,       /* one large term, the others around its last bits */
    FDPA_SPECIAL,       /* zeros, infinities, NaNs among ordinary values */
    FDPA_STRATA
};

struct fdpa_random {
    uint64_t state;
};
uint64_t fdpa_next(struct fdpa_random *random); /* splitmix64 */

/* Codes of n products in rule->in and of c in rule->out. */
void fdpa_fill(struct fdpa_random *random, enum fdpa_stratum stratum, const struct oracle_fdpa *rule, int n,
               uint16_t *a, uint16_t *b, uint32_t *c);

#endif
