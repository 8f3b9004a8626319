/* AsyncT prefill: 04 with the next tile of K and V on its way while one is multiplied.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04.
 * Launch: grid (query heads, requests, tiles of 64 queries), 4 warps of 16 queries each; shared memory 128 (d + 8)
 * bytes for two tiles of 16 keys and 256 (15 + K) bytes of scores. One barrier of the block and two of each warp for
 * every tile of 16 keys.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 000 section 2, where cp.async changed next to nothing. A tile is copied to the stage that all have left when
 * they passed the barrier before it. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

constexpr int WARPS = 4, KEYS = AT_MMA_KEYS;

/* Starts this thread's copies of the tile from `begin` on; one group. */
template <int D, class T>
__device__ __forceinline__ void copy(const at_mma_queries<T> &queries, int begin, int keys, T *k, T *v) {
    const auto put = [k, v, from_k = queries.a.k, from_v = queries.a.v](int to, int64_t from) {
        if (from >= 0) {
            at_copy_async<16>(k + to, from_k + from);
            at_copy_async<16>(v + to, from_v + from);
        }
        for (int i = 0; from < 0 && i < 8; i += 2) {
            at_store32(k + to + i, 0);
            at_store32(v + to + i, 0);
        }
    };
    at_mma_each_16_bytes<D, KEYS>(queries.a, queries.request, queries.kv_head, begin, keys, (int)threadIdx.x,
                                  32 * WARPS, put);
    at_copy_commit();
}

template <class T, int D> __global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, memory);
    const int warp = (int)threadIdx.x / 32;
    const at_mma_shared<T, D, KEYS, 2> shared{ memory };
    const at_mma_queries<T> last(a, (int)blockIdx.z * WARPS + WARPS - 1), queries(a, (int)blockIdx.z * WARPS + warp);
    if ((int)blockIdx.z * WARPS * AT_MMA_ROWS >= queries.end)
        return;
    const int keys = last.visible(AT_MMA_ROWS - 1); /* of the block */
    at_mma_walk<T, D, at_sum_f32, KEYS, at_mma_ldmatrix> walk(a, queries, shared.rows(warp, a.n_taps));
    if (keys > 0)
        copy<D>(queries, 0, keys, shared.k(0), shared.v(0));
    for (int begin = 0, stage = 0; begin < keys; begin += KEYS, stage = 1 - stage) {
        at_copy_wait<0>();
        at_sync();
        if (begin + KEYS < keys)
            copy<D>(queries, begin + KEYS, keys, shared.k(1 - stage), shared.v(1 - stage));
        if (begin < queries.keys)
            walk.take(begin, shared.k(stage), shared.v(stage));
    }
    walk.store();
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    return at_mma_with_head_size(z->d, [=]<int D>() {
        return at_mma_launch(launch, attend<at_bf16, D>, at_mma_grid(z, WARPS * AT_MMA_ROWS), WARPS,
                             at_mma_shared<at_bf16, D, KEYS, 2>::bytes(WARPS, z));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 08_mma_cp_async) = {
    .summary = "04 with two tiles of keys, the next one copied by cp.async",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
