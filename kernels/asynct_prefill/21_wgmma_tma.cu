/* AsyncT prefill on wgmma and TMA: a producer warp and two consumer warpgroups that take turns.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 20_wgmma_p_in_registers, one thread loads K and V by TMA, tiles of 64 keys into two stages; P V of a tile is
 * in flight while the scores of the next are gated, and one warpgroup multiplies while the other gates. The steps of
 * the walk are in kernels/attention/attention_tma.h; the gate, in registers like P, is here.
 *
 * Numerically: as mma.sync (04_mma): 16 products a step, sums in f32, P rounded to bf16, a key with p = 0 counts.
 *
 * Launch: grid (query heads, requests, tiles of 128 queries), 3 warpgroups: one thread of the first loads, the others
 * have 64 queries each. Shared memory 768 d + 72 bytes.
 *
 * Limits: sm_90a, elsewhere a launch traps; bf16; d 64 or 128; at most 3 taps.
 *
 * Source: ours, the shape of FlashAttention 3. */
#include "kernels/asynct_prefill/asynct_fragments.h"
#include "kernels/asynct_prefill/asynct_mma.h"
#include "kernels/attention/tma_launch.h"

namespace {

using T = at_bf16;
using sum = at_sum_f32;

/* The gate on fragments of scores. P is packed when the products with the tile before are over: until then those occupy
 * the registers of the operand. The last two scores of each row stay in registers for the next tile. */
template <int D> struct gates {
    static constexpr int STEPS = AT_TMA_KEYS / 16;
    const at_fragment_gate gate;
    at_score_tail tail;
    float p[STEPS][8]; /* what each register of an operand will hold */

    __device__ gates(const at_asynct_view<T> &view, const at_mma_queries<T> &of) : gate(view, of.head) {}

    /* P of the tile from `begin` on. */
    template <bool MASKED>
    __device__ void take(const at_mma_queries<T> &queries, int begin, const sum (&sums)[AT_TMA_KEYS / 8]) {
        AT_UNROLL
        for (int i = 0; i < STEPS; i++) {
            const sum &low_keys = sums[2 * i], &high_keys = sums[2 * i + 1];
            const float scores[2][4] = { { low_keys[0], low_keys[1], low_keys[2], low_keys[3] },
                                         { high_keys[0], high_keys[1], high_keys[2], high_keys[3] } };
            at_fragment_gates_of(queries, gate, scores, begin + 16 * i, tail, [&](int r, float low, float high) {
                p[i][2 * r] = low;
                p[i][2 * r + 1] = high;
            });
        }
    }
    __device__ void put(sum (&)[D / 8], uint32_t (&operand)[STEPS][4]) const {
        AT_UNROLL
        for (int i = 0; i < STEPS; i++)
            for (int r = 0; r < 4; r++)
                operand[i][r] = at_pack<T>(p[i][2 * r], p[i][2 * r + 1]);
    }
};

template <int D>
__global__ void __launch_bounds__(AT_TMA_THREADS, 1)
    attend(at_asynct_view<T> a, const __grid_constant__ at_tensor_map q_map,
           const __grid_constant__ at_tensor_map k_map, const __grid_constant__ at_tensor_map v_map, int rows,
           int slots) {
    AT_SHARED_TILES(T, memory);
    const at_tma_room<T, D> room{ memory };
    const at_tma_block<T> block(a);
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
    at_tma_consumer<T, D, sum, gates<D>> consumer(a, block, room);
    consumer.begin();
    consumer.walk_whole(block.tiles());  /* tiles that all queries see whole, overlapped */
    consumer.walk_masked(block.tiles()); /* tiles at the causal edge, one at a time */
    at_asynct_store(a, consumer.queries, consumer.o);
}

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_BF16)
        return "activations are bf16";
    return problem->sizes.taps > 3 ? "a filter of more than 3 taps" : at_tma_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_tma_launch<at_asynct_view<T>>(launch, []<int D>() { return attend<D>; });
}

} // namespace

AT_KERNEL(asynct_prefill, 21_wgmma_tma) = {
    .summary = "wgmma and TMA, a producer and two warpgroups in turns, 64 keys a tile; bf16, sums in f32",
    .source = "ours",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
