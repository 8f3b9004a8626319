/* Softmax prefill by persistent blocks: each block has every n-th tile of queries, n blocks in all.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_fa2: what is computed for a tile depends neither on the block that takes it nor on when. The same
 * bits: q.k and P V are sums of the tensor core, 16 products an instruction, in f32; 64 keys a step of the online
 * softmax; exponentials are our own, within one ulp and with the same bits everywhere; P is rounded to bf16, the sum of
 * weights is of unrounded ones; one division at the end.
 * Launch: blocks, as many as tiles of 64 queries but at most two a multiprocessor, 4 warps of 16 queries each; shared
 * memory 256 (d + 8) bytes for 64 keys of K and V; two barriers of the block a tile of keys.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 003 for the shape, ours for the scheduler. */
#include "kernels/softmax_prefill/softmax_persistent.h"

namespace {

using schedule = at_schedule_round_robin;

template <int D>
__global__ void __launch_bounds__(32 * AT_FA2_WARPS, 1) attend(at_softmax_view<at_bf16> a, at_mma_work work) {
    AT_SHARED_DYNAMIC(at_bf16, k);
    AT_SHARED(uint32_t[2], taken); /* this scheduler needs none */
    at_bf16 *v = k + AT_FA2_TILE<D>;
    schedule tiles(work, taken);
    for (uint32_t item; tiles.next(item);) {
        const at_mma_block<at_bf16, AT_FA2_WARPS> block(a, work.request(item), work.head(item), work.tile(item));
        const at_mma_queries<at_bf16> &queries = block.queries; /* of this warp */
        if (block.empty())
            continue;
        const at_mma_q<D, at_bf16> q(queries);
        at_online_rows rows(a.scale);
        at_sum_f32 o[D / 8] = {};
        for (int begin = 0; begin < block.keys; begin += AT_SOFTMAX_KEYS) {
            at_mma_stage<D, AT_SOFTMAX_KEYS>(a, queries.request, queries.kv_head, begin, block.keys, k, v);
            at_sync();
            if (begin < queries.keys) {
                float s[AT_SOFTMAX_KEYS / 8][4];
                at_softmax_scores<at_sum_f32>(rows, queries, q, k, begin, s);
                at_softmax_update(rows, s, o);
                at_softmax_values<D>(queries, begin, s, v, o);
            }
            at_sync(); /* before the next tile overwrites this one */
        }
        at_softmax_store(a, queries, rows, o);
    }
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

int launch(const struct at_launch *launch) {
    return at_fa2_persistent_launch<at_bf16, schedule>(launch, []<int D>() { return attend<D>; });
}

} // namespace

AT_KERNEL(softmax_prefill, 04_persistent_round_robin) = {
    .summary = "02_fa2 with at most two blocks a multiprocessor, dealt the tiles in turn",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_SOFTMAX_KEYS, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = schedule::bytes,
    .launch = launch,
};
