/* Softmax decode by warps that own keys, 256 ranges of them: for few requests with many keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 30_warp_pages_online has up to 16 warps for a row, which leaves a GPU idle where rows are few; here they are up to 128,
 * sixteen in each of the eight blocks of a cluster.
 *
 * Numerically: as 30_warp_pages_online, with 256 ranges.
 *
 * Launch: grid (blocks of a cluster, kv heads, requests); a row has 8 to 128 warps, as many as are at work at a time,
 * over 1 to 8 blocks. Shared memory 1 KiB a head and channel, divided between the blocks of a cluster, and 2 KiB a head. One
 * barrier of the block, or two of the cluster.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; contiguous keys or pages of a multiple of 8; clusters want sm_90; a
 * scale from 2^-64 to 2^64; no softcap, no biases.
 *
 * Source: ours. */
#include "kernels/softmax_decode/softmax_pages.h"

namespace {

constexpr int LOG_RANGES = 8;

template <class T, int D, int HEADS>
__global__ void __launch_bounds__(AT_PAGES_THREADS<D, HEADS>, 1) attend(at_softmax_view<T> a, at_pages_shape shape) {
    AT_SHARED_DYNAMIC(float, shared);
    const at_pages_block<T, HEADS> block(a, shape);
    if (block.absent())
        return;
    if (shape.log_cluster > 0)
        at_cluster_arrive();
    const at_pages_lane lane;
    const at_pages_start start(a, shape, lane);
    const at_pages_partials<D, HEADS> partials(shared, shape);
    const at_softmax_totals<HEADS> total{
        reinterpret_cast<typename at_softmax_totals<HEADS>::of_range(*)[HEADS]>(partials.past()), shape.cluster
    };
    at_softmax_pages<T, D, HEADS> op(a, block, partials, total, lane);
    op.prepare();
    at_pages_walk<T, D, HEADS>(a, shape, block, start, lane, op);
    at_pages_meet(shape);
    at_softmax_pages_join<T, D, HEADS>(a, block, partials, total, op.exp);
}

const char *supports(const struct at_problem *problem) { return at_softmax_pages_declines(problem); }

int launch(const struct at_launch *launch) {
    return at_pages_with_sizes(&launch->problem->sizes, [launch]<int D, int HEADS>() {
        return at_pages_launch<D, HEADS>(launch, attend<at_f16, D, HEADS>, attend<at_bf16, D, HEADS>, LOG_RANGES,
                                         at_softmax_totals<HEADS>::BYTES);
    });
}

} // namespace

AT_KERNEL(softmax_decode, 30_warp_pages_online_256) = {
    .summary = "30_warp_pages_online with 256 ranges: up to 128 warps for the keys of a row",
    .source = "ours",
    /* not tested: l_lanes: a range of the longest case has two steps, whose lanes' sums come out alike for as many lanes or half */
    /* not tested: ex2_poly3: its last keys of each 32 are those of a range, which has 16 in the longest case */
    .numerics = {
        .qk_unit = AT_UNIT_TC_F32,
        .qk_lanes = 1,
        .qk_run = 8,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_F32,
        .exp = AT_EXP_EX2_APPROX_FTZ,
        .exp_arg = AT_EXP_ARG_FMA,
        .l_lanes = AT_PAGES_STEP,
        .l_run = 1,
        .l_tree = AT_TREE_BUTTERFLY,
        .divide = AT_DIVIDE_RCP_APPROX_FTZ,
        .lse = AT_LSE_LG2_APPROX_FTZ,
        .block = AT_PAGES_STEP,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .split = AT_PAGES_STEP,
        .splits = 1 << LOG_RANGES,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
