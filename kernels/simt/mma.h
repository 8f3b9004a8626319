/* What mma and wgmma share: elements of fragments, the rule of an instruction.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_MMA_H
#define AT_SIMT_MMA_H

#include "kernels/simt/simt.h"
#include "tensor_core/instruction.h"

/* The instruction of an at_simt_mma_kind and its rule. */
const struct at_tc_instruction *at_mma_instruction(int kind, const struct at_tc_rule **rule);
/* A code as at_decode() has it; what operands mostly are goes the short way, where processors widen alike in every mode
 * of theirs. */
static inline double at_mma_decode(enum at_format format, uint32_t code) {
    if (format == AT_F16)
        return (double)at_f32_from_f16((uint16_t)code);
    const float single = at_f32_of_bits(format == AT_BF16 ? code << 16 : code);
    if ((format == AT_BF16 || format == AT_F32) && (single >= 0x1p-126f || single <= -0x1p-126f))
        return (double)single;
    return at_decode(format, code);
}
/* Element j of a 32-bit register of operands. The tensor core reads tf32 from the upper 19 bits. */
static inline double at_mma_element(enum at_format format, uint32_t word, int j) {
    if (format == AT_TF32)
        return at_mma_decode(AT_F32, word & 0xffffe000u);
    const int bits = format == AT_F16 || format == AT_BF16 ? 16 : 8 * (int)at_format_info(format)->bytes;
    return at_mma_decode(format, word >> (bits * j) & ((1u << bits) - 1));
}
/* Element i of a lane's four of 16 x 8 sums, in f32 or f16. */
void at_mma_put(enum at_format sum, uint32_t *d, int i, double x);

#endif
