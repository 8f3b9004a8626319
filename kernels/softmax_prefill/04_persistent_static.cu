/* Softmax prefill: 02_fa2 by blocks that stay, each with a share of neighbouring tiles.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_fa2, whoever does the work.
 * Launch: as many blocks as there are tiles of 64 queries, at most 264, 4 warps of 16 queries each; shared memory 256
 * (d + 8) bytes. Two barriers of the block a tile of keys.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 003 for the shape, ours for the scheduler. */
#include "kernels/softmax_prefill/softmax_persistent.h"

namespace {

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

} // namespace

AT_KERNEL(softmax_prefill, 04_persistent_static) = {
    .summary = "02_fa2 with at most 264 blocks, each with a share of neighbouring tiles",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_SOFTMAX_KEYS, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = at_schedule_static::bytes,
    .launch = at_softmax_persistent_launch<at_bf16, 4, at_sum_f32, at_schedule_static>,
};
