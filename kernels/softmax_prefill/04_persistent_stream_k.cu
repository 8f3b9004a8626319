/* Softmax prefill by persistent blocks under stream-K: each block has an equal span of all tiles of keys, cut where 512
 * keys of a tile of queries end; a second launch joins what tiles of queries left in pieces.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 02_fa2 and the other schedulers, the keys of a row are cut into ranges of 512, each with a
 * maximum and sums of its own; ranges are joined in ascending order with weights e^(own maximum - the row's), and
 * divided once. Where spans end decides which block takes a range and nothing else: bits depend neither on the batch
 * nor on the number of blocks. Within a range as 02_fa2: q.k and P V are sums of the tensor core, 16 products an
 * instruction, in f32; 64 keys a step of the online softmax; exponentials are our own, within one ulp and with the same
 * bits everywhere; P is rounded to bf16, the sum of weights is of unrounded ones.
 * Launch: a warp that sums up the lengths of tiles; then blocks, as many as ranges of tiles of 64 queries but at most
 * two a multiprocessor, 4 warps of 16 queries each; shared memory 256 (d + 8) bytes for 64 keys of K and V; two
 * barriers of the block a tile of keys. Where a request may have more than 512 keys, grid (query heads, requests, tiles
 * of 16 queries), 128 threads, which join rows. Scratch: 4 bytes a tile of 64 queries; 4 (d + 2) for each query, head
 * and range where there may be two.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 003 for the scheduler; cuts at fixed keys are ours. */
#include "kernels/softmax_prefill/softmax_persistent.h"
#include "kernels/softmax_prefill/softmax_stream_k.h"

namespace {

template <int D>
__global__ void __launch_bounds__(32 * AT_FA2_WARPS, 1)
    attend(at_softmax_view<at_bf16> a, at_mma_work work, at_stream_parts parts) {
    AT_SHARED_DYNAMIC(at_bf16, k);
    at_bf16 *v = k + AT_FA2_TILE<D>;
    at_schedule_stream pieces(work);
    int range;
    for (uint32_t item; pieces.next(item, range);) {
        const at_mma_block<at_bf16, AT_FA2_WARPS> block(a, work.request(item), work.head(item), work.tile(item));
        const at_mma_queries<at_bf16> &queries = block.queries; /* of this warp */
        const int first = range * AT_STREAM_RANGE;
        const int end = block.keys < first + AT_STREAM_RANGE ? block.keys : first + AT_STREAM_RANGE;
        const at_mma_q<D, at_bf16> q(queries);
        at_online_rows rows(a.scale);
        at_sum_f32 o[D / 8] = {};
        for (int begin = first; begin < end; begin += AT_SOFTMAX_KEYS) {
            at_mma_stage<D, AT_SOFTMAX_KEYS>(a, queries.request, queries.kv_head, begin, end, k, v);
            at_sync();
            if (begin < queries.keys) {
                float s[AT_SOFTMAX_KEYS / 8][4];
                at_softmax_scores<at_sum_f32>(rows, queries, q, k, begin, s);
                at_softmax_update(rows, s, o);
                at_softmax_values<D>(queries, begin, s, v, o);
            }
            at_sync(); /* before the next tile overwrites this one */
        }
        at_stream_store(a, queries, rows, o, parts, range);
    }
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

int launch(const struct at_launch *launch) {
    const auto blocks = [=](const at_mma_work &work, const at_stream_parts &parts, uint32_t n) {
        return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
            return at_launch(attend<D>, dim3{ n, 1, 1 }, dim3{ 32 * AT_FA2_WARPS, 1, 1 }, AT_FA2_SHARED<at_bf16, D>,
                             launch->stream, at_softmax_view<at_bf16>::of(launch->problem), work, parts);
        });
    };
    return at_stream_launch<at_bf16>(launch, AT_FA2_QUERIES, at_fa2_blocks(), blocks);
}

} // namespace

AT_KERNEL(softmax_prefill, 04_persistent_stream_k) = {
    .summary = "02_fa2 by persistent blocks, each with an equal span of tiles of keys; ranges of 512 keys are joined",
    .source = "003",
    .numerics = AT_SOFTMAX_MMA_NUMERICS(AT_UNIT_TC_F32, AT_BF16, AT_SOFTMAX_KEYS, AT_STREAM_RANGE, AT_GUARD_NONE),
    .supports = supports,
    .workspace = at_stream_parts::bytes<AT_FA2_QUERIES>,
    .launch = launch,
};
