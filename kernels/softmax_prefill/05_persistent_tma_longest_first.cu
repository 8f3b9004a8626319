/* Softmax prefill by persistent blocks with warp roles: a free block's producer warp takes the longest tile of queries
 * that is left; TMA and wgmma.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 03_fa3: what is computed for a tile depends neither on the block that takes it nor on when. The same
 * bits: q.k and P V are sums of the tensor core, 16 products an instruction, in f32; 64 keys a step of the online
 * softmax; exponentials are our own, within one ulp and with the same bits everywhere; P is rounded to bf16, the sum of
 * weights is in f32 of unrounded ones; one division at the end.
 * Launch: a kernel of one thread that clears the counter, one that sorts the tiles by their keys; then blocks, as many
 * as tiles of 128 queries but at most one a multiprocessor, 3 warpgroups: one thread of the first is the producer,
 * which takes the longest tile of queries that is left by an atomic addition and loads q and tiles of 64 keys by TMA;
 * the others, the consumers, have 64 queries each and take turns at the tensor cores; shared memory 768 d + 96 bytes
 * for q, two stages of K and V, and what the producer took. Scratch: 4 bytes, and 4 a tile of 16 queries.
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 64 or 128.
 * Source: 003 for persistent blocks with producers and consumers, ours for the scheduler. */
#include "kernels/softmax_prefill/softmax_persistent_tma.h"

namespace {

using schedule = at_schedule_longest_first;

template <int D>
__global__ void __launch_bounds__(AT_TMA_THREADS, 1)
    attend(at_softmax_view<at_bf16> a, const __grid_constant__ at_tensor_map q_map,
           const __grid_constant__ at_tensor_map k_map, const __grid_constant__ at_tensor_map v_map, int rows,
           int slots, at_mma_work work) {
    AT_SHARED_TILES(at_bf16, memory);
    const at_tma_work_room<at_bf16, D> room{ memory };
    at_tma_begin_work(room);
    if (threadIdx.x < AT_TMA_GROUP_THREADS) {
        at_registers_give<24>();
        if (threadIdx.x == 0) {
            schedule tiles(work, room.taken());
            at_tma_produce_pieces<0>(a, q_map, k_map, v_map, work, rows, slots, room,
                                     [&](at_tma_piece &piece) { return tiles.alone(piece.item); });
        }
        return;
    }
    at_registers_take<240>();
    at_tma_consume_pieces<0>(a, work, room, [&](const at_tma_block<at_bf16> &block, const at_tma_span &span, int) {
        at_tma_softmax_walk<at_bf16, D> own(a, block, room, span);
        own.walk(room);
        own.weights.store(own.queries, own.o);
    });
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_tma_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_fa3_persistent_launch<at_bf16, schedule>(launch, []<int D>() { return attend<D>; });
}

} // namespace

AT_KERNEL(softmax_prefill, 05_persistent_tma_longest_first) = {
    .summary = "03_fa3 by persistent blocks, which take the longest tile that is left from one counter",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_TMA_KEYS, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = schedule::bytes,
    .launch = launch,
};
