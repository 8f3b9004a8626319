/* AsyncT decode by warps that own keys, 128 ranges of them: for few requests of some thousand keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Between 30_warp_pages_64 and 30_warp_pages_256: up to 64 warps for a row. Some shapes with few rows want it, and some do not: the
 * family's README has what was measured.
 *
 * Numerically: as 30_warp_pages, with 128 ranges.
 *
 * Launch: grid (blocks of a cluster, kv heads, requests); a row has 4 to 64 warps, as many as are at work at a time,
 * over 1 to 16 blocks. Shared memory 512 bytes a head and channel, divided between the blocks of a cluster. One barrier of the
 * block, or two of the cluster.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; contiguous keys or pages of a multiple of 8; at most 9 taps; clusters want
 * sm_90.
 *
 * Source: ours. */
#include "kernels/asynct_decode/asynct_pages.h"

namespace {

constexpr int LOG_RANGES = 7;

const char *supports(const struct at_problem *problem) { return at_asynct_pages_declines(problem); }

int launch(const struct at_launch *launch) { return at_asynct_pages_launch(launch, LOG_RANGES); }

} // namespace

AT_KERNEL(asynct_decode, 30_warp_pages_128) = {
    .summary = "30_warp_pages with 128 ranges: up to 64 warps for the keys of a row",
    .source = "ours",
    .numerics = AT_ASYNCT_PAGES_NUMERICS(LOG_RANGES),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
