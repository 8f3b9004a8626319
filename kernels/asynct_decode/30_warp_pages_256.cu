/* AsyncT decode by warps that own keys, 256 ranges of them: for few requests with many keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 30_warp_pages has up to 16 warps for a row, which leaves a GPU idle where rows are few; here they are up to 128, sixteen in
 * each of the eight blocks of a cluster.
 *
 * Numerically: as 30_warp_pages, with 256 ranges.
 *
 * Launch: grid (blocks of a cluster, kv heads, requests); a row has 8 to 128 warps, as many as are at work at a time,
 * over 1 to 8 blocks. Shared memory 1 KiB a head and channel, divided between the blocks of a cluster. One barrier of the
 * block, or two of the cluster.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; contiguous keys or pages of a multiple of 8; at most 9 taps; clusters want
 * sm_90.
 *
 * Source: ours. */
#include "kernels/asynct_decode/asynct_pages.h"

namespace {

constexpr int LOG_RANGES = 8;

template <class T, int D, int HEADS>
__global__ void __launch_bounds__(AT_PAGES_THREADS<D, HEADS>, 1) attend(at_asynct_view<T> a, at_pages_shape shape) {
    AT_SHARED_DYNAMIC(float, shared);
    const at_pages_block<T, HEADS> block(a, shape);
    if (block.absent())
        return;
    if (shape.log_cluster > 0)
        at_cluster_arrive();
    const at_pages_lane lane;
    const at_pages_start start(a, shape, lane);
    const at_pages_partials<D, HEADS> partials(shared, shape);
    at_asynct_pages<T, D, HEADS> op(a, block, partials, lane);
    op.prepare();
    at_pages_walk<T, D, HEADS>(a, shape, block, start, lane, op);
    at_pages_meet(shape);
    const auto as_it_is = [](int, int, float sum) { return sum; };
    partials.join(block.ranges(), block.heads, as_it_is, [&](int head, int channel, float sum) {
        a.o[((int64_t)block.token * a.h + block.head + head) * a.d + channel] = at_round_to<T>(sum);
    });
}

const char *supports(const struct at_problem *problem) { return at_asynct_pages_declines(problem); }

int launch(const struct at_launch *launch) {
    return at_pages_with_sizes(&launch->problem->sizes, [launch]<int D, int HEADS>() {
        return at_pages_launch<D, HEADS>(launch, attend<at_f16, D, HEADS>, attend<at_bf16, D, HEADS>, LOG_RANGES);
    });
}

} // namespace

AT_KERNEL(asynct_decode, 30_warp_pages_256) = {
    .summary = "30_warp_pages with 256 ranges: up to 128 warps for the keys of a row",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_TC_F32,
        .qk_lanes = 1,
        .qk_run = 8,
        .scale_on = AT_SCALE_ON_SCORE,
        .fir_order = AT_FIR_ORDER_TAPS,
        .fir_fma = 1,
        .p = AT_F32,
        .gamma_on = AT_GAMMA_ON_P,
        .clamp = AT_CLAMP_FMINMAX,
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
