/* Softmax prefill by persistent blocks with warp roles under stream-K: each producer warp loads an equal span of all tiles
 * of keys, cut where 512 keys of a tile of queries end; a second launch joins pieces; TMA and wgmma.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the bits of 04_persistent_stream_k. Unlike 03_fa3 and the other schedulers, the keys of a row are cut
 * into ranges of 512, each with a maximum and sums of its own; ranges are joined in ascending order with weights e^(own
 * maximum - the row's), and divided once. Bits depend neither on the batch nor on the number of blocks. Within a range
 * as 03_fa3: q.k and P V are sums of the tensor core, 16 products an instruction, in f32; 64 keys a step of the online
 * softmax; exponentials are our own, within one ulp and with the same bits everywhere; P is rounded to bf16, the sum of
 * weights is in f32 of unrounded ones.
 * Launch: a warp that sums up the lengths of tiles; then blocks, as many as ranges of tiles of 128 queries but at most
 * one a multiprocessor, 3 warpgroups: one thread of the first is the producer, which walks the block's span and loads q
 * and tiles of 64 keys by TMA; the others, the consumers, have 64 queries each and take turns at the tensor cores;
 * shared memory 768 d + 96 bytes for q, two stages of K and V, and what the producer took. Where a request may have
 * more than 512 keys, grid (query heads, requests, tiles of 16 queries), 128 threads, which join rows. Scratch: 4 bytes
 * a tile of 128 queries; 4 (d + 2) for each query, head and range where there may be two.
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 64 or 128.
 * Source: 003 for the scheduler and for persistent blocks with producers and consumers; cuts at fixed keys are ours. */
#include "kernels/softmax_prefill/softmax_persistent_tma.h"
#include "kernels/softmax_prefill/softmax_stream_k.h"

namespace {

template <int D>
__global__ void __launch_bounds__(AT_TMA_THREADS, 1)
    attend(at_softmax_view<at_bf16> a, const __grid_constant__ at_tensor_map q_map,
           const __grid_constant__ at_tensor_map k_map, const __grid_constant__ at_tensor_map v_map, int rows,
           int slots, at_mma_work work, at_stream_parts parts) {
    AT_SHARED_TILES(at_bf16, memory);
    const at_tma_work_room<at_bf16, D> room{ memory };
    at_tma_begin_work(room);
    if (threadIdx.x < AT_TMA_GROUP_THREADS) {
        at_registers_give<24>();
        if (threadIdx.x == 0) {
            at_schedule_stream pieces(work);
            at_tma_produce_pieces<AT_STREAM_RANGE>(
                a, q_map, k_map, v_map, work, rows, slots, room,
                [&](at_tma_piece &piece) { return pieces.next(piece.item, piece.range); });
        }
        return;
    }
    at_registers_take<240>();
    at_tma_consume_pieces<AT_STREAM_RANGE>(a, work, room,
                                           [&](const at_tma_block<at_bf16> &block, const at_tma_span &span, int range) {
                                               at_tma_softmax_walk<at_bf16, D> own(a, block, room, span);
                                               own.walk(room);
                                               at_stream_store(a, own.queries, own.weights.rows, own.o, parts, range);
                                           });
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_tma_declines(problem);
}

int launch(const struct at_launch *launch) {
    const auto blocks = [=](const at_mma_work &work, const at_stream_parts &parts, uint32_t n) {
        return at_tma_launch_grid<at_softmax_view<at_bf16>, at_tma_work_room>(
            launch, dim3{ n, 1, 1 }, []<int D>() { return attend<D>; }, work, parts);
    };
    return at_stream_launch<at_bf16>(launch, AT_TMA_QUERIES, at_tma_blocks(), blocks);
}

} // namespace

AT_KERNEL(softmax_prefill, 05_persistent_tma_stream_k) = {
    .summary = "03_fa3 by persistent blocks, each with an equal span of tiles of keys; ranges of 512 keys are joined",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_TMA_KEYS, AT_STREAM_RANGE, AT_GUARD_NONE),
    .supports = supports,
    .workspace = at_stream_parts::bytes<AT_TMA_QUERIES>,
    .launch = launch,
};
