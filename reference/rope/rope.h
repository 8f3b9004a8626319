/* Rotary position embedding of queries and keys: tensor indices, sizes and parameters of the operator, and its evaluations.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ROPE_H
#define AT_ROPE_H

#include "attest/op.h"

enum {
    AT_ROPE_Q,
    AT_ROPE_K,
    AT_ROPE_POSITIONS, /* i32 [tokens]: row of the table for each token */
    AT_ROPE_COS_SIN,   /* [max_position rot]: of each position rot/2 cosines, then rot/2 sines */
    AT_ROPE_Q_OUT,
    AT_ROPE_K_OUT,
};

/* Which two of a head's first `rot` channels are pair i: i and i + rot/2; or 2 i and 2 i + 1. */
enum at_rope_style { AT_ROPE_HALF_SPLIT, AT_ROPE_INTERLEAVED };
/* The format of the table. */
enum at_rope_table { AT_ROPE_TABLE_F32, AT_ROPE_TABLE_INPUT };

struct at_rope_own {
    int64_t rot, max_position;
    float base;
    int32_t style, table; /* enum at_rope_style, enum at_rope_table */
};
AT_OWN_STRUCT(at_rope_own)

/* Which channels pair i of `rot` is. */
static inline int64_t at_rope_first(int32_t style, int64_t i) { return style == AT_ROPE_HALF_SPLIT ? i : 2 * i; }
static inline int64_t at_rope_second(int32_t style, int64_t rot, int64_t i) {
    return style == AT_ROPE_HALF_SPLIT ? i + rot / 2 : 2 * i + 1;
}

/* Ways of being wrong, in the order of the operator's decoys. */
enum at_rope_fault {
    AT_ROPE_RIGHT = -1,
    AT_ROPE_SIN_NEGATED,
    AT_ROPE_COS_SIN_SWAPPED,
    AT_ROPE_OTHER_STYLE,
    AT_ROPE_NEXT_POSITION,
    AT_ROPE_PREFIX_DROPPED,
    AT_ROPE_POSITION_BF16,
    AT_ROPE_OTHER_BASE,
    AT_ROPE_WHOLE_HEAD,
    AT_ROPE_REST_ZEROED,
    AT_ROPE_K_COPIED,
    AT_ROPE_HEADS_OF_K,
    AT_ROPE_FAULTS
};

/* Rows of the operator are tokens. numerics NULL: limits are the reference's own error. */
at_status at_rope_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                           int64_t row1, struct at_eval *eval);
at_status at_rope_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                        int64_t row1, struct at_eval *eval);
at_status at_rope_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int which, int64_t row0,
                        int64_t row1, struct at_eval *eval);

/* Factors on unit roundoff and underflow unit of each rounding; 1 except in the tests that show that each is needed. */
enum at_rope_stage { AT_ROPE_COS_PRODUCT, AT_ROPE_SIN_PRODUCT, AT_ROPE_SUM, AT_ROPE_STORE, AT_ROPE_STAGES };
extern double at_rope_test_u[AT_ROPE_STAGES], at_rope_test_eta[AT_ROPE_STAGES];

extern const struct at_op at_op_rope;

#endif
