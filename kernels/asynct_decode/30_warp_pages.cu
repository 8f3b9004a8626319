/* AsyncT decode by warps that own keys: K goes from memory straight into the operands of mma.sync, V is read row by row.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A half of a warp owns a run of keys for all query heads of a kv head (kernels/attention/warp_pages.h). The 16 rows of K
 * of the next step are under way while a warp filters, finds by ballots which rows of V some head needs, and loads those
 * alone, 16 bytes a lane. The filter takes the keys before by shuffles, those of the step before from registers; at the
 * beginning of a run they are computed once more. No list, no shared memory and no barrier before the sums are joined: warps
 * wait for memory alone, and enough of them do so at a time. Where rows are few for a GPU, the warps of one are
 * spread over a cluster.
 *
 * Numerically: q.k on tensor cores, steps of 16 channels of which each of four threads has four of its eight; the gate as
 * in 14_sparse_p_ordered; P V of each of 32 ranges of keys by fmaf in ascending order, rows with p = 0 left out; the ranges'
 * sums are added in their order. The bits depend on the length of a request alone, not on how warps are dealt out.
 *
 * Launch: grid (blocks of a cluster, kv heads, requests); a row has 4 to 16 warps, as
 * many as are at work at a time, over 1 to 8 blocks; each half of 4 has four ranges. Shared memory 128 bytes a head and channel, divided between
 * the blocks of a cluster. One barrier of the block, or two of the cluster.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; contiguous keys or pages of a multiple of 8; at most 9 taps, one step's
 * keys before a key; clusters want sm_90.
 *
 * Source: ours. */
#include "kernels/asynct_decode/asynct_pages.h"

namespace {

constexpr int LOG_RANGES = 5;

const char *supports(const struct at_problem *problem) { return at_asynct_pages_declines(problem); }

int launch(const struct at_launch *launch) { return at_asynct_pages_launch(launch, LOG_RANGES); }

} // namespace

AT_KERNEL(asynct_decode, 30_warp_pages) = {
    .summary = "a warp owns keys: K straight into mma.sync, needed rows of V alone, no barrier until the end",
    .source = "ours",
    .numerics = AT_ASYNCT_PAGES_NUMERICS(LOG_RANGES),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
