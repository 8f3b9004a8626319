/* Rotary position embedding with the write into the cache: tensor indices of the operator, its ways of being wrong, and its
 * evaluations.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ROPE_KV_WRITE_H
#define AT_ROPE_KV_WRITE_H

#include "cache/cache.h"
#include "rotation/rotation.h"

enum {
    AT_ROPE_KV_WRITE_Q,
    AT_ROPE_KV_WRITE_K,
    AT_ROPE_KV_WRITE_V,
    AT_ROPE_KV_WRITE_POSITIONS,    /* i32 [tokens]: row of the table for each token */
    AT_ROPE_KV_WRITE_COS_SIN,      /* [max_position rot]: of each position rot/2 cosines, then rot/2 sines */
    AT_ROPE_KV_WRITE_SLOT_MAPPING, /* i32 [tokens]: the cache's row of each token; -1: it is not written */
    AT_ROPE_KV_WRITE_Q_OUT,
    AT_ROPE_KV_WRITE_K_CACHE,
    AT_ROPE_KV_WRITE_V_CACHE,
};

/* Decoys: those of rotations, those of writes, and what only both together can have wrong. */
enum {
    AT_ROPE_KV_WRITE_OF_CACHE = (int)AT_ROPE_FAULTS,
    AT_ROPE_KV_WRITE_V_ROTATED = AT_ROPE_KV_WRITE_OF_CACHE + (int)AT_CACHE_FAULTS,
    AT_ROPE_KV_WRITE_SLOT_BEFORE,
    AT_ROPE_KV_WRITE_ONLY_WRITTEN,
    AT_ROPE_KV_WRITE_FAULTS
};

/* The slot of the cache that a row of the operator is about, -1: none. Row i is token i, with its slot; row tokens + i is
 * slot i where no token writes it. */
int64_t at_rope_kv_write_slot(const struct at_problem *problem, int64_t row);

at_status at_rope_kv_write_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                                    int64_t row1, struct at_eval *eval);
at_status at_rope_kv_write_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                                 int64_t row1, struct at_eval *eval);
at_status at_rope_kv_write_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int which,
                                 int64_t row0, int64_t row1, struct at_eval *eval);

extern const struct at_op at_op_rope_kv_write;

#endif
