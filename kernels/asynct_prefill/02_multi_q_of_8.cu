/* AsyncT prefill: a block of 8 queries walks the keys together, 8 threads a query.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A key and its row of V are loaded once for all queries of the block, into one of two buffers in turn, so that one
 * barrier a key is enough. The last K scores of a query stand in a ring, each twice, K apart: the window of the filter
 * is always a run. Like 02_multi_q, with 8 queries a block where that has 16.
 *
 * Numerically: as 01_as_decode: the queries share what is read, not what is added.
 *
 * Launch: grid (query heads, requests, tiles of 8 queries), 64 threads; shared memory 8 bytes a channel and 64 bytes a
 * tap. One barrier a key.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256.
 *
 * Source: 000 section 1.4: more blocks, faster there than 16. */
#include "kernels/asynct_prefill/asynct_multi_q.h"

namespace {

constexpr int QUERIES = 8, GROUP = AT_MULTI_Q_GROUP;

template <class T, int D> __global__ void __launch_bounds__(QUERIES *GROUP, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, rings);
    const at_query_tile<QUERIES> tile(a);
    if (tile.empty())
        return;
    const int taps = a.n_taps;
    const at_decode_query<T> query = tile.query(a);
    const at_asynct_gate gate = at_asynct_gate::of(a, query.head);
    const at_query_run<D, GROUP> q(query.q());
    at_output_run<D, GROUP> o;
    float *ring = rings + tile.group() * 2 * taps;
    T *buffers = reinterpret_cast<T *>(rings + QUERIES * 2 * taps);
    for (int t = 0; t < tile.keys; t++) {
        T *k = buffers + t % 2 * 2 * D, *v = k + D;
        at_stage_keys<D>(query, t, t + 1, k, v);
        at_sync();
        if (t >= query.keys)
            continue;
        const float r = query.r(q.dot(k));
        float *newest = ring + t % taps;
        if (tile.lane() == 0)
            newest[0] = newest[taps] = r;
        at_sync_warp(at_group_mask<GROUP>());
        o.add(gate(newest + taps, t), v);
    }
    if (!tile.idle())
        o.put(query);
}

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int64_t rings = QUERIES * 2 * z->taps * (int64_t)sizeof(float), buffers = 4 * z->d * (int64_t)sizeof(at_f16);
    return at_with_head_size(z->d, [=]<int D>() {
        return at_query_tiles_launch<QUERIES>(launch, attend<at_f16, D>, attend<at_bf16, D>, rings + buffers);
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 02_multi_q_of_8) = {
    .summary = "8 queries a block, 8 threads a query, key by key",
    .source = "000 1.4",
    .numerics = AT_ASYNCT_MULTI_Q_NUMERICS,
    .supports = at_multi_q_declines<QUERIES>,
    .workspace = nullptr,
    .launch = launch,
};
