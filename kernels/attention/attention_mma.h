/* Attention on mma.sync: a warp has 16 queries of one head, the warps of a block share the tiles of keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The steps that kernels are composed of: load a tile of K and V to shared memory (at_mma_stage), scores
 * (at_mma_scores), P V (at_mma_values); q and sums stay in registers. Scores and P V advance in steps of 16 keys, or of
 * 8 by m16n8k8.
 *
 * A key that some query of the warp does not see has p = 0 for that query, and 0 * V must be 0: rows of V past the end
 * of the request are zeros, and where V holds an infinity or a NaN in a row that is hidden from some query, the step
 * is done for one query at a time, hidden rows replaced by zeros. A step of hidden keys adds 0 to a query's sums,
 * which are never -0: the unit gives +0 for every sum that is zero. */
#ifndef AT_ATTENTION_MMA_H
#define AT_ATTENTION_MMA_H

#include "kernels/attention/attention.h"
#include "kernels/device/mma.h"

constexpr int AT_MMA_ROWS = 16, AT_MMA_KEYS = 16;

/* Elements from one row of K or V in shared memory to the next: eight rows of 16 bytes lie in different banks. */
template <int D> constexpr int AT_MMA_STRIDE = D + 8;

/* The 16 queries of a warp: those of a request from `first` on, for one query head. Rows past the last query repeat it
 * and are not stored. */
template <class T> struct at_mma_queries {
    const at_attention_view<T> &a;
    int request, head, kv_head, first;
    int end, all;    /* queries and keys of the request */
    int least, keys; /* what the first and the last of them see; 0: there is none */

    __device__ at_mma_queries(const at_attention_view<T> &view, int of_request, int of_head, int tile)
        : a(view), request(of_request), head(of_head), kv_head(head / (view.h / view.hk)), first(tile * AT_MMA_ROWS),
          end(view.query_start[request + 1] - view.query_start[request]), all(view.seq_lens[request]),
          least(first < end ? visible(0) : 0), keys(first < end ? visible(AT_MMA_ROWS - 1) : 0) {}
    /* Those of request blockIdx.y and query head blockIdx.x. */
    __device__ at_mma_queries(const at_attention_view<T> &view, int tile)
        : at_mma_queries(view, (int)blockIdx.y, (int)blockIdx.x, tile) {}

    __device__ int query(int row) const { return first + row < end ? first + row : end - 1; }
    __device__ int visible(int row) const {
        const int hidden = a.causal ? end - 1 - query(row) : 0;
        return hidden < all ? all - hidden : 0;
    }
    __device__ int64_t element(int row) const {
        return ((int64_t)(a.query_start[request] + query(row)) * a.h + head) * a.d;
    }
};

/* The queries of a block: those of tile `tile` of WARPS times 16, 16 for each warp. */
template <class T, int WARPS> struct at_mma_block {
    const int warp;
    const at_mma_queries<T> queries; /* of this warp */
    const int first, keys, least;    /* the first query; keys that some query of the block sees, and that all see */

    __device__ at_mma_block(const at_attention_view<T> &view, int request, int head, int tile)
        : warp((int)threadIdx.x / 32), queries(view, request, head, tile * WARPS + warp),
          first(tile * WARPS * AT_MMA_ROWS),
          keys(at_mma_queries<T>(view, request, head, tile * WARPS + WARPS - 1).visible(AT_MMA_ROWS - 1)),
          least(at_mma_queries<T>(view, request, head, tile * WARPS).least) {}
    /* The tile of a grid (query heads, requests, tiles). */
    __device__ explicit at_mma_block(const at_attention_view<T> &view)
        : at_mma_block(view, (int)blockIdx.y, (int)blockIdx.x, (int)blockIdx.z) {}
    __device__ bool empty() const { return first >= queries.end; }
};

/* Rows [begin, begin + KEYS) of K and V of a request's kv head, 16 bytes at a time, divided between `threads`:
 * put(to, from) for each 16 bytes, where `to` is the first element in the tile and `from` the first in k and in v; from
 * < 0: the row lies past `keys` and is zeros. */
template <int D, int KEYS, class T, class F>
__device__ void at_mma_each_16_bytes(const at_attention_view<T> &a, int request, int kv_head, int begin, int keys,
                                     int thread, int threads, F put) {
    constexpr int EACH = 8, PARTS = D / EACH;
    for (int i = thread; i < KEYS * PARTS; i += threads) {
        const int row = i / PARTS, channel = i % PARTS * EACH, t = begin + row;
        put(row * AT_MMA_STRIDE<D> + channel, t < keys ? a.key(request, t, kv_head) + channel : -1);
    }
}

/* Rows [begin, begin + KEYS) of K and V of a request's kv head to shared memory, zeros from `keys` on; by all threads
 * of the block, or by some. */
template <int D, int KEYS, class T>
__device__ void at_mma_stage(const at_attention_view<T> &a, int request, int kv_head, int begin, int keys, T *k, T *v,
                             int thread = (int)threadIdx.x, int threads = (int)blockDim.x) {
    at_mma_each_16_bytes<D, KEYS>(a, request, kv_head, begin, keys, thread, threads, [&](int to, int64_t from) {
        T from_k[8] = {}, from_v[8] = {};
        if (from >= 0) {
            at_load16(a.k + from, from_k);
            at_load16(a.v + from, from_v);
        }
        at_store16(k + to, from_k);
        at_store16(v + to, from_v);
    });
}

/* q of the warp's 16 rows as operands, 16 channels each. */
template <int D, class T> struct at_mma_q {
    uint32_t x[D / 16][4];

    template <class Rows> __device__ explicit at_mma_q(const Rows &queries) {
        const int g = at_lane() / 4, t = at_lane() % 4;
        const T *rows[2] = { queries.a.q + queries.element(g), queries.a.q + queries.element(g + 8) };
        for (int i = 0; i < D / 16; i++)
            for (int r = 0; r < 4; r++)
                x[i][r] = at_load32(rows[r % 2] + 16 * i + 2 * t + 8 * (r / 2));
    }
};

/* How operands are loaded from a tile in shared memory: four matrices of 8 x 8 elements, matrix m from tile[place(m)]
 * on, rows STRIDE elements apart. */
struct at_mma_ldmatrix {
    /* The matrices' rows are columns of the operands. */
    template <int STRIDE, class T, class F> static __device__ void by_row(uint32_t (&r)[4], const T *tile, F place) {
        at_ldmatrix_x4(r, tile + place(at_lane() / 8) + at_lane() % 8 * STRIDE);
    }
    template <int STRIDE, class T, class F> static __device__ void by_column(uint32_t (&r)[4], const T *tile, F place) {
        at_ldmatrix_x4_trans(r, tile + place(at_lane() / 8) + at_lane() % 8 * STRIDE);
    }
};

/* q.k of 8 N keys, N = 1 or 2. */
template <class Load = at_mma_ldmatrix, int D, class T, class Sum, int N>
__device__ void at_mma_scores(const at_mma_q<D, T> &q, const T *k, Sum (&s)[N]) {
    AT_UNROLL
    for (int i = 0; i < D / 16; i += 2 / N) { /* 16 channels of 16 keys, or 32 channels of 8 */
        uint32_t r[4];
        Load::template by_row<AT_MMA_STRIDE<D>>(
            r, k + 16 * i, [](int m) { return N == 2 ? m / 2 * 8 * AT_MMA_STRIDE<D> + m % 2 * 8 : 8 * m; });
        const uint32_t first[2] = { r[0], r[1] }, second[2] = { r[2], r[3] };
        s[0].template add<T>(q.x[i], first);
        s[N - 1].template add<T>(q.x[i + 2 / N - 1], second);
    }
}

/* V of 8 B keys by 32 / B channels as operands of 8 channels each. */
template <int D, class Load, class T, int B>
__device__ void at_mma_load_v(const T *v, int channel, uint32_t (&b)[4 / B][B]) {
    uint32_t r[4];
    Load::template by_column<AT_MMA_STRIDE<D>>(r, v + channel,
                                               [](int m) { return m % B * 8 * AT_MMA_STRIDE<D> + m / B * 8; });
    AT_UNROLL
    for (int m = 0; m < 4; m++)
        b[m / B][m % B] = r[m];
}

/* o += P V of 4 A keys, A = 2 or 4, for 64 / A channels from `channel` on; a sum has 8 channels. */
template <int D, class Load = at_mma_ldmatrix, class T, class Sum, int A>
__device__ void at_mma_values_of(const uint32_t (&p)[A], const T *v, int channel, Sum *o) {
    constexpr int B = A / 2;
    uint32_t b[4 / B][B];
    at_mma_load_v<D, Load, T, B>(v, channel, b);
    AT_UNROLL
    for (int n = 0; n < 4 / B; n++)
        o[n].template add<T>(p, b[n]);
}

/* o += P V of 4 A keys. */
template <int D, class Load, class T, class Sum, int A>
__device__ void at_mma_values_plain(const uint32_t (&p)[A], const T *v, Sum (&o)[D / 8]) {
    AT_UNROLL
    for (int i = 0; i < D / 8; i += 8 / A)
        at_mma_values_of<D, Load>(p, v, 8 * i, &o[i]);
}

/* Whether rows of V from `from` on, or all when that is negative, hold an infinity or a NaN; the same for all lanes. */
template <int D, int KEYS, class T> __device__ bool at_mma_not_finite(const T *v, int from) {
    bool found = false;
    from = from > 0 ? from : 0;
    for (int i = 2 * at_lane(); i < (KEYS - from) * D; i += 64) {
        float x, y;
        at_load_pair(v + (from + i / D) * AT_MMA_STRIDE<D> + i % D, x, y);
        found |= !(x - x == 0.0f && y - y == 0.0f);
    }
    return at_ballot(0xffffffffu, found) != 0;
}

/* An operand of V with zeros for keys from `keys` on. */
template <int B> __device__ void at_mma_hide(uint32_t (&b)[B], int keys) {
    for (int r = 0; r < B; r++) {
        const int first = 2 * (at_lane() % 4) + 8 * r;
        b[r] &= (first < keys ? 0xffffu : 0u) | (first + 1 < keys ? 0xffff0000u : 0u);
    }
}

/* o += P V one query at a time, because V holds infinities or NaNs in rows that some queries do not see. */
template <int D, class Load, class Queries, class T, class Sum, int A>
__device__ void at_mma_values_by_query(const Queries &queries, int begin, const uint32_t (&p)[A], const T *v,
                                       Sum (&o)[D / 8]) {
    constexpr int B = A / 2;
    for (int row = 0; row < AT_MMA_ROWS; row++) {
        AT_UNROLL
        for (int i = 0; i < D / 8; i += 4 / B) {
            uint32_t b[4 / B][B];
            at_mma_load_v<D, Load, T, B>(v, 8 * i, b);
            AT_UNROLL
            for (int n = 0; n < 4 / B; n++) {
                Sum sum = o[i + n];
                at_mma_hide(b[n], queries.visible(row) - begin);
                sum.template add<T>(p, b[n]);
                AT_UNROLL
                for (int half = 0; half < 2; half++)
                    if (row == at_lane() / 4 + 8 * half && queries.visible(row) > begin)
                        o[i + n].take(sum, half);
            }
        }
    }
}

/* o += P V of the 4 A keys from `begin` on, p = 0 where a query does not see the key. Queries: as at_mma_queries, rows in
 * the order of what they see. */
template <int D, class Load = at_mma_ldmatrix, class Queries, class T, class Sum, int A>
__device__ void at_mma_values(const Queries &queries, int begin, const uint32_t (&p)[A], const T *v, Sum (&o)[D / 8]) {
    if (begin + 4 * A > queries.least && at_mma_not_finite<D, 4 * A>(v, queries.least - begin))
        at_mma_values_by_query<D, Load>(queries, begin, p, v, o);
    else
        at_mma_values_plain<D, Load>(p, v, o);
}

/* f.operator()<D>() for the head size d. */
template <class F> int at_mma_with_head_size(int64_t d, F f) {
    switch (d) {
    case 32:
        return f.template operator()<32>();
    case 64:
        return f.template operator()<64>();
    case 96:
        return f.template operator()<96>();
    default:
        return f.template operator()<128>();
    }
}

/* Reasons to decline other than the format of activations; AT_MMA_ROWS queries are the smallest tile of these kernels. */
static inline const char *at_mma_declines(const struct at_problem *problem) {
    const int64_t d = problem->sizes.d;
    if (d != 32 && d != 64 && d != 96 && d != 128)
        return "d is none of 32, 64, 96, 128";
    return at_attention_declines(problem, 0, AT_MMA_ROWS);
}

/* Grid (query heads, requests, tiles of `queries` queries of the longest request). Without any query
 * grid.y is 0: there is nothing to launch. */
static inline dim3 at_mma_grid(const struct at_sizes *z, int64_t queries) {
    return { (unsigned)z->h, z->tokens ? (unsigned)z->b : 0u, (unsigned)((z->max_sq + queries - 1) / queries) };
}

#endif
