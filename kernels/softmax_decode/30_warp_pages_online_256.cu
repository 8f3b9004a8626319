/* Softmax decode by warps that own keys, 256 ranges of them: for few requests with many keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 30_warp_pages_online has up to 16 warps for a row, which leaves a GPU idle where rows are few; here they are up to 128,
 * eight in each of the sixteen blocks of a cluster.
 *
 * Numerically: as 30_warp_pages_online, with 256 ranges.
 *
 * Launch: grid (blocks of a cluster, kv heads, requests); a row has 8 to 128 warps, as many as are at work at a time,
 * over 1 to 16 blocks. Shared memory 1 KiB a head and channel, divided between the blocks of a cluster, and 2056 bytes a head. One
 * barrier of the block, or two of the cluster.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; contiguous keys or pages of a multiple of 8; clusters want sm_90; a
 * scale from 2^-64 to 2^64; no softcap, no biases.
 *
 * Source: ours. */
#include "kernels/softmax_decode/softmax_pages.h"

namespace {

constexpr int LOG_RANGES = 8;

const char *supports(const struct at_problem *problem) { return at_softmax_pages_declines(problem); }

int launch(const struct at_launch *launch) { return at_softmax_pages_launch(launch, LOG_RANGES); }

} // namespace

AT_KERNEL(softmax_decode, 30_warp_pages_online_256) = {
    .summary = "30_warp_pages_online with 256 ranges: up to 128 warps for the keys of a row",
    .source = "ours",
    /* not tested: l_lanes: a range of the longest case has two steps, whose lanes' sums come out alike for as many lanes or half */
    /* not tested: ex2_poly3: its last keys of each 32 are those of a range, which has 16 in the longest case */
    .numerics = AT_SOFTMAX_PAGES_NUMERICS(LOG_RANGES),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
