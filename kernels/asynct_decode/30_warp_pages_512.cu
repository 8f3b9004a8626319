/* AsyncT decode by warps that own keys, 512 ranges of them: for few requests with many keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 30_warp_pages_256 has up to 128 warps for a row; here they are up to 256, sixteen in each of the sixteen blocks of a cluster, or
 * eight with twice as many ranges each where a warp has the registers of four heads. Made for one request of 32768 keys.
 *
 * Numerically: as 30_warp_pages, with 512 ranges.
 *
 * Launch: grid (blocks of a cluster, kv heads, requests); a row has 8 to 256 warps, as many as are at work at a time,
 * over 1 to 16 blocks. Shared memory 2 KiB a head and channel, divided between the blocks of a cluster. One barrier of the
 * block, or two of the cluster.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; contiguous keys or pages of a multiple of 8; at most 9 taps; clusters want
 * sm_90.
 *
 * Source: ours. */
#include "kernels/asynct_decode/asynct_pages.h"

namespace {

constexpr int LOG_RANGES = 9;

const char *supports(const struct at_problem *problem) { return at_asynct_pages_declines(problem); }

int launch(const struct at_launch *launch) { return at_asynct_pages_launch(launch, LOG_RANGES); }

} // namespace

AT_KERNEL(asynct_decode, 30_warp_pages_512) = {
    .summary = "30_warp_pages with 512 ranges: up to 256 warps for the keys of a row",
    .source = "ours",
    .numerics = AT_ASYNCT_PAGES_NUMERICS(LOG_RANGES),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
