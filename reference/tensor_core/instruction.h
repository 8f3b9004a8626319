/* Tensor-core instructions: which arithmetic each has, and in what order it takes its products.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TC_INSTRUCTION_H
#define AT_TC_INSTRUCTION_H

#include "tensor_core/fdpa.h"

enum at_tc_kind { AT_TC_MMA, AT_TC_WGMMA, AT_TC_TCGEN05, AT_TC_MFMA };
/* How the k products of one instruction are taken.
 *   chunks      ascending chunks of the rule's block, the accumulator running through
 *   fp8_by_f16  mma.sync of e4m3 and e5m2 on Hopper and on sm_100, which has no unit for it: two steps of f16 products
 *               from an accumulator of 0, first those with k mod 4 in {0, 1}, then {2, 3}; c is added last, to nearest
 *   cdna3       ascending chunks with the arithmetic of tensor_core/cdna3.h, which is a model only, not measured
 */
enum at_tc_order { AT_TC_CHUNKS, AT_TC_FP8_BY_F16, AT_TC_CDNA3 };

struct at_tc_instruction {
    const char *name; /* "hopper_mma_k16_f16_f32" */
    int sm;           /* the compute capability it is described for, 90; of mfma the number of gfx, 942 */
    enum at_tc_kind kind;
    int k;               /* products */
    enum at_format a, b; /* operands */
    const char *rule_name;
    enum at_tc_order order;
};

const struct at_tc_instruction *at_tc_instruction_find(const char *name);
int at_tc_instruction_count(void);
const struct at_tc_instruction *at_tc_instruction_at(int i);
/* Its row of the table of rules. */
const struct at_tc_rule *at_tc_instruction_rule(const struct at_tc_instruction *instruction);

/* c + sum a[i] * b[i], i < k, by one instruction; formats as for at_fdpa. `rule` NULL: the instruction's own; another
 * one shows what a neighbour of it would give. */
double at_tc_multiply_add(const struct at_tc_instruction *instruction, const struct at_tc_rule *rule, const double *a,
                          const double *b, double c);

/* The same for factors that at_tc_row_know has seen. */
double at_tc_multiply_add_rows(const struct at_tc_instruction *instruction, const struct at_tc_rule *rule,
                               const struct at_tc_row *a, const struct at_tc_row *b, double c);

/* Arithmetic one step away from a rule's: what a wrong parameter would give. */
enum at_tc_neighbour {
    AT_TC_KEPT_LESS,  /* F - 1 */
    AT_TC_KEPT_MORE,  /* F + 1 */
    AT_TC_BLOCK_HALF, /* L / 2 */
    AT_TC_BLOCK_TWICE,
    AT_TC_OTHER_ROUNDING,
    AT_TC_FLOOR_LESS,     /* e_zero - 1 */
    AT_TC_FLOOR_MORE,     /* e_zero + 1 */
    AT_TC_ADDEND_LEADING, /* a subnormal c has the exponent of its leading bit */
    AT_TC_NEIGHBOURS
};
const char *at_tc_neighbour_name(enum at_tc_neighbour which);
/* The instruction's rule changed so. 0: this instruction gives the same with it (a block twice as long as its k). */
int at_tc_neighbour_of(const struct at_tc_instruction *instruction, enum at_tc_neighbour which,
                       struct at_tc_rule *changed);

#endif
