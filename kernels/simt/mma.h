/* What mma and wgmma share: elements of fragments, the rule of an instruction.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_MMA_H
#define AT_SIMT_MMA_H

#include "kernels/simt/simt.h"
#include "tensor_core/instruction.h"

/* The instruction of an at_simt_mma_kind and its rule. */
const struct at_tc_instruction *at_mma_instruction(int kind, const struct at_tc_rule **rule);
/* Element j of a 32-bit register of operands. The tensor core reads tf32 from the upper 19 bits. */
double at_mma_element(enum at_format format, uint32_t word, int j);
/* Element i of a lane's four of 16 x 8 sums, in f32 or f16. */
void at_mma_put(enum at_format sum, uint32_t *d, int i, double x);

#endif
