/* AsyncT prefill on mma.sync: a warp has 16 queries of one head, the warps of a block share the keys that they walk.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile of 16 keys: K and V to shared memory; scores by m16n8k16 from q in registers and K by ldmatrix; scores to
 * shared memory behind the last K - 1 of the tile before; each lane filters and gates the elements of P that it needs
 * as an operand, so that P stays in registers; P V by m16n8k16 with V by transposing ldmatrix, o in registers.
 *
 * A key that some query of the warp does not see has p = 0 there, and 0 * V must be 0: the rows of V past the request
 * are zeros, and where V holds an infinity or a NaN in a row that is hidden from some query, the step is done for one
 * query at a time, hidden rows replaced by zeros. A step with all keys hidden leaves a query's sums as they are, for
 * -0 + 0 is +0. */
#ifndef AT_DEVICE_ASYNCT_MMA_H
#define AT_DEVICE_ASYNCT_MMA_H

#include "kernels/device/asynct.h"
#include "kernels/device/mma.h"

constexpr int AT_MMA_ROWS = 16, AT_MMA_KEYS = 16;

/* Elements from one row of K or V in shared memory to the next: eight rows of 16 bytes lie in different banks. */
template <int D> constexpr int AT_MMA_STRIDE = D + 8;

/* Floats of shared memory for a query: its halo and the scores of a tile. */
__host__ __device__ inline int at_mma_row_length(int n_taps) { return n_taps - 1 + AT_MMA_KEYS; }

/* The 16 queries of a warp: those of request blockIdx.y from `first` on, for query head blockIdx.x. Rows past the last
 * query repeat it and are not stored. */
template <class T> struct at_mma_queries {
    const at_asynct_view<T> &a;
    int request, head, kv_head, first;
    int end, all;    /* queries and keys of the request */
    int least, keys; /* what the first and the last of them see; 0: there is none */

    __device__ at_mma_queries(const at_asynct_view<T> &view, int tile)
        : a(view), request((int)blockIdx.y), head((int)blockIdx.x), kv_head(head / (view.h / view.hk)),
          first(tile * AT_MMA_ROWS), end(view.query_start[request + 1] - view.query_start[request]),
          all(view.seq_lens[request]), least(first < end ? visible(0) : 0),
          keys(first < end ? visible(AT_MMA_ROWS - 1) : 0) {}

    __device__ int query(int row) const { return first + row < end ? first + row : end - 1; }
    __device__ int visible(int row) const {
        const int hidden = a.causal ? end - 1 - query(row) : 0;
        return hidden < all ? all - hidden : 0;
    }
    __device__ int64_t element(int row) const {
        return ((int64_t)(a.query_start[request] + query(row)) * a.h + head) * a.d;
    }
};

/* Rows [begin, begin + 16) of K and V of a request's kv head to shared memory, zeros from `keys` on; by all threads. */
template <int D, class T>
__device__ void at_mma_stage(const at_asynct_view<T> &a, int request, int kv_head, int begin, int keys, T *k, T *v) {
    constexpr int EACH = 8, PARTS = D / EACH;
    for (int i = (int)threadIdx.x; i < AT_MMA_KEYS * PARTS; i += (int)blockDim.x) {
        const int row = i / PARTS, channel = i % PARTS * EACH, t = begin + row;
        T from_k[EACH] = {}, from_v[EACH] = {};
        if (t < keys) {
            const int64_t at = a.key(request, t, kv_head) + channel;
            at_load16(a.k + at, from_k);
            at_load16(a.v + at, from_v);
        }
        at_store16(k + row * AT_MMA_STRIDE<D> + channel, from_k);
        at_store16(v + row * AT_MMA_STRIDE<D> + channel, from_v);
    }
}

/* q of the warp's queries as operands, 16 channels each. */
template <int D, class T> struct at_mma_q {
    uint32_t x[D / 16][4];

    __device__ explicit at_mma_q(const at_mma_queries<T> &queries) {
        const int g = at_lane() / 4, t = at_lane() % 4;
        const T *rows[2] = { queries.a.q + queries.element(g), queries.a.q + queries.element(g + 8) };
        for (int i = 0; i < D / 16; i++)
            for (int r = 0; r < 4; r++)
                x[i][r] = at_load32(rows[r % 2] + 16 * i + 2 * t + 8 * (r / 2));
    }
};

/* Scores of a tile: s[0] for its first eight keys, s[1] for the others. */
template <int D, class T, class Sum> __device__ void at_mma_scores(const at_mma_q<D, T> &q, const T *k, Sum (&s)[2]) {
    const int lane = at_lane(), row = lane % 8 + lane / 16 * 8, channel = lane / 8 % 2 * 8;
    for (int i = 0; i < D / 16; i++) {
        uint32_t b[4];
        at_ldmatrix_x4(b, k + row * AT_MMA_STRIDE<D> + 16 * i + channel);
        const uint32_t low[2] = { b[0], b[1] }, high[2] = { b[2], b[3] };
        s[0].template add<T>(q.x[i], low);
        s[1].template add<T>(q.x[i], high);
    }
}

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

/* V of 16 keys by 16 channels as two operands: b[0] and b[1] for the first eight channels. */
template <int D, class T> __device__ void at_mma_load_v(const T *v, int channel, uint32_t (&b)[4]) {
    const int lane = at_lane();
    at_ldmatrix_x4_trans(b, v + lane % 16 * AT_MMA_STRIDE<D> + channel + lane / 16 * 8);
}

/* o += P V, the whole tile seen by all queries. */
template <int D, class T, class Sum>
__device__ void at_mma_values(const uint32_t (&p)[4], const T *v, Sum (&o)[D / 8]) {
    for (int i = 0; i < D / 16; i++) {
        uint32_t b[4];
        at_mma_load_v<D>(v, 16 * i, b);
        const uint32_t low[2] = { b[0], b[1] }, high[2] = { b[2], b[3] };
        o[2 * i].template add<T>(p, low);
        o[2 * i + 1].template add<T>(p, high);
    }
}

/* Whether rows [from, 16) of V hold an infinity or a NaN; the same for all lanes. */
template <int D, class T> __device__ bool at_mma_not_finite(const T *v, int from) {
    bool found = false;
    for (int i = 2 * at_lane(); i < (AT_MMA_KEYS - from) * D; i += 64) {
        float x, y;
        at_load_pair(v + (from + i / D) * AT_MMA_STRIDE<D> + i % D, x, y);
        found |= !(x - x == 0.0f && y - y == 0.0f);
    }
    return at_ballot(0xffffffffu, found) != 0;
}

/* An operand of V with zeros for keys from `keys` on. */
__device__ inline void at_mma_hide(uint32_t (&b)[2], int keys) {
    for (int r = 0; r < 2; r++) {
        const int first = 2 * (at_lane() % 4) + 8 * r;
        b[r] &= (first < keys ? 0xffffu : 0u) | (first + 1 < keys ? 0xffff0000u : 0u);
    }
}

/* The same where some queries do not see all keys of the tile. */
template <int D, class T, class Sum>
__device__ void at_mma_values_partly(const at_mma_queries<T> &queries, int begin, const uint32_t (&p)[4], const T *v,
                                     Sum (&o)[D / 8]) {
    const int g = at_lane() / 4, from = queries.least > begin ? queries.least - begin : 0;
    const bool by_query = at_mma_not_finite<D>(v, from);
    for (int i = 0; i < D / 16; i++) {
        uint32_t b[4];
        at_mma_load_v<D>(v, 16 * i, b);
        for (int n = 0; n < 2; n++) {
            Sum &sum = o[2 * i + n];
            const Sum before = sum;
            for (int row = 0; row < (by_query ? AT_MMA_ROWS : 1); row++) {
                uint32_t operand[2] = { b[2 * n], b[2 * n + 1] };
                if (by_query)
                    at_mma_hide(operand, queries.visible(row) - begin);
                Sum after = before;
                after.template add<T>(p, operand);
                for (int half = 0; half < 2; half++)
                    if ((!by_query || row == g + 8 * half) && queries.visible(g + 8 * half) > begin)
                        sum.take(after, half);
            }
        }
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
        at_mma_stage<D>(a, queries.request, queries.kv_head, begin, keys, k, v);
        at_sync();
        if (begin < queries.keys) {
            Sum s[2] = {};
            uint32_t p[4];
            at_mma_scores(q, k, s);
            at_mma_put_scores(a, s, rows, length);
            at_sync_warp();
            at_mma_gates(queries, gate, rows, length, begin, p);
            at_sync_warp();
            at_mma_keep_tail(rows, length);
            if (begin + AT_MMA_KEYS <= queries.least)
                at_mma_values<D>(p, v, o);
            else
                at_mma_values_partly<D>(queries, begin, p, v, o);
        }
        at_sync();
    }
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < D / 8 && queries.first + g + 8 * half < queries.end; i++)
            at_store32(a.o + queries.element(g + 8 * half) + 8 * i + 2 * t,
                       at_pack<T>(o[i][2 * half], o[i][2 * half + 1]));
}

/* Reasons to decline but the format of activations. */
static inline const char *at_mma_prefill_declines(const struct at_problem *problem) {
    const int64_t d = problem->sizes.d;
    if (d != 32 && d != 64 && d != 96 && d != 128)
        return "d is none of 32, 64, 96, 128";
    return at_asynct_declines(problem, 0);
}

/* Grid (query heads, requests, tiles of 16 WARPS queries that the request with the most queries has). */
template <class T, int WARPS, class Sum> int at_mma_prefill_launch(const struct at_launch *launch) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const int64_t queries = WARPS * AT_MMA_ROWS;
    const dim3 grid{ (unsigned)z->h, (unsigned)z->b, (unsigned)((z->max_sq + queries - 1) / queries) };
    const int64_t shared = 2 * AT_MMA_KEYS * (z->d + 8) * (int64_t)sizeof(T) +
                           queries * at_mma_row_length((int)z->taps) * (int64_t)sizeof(float);
    if (z->tokens == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return 0;
    const auto run = [=]<int D>() {
        return at_launch(at_mma_prefill<T, D, WARPS, Sum>, grid, dim3{ 32 * WARPS, 1, 1 }, shared, launch->stream,
                         at_asynct_view<T>::of(problem));
    };
    switch (z->d) {
    case 32:
        return run.template operator()<32>();
    case 64:
        return run.template operator()<64>();
    case 96:
        return run.template operator()<96>();
    default:
        return run.template operator()<128>();
    }
}

#endif
