/* Softmax prefill in the shape of FlashAttention 3 by the special-function unit, with a true division; f16, sums in
 * f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 03_fa3_f16 in both products (tensor core, 16 products an instruction, in f32), in tiles and the
 * format of P. Weights are ex2.approx.ftz of fma(dot, b, -(max b)), b = scale log2(e): no score is scaled by itself,
 * as in the fast kernels of the field. The sum of weights is of unrounded ones, in the four lanes that share a row,
 * two keys of every eight each, joined by a butterfly; one division at the end; lse by lg2.approx.ftz. Every bit is
 * declared.
 * Launch: grid (query heads, requests, tiles of 128 queries), 3 warpgroups: one thread of the first is the producer,
 * which loads tiles of 64 keys by TMA; the others, the consumers, have 64 queries each and take turns at the tensor
 * cores; shared memory 768 d + 72 bytes for q and two stages of K and V.
 * Limits: sm_90a, elsewhere a launch traps; f16; d 64 or 128; scales from 2^-64 to 2^64.
 * Source: 003, the shape of FlashAttention 3. */
#include "kernels/softmax_prefill/softmax_tma.h"

namespace {

using exponential = at_softmax_ex2<AT_DIVIDE_DIVISION>;

using sum = at_sum_f32;

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
    at_tma_consumer<at_f16, D, sum, at_tma_softmax<at_f16, D, sum, exponential>> own(a, block, room);
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
    const char *reason = problem->dtype != AT_F16 ? "activations are f16" : at_tma_declines(problem);
    return reason ? reason : at_softmax_ex2_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_tma_launch<at_softmax_view<at_f16>>(launch, []<int D>() { return attend<D>; });
}

} // namespace

AT_KERNEL(softmax_prefill, 03_fa3_f16_ex2) = {
    .summary = "03_fa3_f16 with ex2.approx of folded arguments and lg2.approx; a true division; every bit declared",
    .source = "003",
    .numerics = AT_SOFTMAX_EX2_NUMERICS(AT_F16, AT_TMA_KEYS, 0, AT_DIVIDE_DIVISION, 0),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
