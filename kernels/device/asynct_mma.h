/* AsyncT prefill on mma.sync: a warp has 16 queries of one head, the warps of a block share the keys that they walk.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile of 16 keys: K and V to shared memory; scores by m16n8k16 from q in registers and K by ldmatrix; scores to
 * shared memory behind the last K - 1 of the tile before; each lane filters and gates the elements of P that it needs
 * as an operand, so that P stays in registers; P V by m16n8k16 with V by transposing ldmatrix, o in registers. */
#ifndef AT_DEVICE_ASYNCT_MMA_H
#define AT_DEVICE_ASYNCT_MMA_H

#include "kernels/device/asynct.h"
#include "kernels/device/attention_mma.h"

/* Floats of shared memory for a query: its halo and the scores of a tile. */
__host__ __device__ inline int at_mma_row_length(int n_taps) { return n_taps - 1 + AT_MMA_KEYS; }

/* What the filter reads of the scores, to rows of length `length` whose halo of n_taps - 1 comes first. */
template <class T, class Sum>
__device__ void at_mma_put_scores(const at_asynct_view<T> &a, const Sum (&s)[2], float *rows, int length) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 4; i++) {
            const float x = s[n][i] * a.scale;
            rows[(g + 8 * (i / 2)) * length + a.n_taps - 1 + 8 * n + 2 * t + i % 2] = a.relu_pre ? fmaxf(x, 0.0f) : x;
        }
}

/* P of a tile as an operand: 16 queries by 16 keys from `begin` on, 0 where a query does not see the key. */
template <class T>
__device__ void at_mma_gates(const at_mma_queries<T> &queries, const at_asynct_gate &gate, const float *rows,
                             int length, int begin, uint32_t (&p)[4]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int r = 0; r < 4; r++) {
        const int row = g + 8 * (r % 2), first = 2 * t + 8 * (r / 2), keys = queries.visible(row) - begin;
        const float *score = rows + row * length + gate.n_taps - 1 + first;
        const float low = first < keys ? gate(score, begin + first) : 0.0f;
        const float high = first + 1 < keys ? gate(score + 1, begin + first + 1) : 0.0f;
        p[r] = at_pack<T>(low, high);
    }
}

/* The last scores of a tile become the halo of the next. */
__device__ inline void at_mma_keep_tail(float *rows, int length) {
    const int halo = length - AT_MMA_KEYS;
    for (int i = at_lane(); i < AT_MMA_ROWS * halo; i += 32) {
        float *row = rows + i / halo * length + i % halo;
        row[0] = row[AT_MMA_KEYS];
    }
}

template <class T, int D, int WARPS, class Sum>
static __global__ void __launch_bounds__(32 * WARPS, 1) at_mma_prefill(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(T, tiles);
    T *k = tiles, *v = k + AT_MMA_KEYS * AT_MMA_STRIDE<D>;
    const int warp = (int)threadIdx.x / 32, g = at_lane() / 4, t = at_lane() % 4, length = at_mma_row_length(a.n_taps);
    float *rows = reinterpret_cast<float *>(v + AT_MMA_KEYS * AT_MMA_STRIDE<D>) + warp * AT_MMA_ROWS * length;
    const at_mma_queries<T> last(a, (int)blockIdx.z * WARPS + WARPS - 1), queries(a, (int)blockIdx.z * WARPS + warp);
    if ((int)blockIdx.z * WARPS * AT_MMA_ROWS >= queries.end)
        return;
    const int keys = last.visible(AT_MMA_ROWS - 1); /* of the block */
    const at_asynct_gate gate = at_asynct_gate::of(a, queries.head);
    const at_mma_q<D, T> q(queries);
    Sum o[D / 8] = {};
    for (int begin = 0; begin < keys; begin += AT_MMA_KEYS) {
        at_mma_stage<D, AT_MMA_KEYS>(a, queries.request, queries.kv_head, begin, keys, k, v);
        at_sync();
        if (begin < queries.keys) {
            Sum s[2] = {};
            uint32_t p[4];
            at_mma_scores(q, k, s[0], s[1]);
            at_mma_put_scores(a, s, rows, length);
            at_sync_warp();
            at_mma_gates(queries, gate, rows, length, begin, p);
            at_sync_warp();
            at_mma_keep_tail(rows, length);
            at_mma_values<D>(queries, begin, p, v, o);
        }
        at_sync();
    }
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < D / 8 && queries.first + g + 8 * half < queries.end; i++)
            at_store32(a.o + queries.element(g + 8 * half) + 8 * i + 2 * t,
                       at_pack<T>(o[i][2 * half], o[i][2 * half + 1]));
}

template <class T, int WARPS, class Sum> int at_mma_prefill_launch(const struct at_launch *launch) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const int64_t queries = WARPS * AT_MMA_ROWS;
    const dim3 grid = at_mma_grid(z, queries);
    const int64_t shared = 2 * AT_MMA_KEYS * (z->d + 8) * (int64_t)sizeof(T) +
                           queries * at_mma_row_length((int)z->taps) * (int64_t)sizeof(float);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return 0;
    return at_mma_with_head_size(z->d, [=]<int D>() {
        return at_launch(at_mma_prefill<T, D, WARPS, Sum>, grid, dim3{ 32 * WARPS, 1, 1 }, shared, launch->stream,
                         at_asynct_view<T>::of(problem));
    });
}

#endif
