/* Operands for fused dot-product-adds, by stratum: what ordinary random numbers would never visit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TC_PATTERNS_H
#define AT_TC_PATTERNS_H

#include "tensor_core/instruction.h"

/* name, meaning */
#define AT_TC_STRATUM_LIST(X) \
    X(ordinary, "magnitudes near 1") \
    X(any_code, "every finite code alike") \
    X(cancelling, "products in pairs of opposite sign, small rests") \
    X(near_tie, "1 or so, and powers of two around the last kept bit and half the last output bit") \
    X(subnormal, "operands and addend at the bottom of their formats") \
    X(near_overflow, "sums around the largest output") \
    X(swamped, "one large term, the others around its last bits") \
    X(special, "zeros, infinities, NaNs among ordinary values") \
    X(apart, "large terms that cancel across the middle of the block, small ones between them") \
    X(floor, "a sum at the edge of the least result, decided by terms that the floor of the alignment cuts or keeps") \
    X(low_addend, \
      "a subnormal addend, half its last bit, and products around what its exponent makes the alignment cut") \
    X(low_operand, \
      "a subnormal factor in the largest product, the others around what its exponent makes the alignment cut") \
    X(cut_addend, "two large products that cancel, and an addend, mostly negative, that they cut") \
    X(carried, \
      "a sum that carries, half a last output bit, and the last kept bit, one beyond what the sum has room for") \
    X(specials, "infinities of both signs, NaNs and zeros that meet, in both factors and the addend")

enum at_tc_stratum {
#define X(name, meaning) AT_TC_##name,
    AT_TC_STRATUM_LIST(X)
#undef X
        AT_TC_STRATA
};
const char *at_tc_stratum_name(enum at_tc_stratum stratum);

/* What a pattern is made for: operand formats, accumulator, fraction bits kept at alignment, its floor, rounding. */
struct at_tc_target {
    enum at_format a, b, out;
    int kept, zero_exponent;
    enum at_tc_rounding rounding;
};
struct at_tc_target at_tc_target_of(const struct at_tc_instruction *instruction);

/* Codes of n products and the value of the addend (of format `out`): pattern `index` of a stratum under a seed, the
 * same on any machine and in any order. n is at most AT_TC_BLOCK_MAX. tf32 codes have 13 zero bits at their end. */
void at_tc_pattern(const struct at_tc_target *target, enum at_tc_stratum stratum, uint64_t seed, int64_t index, int n,
                   uint32_t *a, uint32_t *b, double *c);
/* Patterns [begin, end) for an instruction, into a and b of shape [.., k] and c of shape [..], where pattern 0 is the
 * first. */
void at_tc_pattern_rows(const struct at_tc_instruction *instruction, enum at_tc_stratum stratum, uint64_t seed,
                        int64_t begin, int64_t end, uint32_t *a, uint32_t *b, float *c);

#endif
