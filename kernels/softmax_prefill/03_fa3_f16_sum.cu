/* Softmax prefill in the shape of FlashAttention 3: f16, sums in f16, half the registers of f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_fa2_f16_sum; unlike 03_fa3_f16, sums of q.k and P V are f16: each step of 16 products and each
 * rescaling is rounded to nearest, and an overflow stays infinite. 64 keys a step of the online softmax; exponentials
 * are our own, within one ulp and with the same bits everywhere; P is rounded to f16, the sum of weights is in f32 of
 * unrounded ones; one division at the end.
 * Launch: grid (query heads, requests, tiles of 128 queries), 3 warpgroups: one thread of the first is the producer,
 * which loads tiles of 64 keys by TMA; the others, the consumers, have 64 queries each and take turns at the tensor
 * cores; shared memory 768 d + 72 bytes for q and two stages of K and V.
 * Limits: sm_90a, elsewhere a launch traps; f16; d 64 or 128.
 * Source: 003, the shape of FlashAttention 3; 004 for sums in f16. */
#include "kernels/softmax_prefill/softmax_tma.h"

namespace {

using sum = at_sum_f16<AT_GUARD_NONE>;

template <int D>
__global__ void __launch_bounds__(AT_TMA_THREADS, 1)
    attend(at_softmax_view<at_f16> a, const __grid_constant__ at_tensor_map q_map,
           const __grid_constant__ at_tensor_map k_map, const __grid_constant__ at_tensor_map v_map, int rows,
           int slots) {
    AT_SHARED_TILES(at_f16, memory);
    const at_tma_room<at_f16, D> room{ memory };
    const at_tma_block<at_f16> block(a);
    if (block.empty())
        return;
    at_tma_begin(room, block.consumers());
    if (block.produces()) {
        at_registers_give<24>();
        if (threadIdx.x == 0)
            at_tma_produce(a, q_map, k_map, v_map, block.first, block.keys, rows, slots, room);
        return;
    }
    at_registers_take<240>();
    if (block.idle())
        return;
    at_tma_consumer<at_f16, D, sum, at_tma_softmax<at_f16, D, sum>> own(a, block, room);
    const int tiles = block.tiles(), whole = own.whole();
    own.begin();
    if (whole > 0)
        own.first_tile(tiles);
    for (int i = 1; i < whole; i++) { /* P V of a tile overlaps the scores of the next */
        const at_tma_turn now(i), before(i - 1);
        sum sums[AT_TMA_KEYS / 8] = {};
        own.begin_tile(now, sums);
        at_mbarrier_wait(room.v_full(before.stage), before.parity);
        own.issue_values(room.v(before.stage));
        own.pass(i, tiles);
        at_wgmma_wait<1>(at_wgmma_registers(sums));
        own.release(room.k_empty(now.stage));
        own.weights.template take<false>(own.queries, i * AT_TMA_KEYS, sums);
        at_wgmma_wait<0>(at_wgmma_registers(own.o));
        own.release(room.v_empty(before.stage));
        own.weights.put(own.o, own.p);
    }
    if (whole > 0)
        own.last_values(whole - 1);
    own.walk_masked(tiles);
    own.weights.store(own.queries, own.o);
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_F16 ? "activations are f16" : at_tma_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_tma_launch<at_softmax_view<at_f16>>(launch, []<int D>() { return attend<D>; });
}

} // namespace

AT_KERNEL(softmax_prefill, 03_fa3_f16_sum) = {
    .summary = "wgmma and TMA, a producer and two warpgroups in turns, 64 keys a tile; f16, sums in f16",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F16, AT_F16, AT_TMA_KEYS, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
