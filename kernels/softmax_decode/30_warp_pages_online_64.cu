/* Softmax decode by warps that own keys, 64 ranges of them: for few requests of some thousand keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 30_warp_pages_online has up to 16 warps for a row, which leaves a GPU idle where rows are few; here they are up to 32. The
 * 128 of 30_warp_pages_online_256 want more keys: with 2048, joining 256 parts takes longer than making them.
 *
 * Numerically: as 30_warp_pages_online, with 64 ranges.
 *
 * Launch: grid (blocks of a cluster, kv heads, requests); a row has 4 to 32 warps, as many as are at work at a time,
 * over 1 to 16 blocks. Shared memory 256 bytes a head and channel, divided between the blocks of a cluster, and 520 bytes a head. One
 * barrier of the block, or two of the cluster.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; contiguous keys or pages of a multiple of 8; clusters want sm_90; a
 * scale from 2^-64 to 2^64; no softcap, no biases.
 *
 * Source: ours. */
#include "kernels/softmax_decode/softmax_pages.h"

namespace {

constexpr int LOG_RANGES = 6;

const char *supports(const struct at_problem *problem) { return at_softmax_pages_declines(problem); }

int launch(const struct at_launch *launch) { return at_softmax_pages_launch(launch, LOG_RANGES); }

} // namespace

AT_KERNEL(softmax_decode, 30_warp_pages_online_64) = {
    .summary = "30_warp_pages_online with 64 ranges: up to 32 warps for the keys of a row",
    .source = "ours",
    .numerics = AT_SOFTMAX_PAGES_NUMERICS(LOG_RANGES),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
