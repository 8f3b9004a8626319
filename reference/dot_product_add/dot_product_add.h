/* One tensor-core instruction's dot product and addition, many times over: what a study of the hardware launches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DOT_PRODUCT_ADD_H
#define AT_DOT_PRODUCT_ADD_H

#include "attest/op.h"
#include "tensor_core/instruction.h"

enum { AT_DPA_A, AT_DPA_B, AT_DPA_C, AT_DPA_D };

struct at_dpa_own {
    int32_t instruction; /* its place in the table of tensor-core instructions */
};
AT_OWN_STRUCT(at_dpa_own)

/* The instruction of a problem, NULL when there is none. */
#ifdef __cplusplus
extern "C"
#endif
    const struct at_tc_instruction *
    at_dpa_instruction(const struct at_problem *problem);

extern const struct at_op at_op_dot_product_add;

#endif
