/* AsyncT prefill: a block of 16 queries walks the keys in tiles of 32, 8 threads a query.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 02_multi_q, 32 keys are loaded between barriers: scores of the tile, then gates, then P V. The last K - 1
 * scores of the tile before stand in front of a query's row.
 *
 * Numerically: as 01_as_decode: P V goes on from tile to tile in the same order.
 *
 * Launch: grid (query heads, requests, tiles of 16 queries), 128 threads; shared memory 128 bytes a channel, 4 KiB, and
 * K - 1 scores a query. Two barriers of the block and two of each warp a tile of keys.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256.
 *
 * Source: 000 section 1.4: fewer barriers, yet slower than key by key there. */
#include "kernels/asynct_prefill/asynct_multi_q.h"

namespace {

constexpr int QUERIES = 16, KEYS = 32, GROUP = AT_MULTI_Q_GROUP;
static_assert(KEYS >= AT_ASYNCT_MAX_TAPS, "the filter reaches over less than a tile");

/* Floats of shared memory for a query: its halo, the scores of a tile, and their P. */
__host__ __device__ inline int row_length(int n_taps) { return n_taps - 1 + 2 * KEYS; }

template <class T, int D> __global__ void __launch_bounds__(QUERIES *GROUP, 1) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, rows);
    const at_query_tile<QUERIES> tile(a);
    if (tile.empty())
        return;
    const int halo = a.n_taps - 1, lane = tile.lane();
    const at_decode_query<T> query = tile.query(a);
    const at_asynct_gate gate = at_asynct_gate::of(a, query.head);
    const at_query_run<D, GROUP> q(query.q());
    at_output_run<D, GROUP> o;
    float *tail = rows + tile.group() * row_length(a.n_taps), *row = tail + halo, *p = row + KEYS;
    T *k = reinterpret_cast<T *>(rows + QUERIES * row_length(a.n_taps)), *v = k + KEYS * D;
    for (int begin = 0; begin < tile.keys; begin += KEYS) {
        const int end = tile.keys < begin + KEYS ? tile.keys : begin + KEYS;
        const int own = (query.keys < end ? query.keys : end) - begin; /* keys of the tile that the query sees */
        at_stage_keys<D>(query, begin, end, k, v);
        at_sync();
        for (int i = 0; i < own; i++) {
            const float r = query.r(q.dot(k + i * D));
            if (lane == 0)
                row[i] = r;
        }
        at_sync_warp();
        for (int i = lane; i < own; i += GROUP)
            p[i] = gate(row + i, begin + i);
        at_sync_warp();
        for (int i = 0; i < own; i++)
            o.add(p[i], v + i * D);
        if (own == KEYS) /* the last scores are the next tile's halo */
            for (int i = lane; i < halo; i += GROUP)
                tail[i] = tail[KEYS + i];
        at_sync();
    }
    if (!tile.idle())
        o.put(query);
}

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int64_t scores = (int64_t)QUERIES * row_length((int)z->taps) * (int64_t)sizeof(float);
    const int64_t keys = 2 * KEYS * z->d * (int64_t)sizeof(at_f16);
    return at_with_head_size(z->d, [=]<int D>() {
        return at_query_tiles_launch<QUERIES>(launch, attend<at_f16, D>, attend<at_bf16, D>, scores + keys);
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 03_multi_q_k_tiled) = {
    .summary = "16 queries a block, keys in tiles of 32",
    .source = "000 1.4",
    .numerics = AT_ASYNCT_MULTI_Q_NUMERICS,
    .supports = at_multi_q_declines<QUERIES>,
    .workspace = nullptr,
    .launch = launch,
};
