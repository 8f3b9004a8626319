/* Rotary position embedding of queries and keys: tensor indices of the operator, and its evaluations.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ROPE_H
#define AT_ROPE_H

#include "rotation/rotation.h"

enum {
    AT_ROPE_Q,
    AT_ROPE_K,
    AT_ROPE_POSITIONS, /* i32 [tokens]: row of the table for each token */
    AT_ROPE_COS_SIN,   /* [max_position rot]: of each position rot/2 cosines, then rot/2 sines */
    AT_ROPE_Q_OUT,
    AT_ROPE_K_OUT,
};

/* Rows of the operator are tokens. numerics NULL: limits are the reference's own error. */
at_status at_rope_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                           int64_t row1, struct at_eval *eval);
at_status at_rope_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                        int64_t row1, struct at_eval *eval);
at_status at_rope_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int which, int64_t row0,
                        int64_t row1, struct at_eval *eval);

extern const struct at_op at_op_rope;

#endif
