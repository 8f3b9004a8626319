/* Softmax decode by warps that own keys, each with its own online softmax; no barrier until the parts are joined.
 * SPDX-License-Identifier: Apache-2.0
 *
 * asynct_decode/30_warp_pages with softmax in the gate's place: K goes from memory straight into the operands of mma.sync,
 * a half of a warp owns a run of keys for all query heads of a kv head and keeps a maximum and a sum of weights for each.
 * Maxima go round by shuffles, for the weights are in the lanes that have the scores. All rows of V are read, on their way
 * before the scores are known; one whose weight is 0 is left out of the sum.
 *
 * Numerically: q.k on tensor cores, steps of 16 channels of which each of four threads has four of its eight; weights by
 * ex2.approx.ftz with the scale folded into the argument; an online step has 8 keys; P V of each of 32 ranges of keys
 * by fmaf in ascending order. The sum of weights has eight lanes, key t in lane t % 8, joined by a butterfly. Ranges
 * are joined in their order by their maxima; reciprocal and logarithm by the special-function unit. The bits depend on the
 * length of a request alone.
 *
 * Launch: grid (blocks of a cluster, kv heads, requests); a row has 4 to 16 warps, as
 * many as are at work at a time, over 1 to 8 blocks; each half of 4 has four ranges. Shared memory 128 bytes a head and channel, divided between
 * the blocks of a cluster, and 264 bytes a head. One barrier of the block, or two of the cluster.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; contiguous keys or pages of a multiple of 8; clusters want sm_90; a
 * scale from 2^-64 to 2^64; no softcap, no biases.
 *
 * Source: ours. */
#include "kernels/softmax_decode/softmax_pages.h"

namespace {

constexpr int LOG_RANGES = 5;

const char *supports(const struct at_problem *problem) { return at_softmax_pages_declines(problem); }

int launch(const struct at_launch *launch) { return at_softmax_pages_launch(launch, LOG_RANGES); }

} // namespace

AT_KERNEL(softmax_decode, 30_warp_pages_online) = {
    .summary = "a warp owns keys and has its own online softmax: K straight into mma.sync, no barrier until the join",
    .source = "ours",
    .numerics = AT_SOFTMAX_PAGES_NUMERICS(LOG_RANGES),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
