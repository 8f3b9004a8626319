/* AsyncT decode: rows of K are copied to shared memory while those before are multiplied.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 11_split_k_paired, keys come by cp.async in tiles of 32 rows. A tile is in flight from the step before to
 * the one that reads it: two stages, one barrier before a stage is read and one before it is copied to again.
 *
 * Numerically: as 11_split_k_paired.
 *
 * Launch: grid (query heads, requests, ranges that the longest request can have), 128 threads, shared memory 8 bytes
 * a key of a range and its halo, and two tiles of 32 rows of K; then grid (query heads, requests), 128 threads.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256.
 *
 * Source: ours. */
#include "kernels/asynct_decode/asynct_split.h"

namespace {

constexpr int GROUP = 8, TILE = 32;

/* Two tiles of rows of K. */
template <class T, int D> struct stages {
    static constexpr int CHUNK = 16 / (int)sizeof(T), CHUNKS = D / CHUNK; /* elements of a copy, copies of a row */
    T *rows;

    __device__ T *row(int tile, int i) const { return rows + ((tile % 2) * TILE + i) * D; }
    /* Issues this thread's copies of keys [first, end) to a tile, as one group, empty past the last key. */
    __device__ void copy(const at_decode_query<T> &query, int tile, int first, int end) const {
        const int n = (end - first < TILE ? end - first : TILE) * CHUNKS;
        for (int i = (int)threadIdx.x; i < n; i += AT_DECODE_THREADS) {
            const int key = i / CHUNKS, from = i % CHUNKS * CHUNK;
            at_copy_async<16>(row(tile, key) + from, query.k(first + key) + from);
        }
        at_copy_commit();
    }
};

/* This thread's part of q.k like at_query_run's, by loads of 16 bytes where a run is a multiple of that. */
template <class T, int D> __device__ float part(const at_query_run<D, GROUP> &q, const T *k) {
    constexpr int RUN = at_query_run<D, GROUP>::RUN, CHUNK = stages<T, D>::CHUNK;
    if constexpr (RUN % CHUNK != 0) {
        return q.part(k);
    } else {
        float sum = 0.0f;
        for (int i = 0; i < RUN; i += CHUNK) {
            T x[CHUNK];
            at_load16(k + q.lane * RUN + i, x);
            for (int j = 0; j < CHUNK; j++)
                sum = fmaf(q.q[0][i + j], at_float(x[j]), sum);
        }
        return sum;
    }
}

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    attend_range(at_asynct_view<T> a, float *partials) {
    AT_SHARED_DYNAMIC(float, shared);
    const stages<T, D> k{ reinterpret_cast<T *>(shared) };
    float *row = shared + 2 * TILE * D * (int)sizeof(T) / (int)sizeof(float);
    const at_decode_query<T> query(a);
    const at_split_range range(query);
    float *p = row + at_split_row(a.n_taps);
    if (query.absent() || range.empty())
        return;
    const at_query_run<D, GROUP> q(query.q());
    k.copy(query, 0, range.first, range.end);
    for (int tile = 0, first = range.first; first < range.end; tile++, first += TILE) {
        k.copy(query, tile + 1, first + TILE, range.end);
        at_copy_wait<1>();
        at_sync();
        const int end = range.end - first < TILE ? range.end : first + TILE;
        at_decode_scores<GROUP>(query, first, end, row + (first - range.first),
                                [&](int t) { return part<T, D>(q, k.row(tile, t - first)); });
        at_sync();
    }
    at_decode_gates(query, row, range.first, range.begin, range.end, p);
    at_sync();
    float *partial = at_split_partial(query, partials, (int)gridDim.z, (int)blockIdx.z);
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS)
        partial[c] = at_decode_live(query, p, range.begin, range.end, c);
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 0); }

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_split_launch(launch, attend_range<at_f16, D>, attend_range<at_bf16, D>,
                               2 * TILE * D * (int64_t)sizeof(at_f16));
    });
}

} // namespace

AT_KERNEL(asynct_decode, 20_copy_ahead) = {
    .summary = "11 with rows of K copied to shared memory ahead, two tiles of 32",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 8,
        .qk_tree = AT_TREE_BUTTERFLY,
        .scale_on = AT_SCALE_ON_SCORE,
        .fir_order = AT_FIR_ORDER_TAPS,
        .fir_fma = 1,
        .p = AT_F32,
        .gamma_on = AT_GAMMA_ON_P,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .split = AT_SPLIT_RANGE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = at_split_workspace<>,
    .launch = launch,
};
