/* AsyncT prefill: 04 with warps that take their work from one counter, each for itself.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04, whoever does the work.
 * Launch: one thread that clears the counter; then a block for every 4 tiles of 16 queries, at most 264, 4 warps;
 * shared memory 256 (d + 8) bytes for 16 keys of each warp and 256 (15 + K) bytes of scores. No barrier of the block;
 * three of the warp a tile of keys, one atomic addition a tile of queries. Scratch: 4 bytes.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 000 section 2, where a warp has 16 queries and shared memory of its own too: what a block shares in 04, each
 * warp loads for itself here. */
#include "kernels/asynct_prefill/asynct_mma.h"
#include "kernels/attention/persistent.h"

namespace {

constexpr int WARPS = 4, BLOCKS = 264;

template <class T, int D>
__global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a, at_mma_work work) {
    AT_SHARED_DYNAMIC(T, memory);
    const int warp = (int)threadIdx.x / 32;
    const at_mma_shared<T, D, AT_MMA_KEYS, WARPS> shared{ memory };
    T *k = shared.k(warp), *v = shared.v(warp);
    for (;;) {
        const uint32_t item = at_shuffle(0xffffffffu, at_lane() == 0 ? work.take() : 0u, 0);
        if (item >= work.items)
            return;
        const at_mma_queries<T> queries(a, work.request(item), work.head(item), work.tile(item));
        if (queries.first >= queries.end)
            continue;
        at_mma_walk<T, D, at_sum_f32, AT_MMA_KEYS, at_mma_ldmatrix> walk(a, queries, shared.rows(warp, a.n_taps));
        for (int begin = 0; begin < queries.keys; begin += AT_MMA_KEYS) {
            at_mma_stage<D, AT_MMA_KEYS>(a, queries.request, queries.kv_head, begin, queries.keys, k, v, at_lane(), 32);
            at_sync_warp();
            walk.take(begin, k, v);
        }
        walk.store();
    }
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

int launch(const struct at_launch *launch) {
    const at_mma_work work(launch, AT_MMA_ROWS);
    const int code = work.items ? work.clear(launch) : 0;
    if (code)
        return code;
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return work.launch(launch, attend<at_bf16, D>, WARPS, BLOCKS, WARPS,
                           at_mma_shared<at_bf16, D, AT_MMA_KEYS, WARPS>::bytes(WARPS, &launch->problem->sizes));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 06_mma_persistent_warp) = {
    .summary = "04 with warps that take tiles of 16 queries from one counter, and keys of their own",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = at_mma_work::bytes,
    .launch = launch,
};
