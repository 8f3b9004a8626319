/* Attention on mma.sync: a warp has 16 queries of one head, the warps of a block share the keys that they walk.
 * SPDX-License-Identifier: Apache-2.0
 *
 * K and V of a tile of keys in shared memory; q and sums in registers; scores and P.V in steps of 16 keys.
 *
 * A key that some query of the warp does not see has p = 0 there, and 0 * V must be 0: the rows of V past the request
 * are zeros, and where V holds an infinity or a NaN in a row that is hidden from some query, the step is done for one
 * query at a time, hidden rows replaced by zeros. A step of hidden keys adds 0 to a query's sums, which are never -0:
 * the unit gives +0 for every sum that is zero. */
#ifndef AT_DEVICE_ATTENTION_MMA_H
#define AT_DEVICE_ATTENTION_MMA_H

#include "kernels/device/attention.h"
#include "kernels/device/mma.h"

constexpr int AT_MMA_ROWS = 16, AT_MMA_KEYS = 16;

/* Elements from one row of K or V in shared memory to the next: eight rows of 16 bytes lie in different banks. */
template <int D> constexpr int AT_MMA_STRIDE = D + 8;

/* The 16 queries of a warp: those of request blockIdx.y from `first` on, for query head blockIdx.x. Rows past the last
 * query repeat it and are not stored. */
template <class T> struct at_mma_queries {
    const at_attention_view<T> &a;
    int request, head, kv_head, first;
    int end, all;    /* queries and keys of the request */
    int least, keys; /* what the first and the last of them see; 0: there is none */

    __device__ at_mma_queries(const at_attention_view<T> &view, int tile)
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

/* Rows [begin, begin + KEYS) of K and V of a request's kv head to shared memory, zeros from `keys` on; by all threads.
 */
template <int D, int KEYS, class T>
__device__ void at_mma_stage(const at_attention_view<T> &a, int request, int kv_head, int begin, int keys, T *k, T *v) {
    constexpr int EACH = 8, PARTS = D / EACH;
    for (int i = (int)threadIdx.x; i < KEYS * PARTS; i += (int)blockDim.x) {
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

/* q.k of 16 keys: `low` for the first eight, `high` for the others. */
template <int D, class T, class Sum>
__device__ void at_mma_scores(const at_mma_q<D, T> &q, const T *k, Sum &low, Sum &high) {
    const int lane = at_lane(), row = lane % 8 + lane / 16 * 8, channel = lane / 8 % 2 * 8;
    for (int i = 0; i < D / 16; i++) {
        uint32_t b[4];
        at_ldmatrix_x4(b, k + row * AT_MMA_STRIDE<D> + 16 * i + channel);
        const uint32_t first[2] = { b[0], b[1] }, second[2] = { b[2], b[3] };
        low.template add<T>(q.x[i], first);
        high.template add<T>(q.x[i], second);
    }
}

/* V of 16 keys by 16 channels as two operands: b[0] and b[1] for the first eight channels. */
template <int D, class T> __device__ void at_mma_load_v(const T *v, int channel, uint32_t (&b)[4]) {
    const int lane = at_lane();
    at_ldmatrix_x4_trans(b, v + lane % 16 * AT_MMA_STRIDE<D> + channel + lane / 16 * 8);
}

/* P V of 16 keys is added: 16 channels from `channel` on, `low` for the first eight. */
template <int D, class T, class Sum>
__device__ void at_mma_values_of(const uint32_t (&p)[4], const T *v, int channel, Sum &low, Sum &high) {
    uint32_t b[4];
    at_mma_load_v<D>(v, channel, b);
    const uint32_t first[2] = { b[0], b[1] }, second[2] = { b[2], b[3] };
    low.template add<T>(p, first);
    high.template add<T>(p, second);
}

/* o += P V of 16 keys. */
template <int D, class T, class Sum>
__device__ void at_mma_values_plain(const uint32_t (&p)[4], const T *v, Sum (&o)[D / 8]) {
    for (int i = 0; i < D / 16; i++)
        at_mma_values_of<D>(p, v, 16 * i, o[2 * i], o[2 * i + 1]);
}

/* Whether rows of V from `from` on, or all when that is negative, hold an infinity or a NaN; the same for all lanes. */
template <int D, class T> __device__ bool at_mma_not_finite(const T *v, int from) {
    bool found = false;
    from = from > 0 ? from : 0;
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

/* The same, a query at a time: V holds infinities or NaNs in rows that some queries do not see. */
template <int D, class T, class Sum>
__device__ void at_mma_values_by_query(const at_mma_queries<T> &queries, int begin, const uint32_t (&p)[4], const T *v,
                                       Sum (&o)[D / 8]) {
    for (int row = 0; row < AT_MMA_ROWS; row++) {
        AT_UNROLL
        for (int i = 0; i < D / 16; i++) {
            uint32_t b[4];
            at_mma_load_v<D>(v, 16 * i, b);
            AT_UNROLL
            for (int n = 0; n < 2; n++) {
                uint32_t seen[2] = { b[2 * n], b[2 * n + 1] };
                Sum sum = o[2 * i + n];
                at_mma_hide(seen, queries.visible(row) - begin);
                sum.template add<T>(p, seen);
                for (int half = 0; half < 2; half++)
                    if (row == at_lane() / 4 + 8 * half && queries.visible(row) > begin)
                        o[2 * i + n].take(sum, half);
            }
        }
    }
}

/* o += P V of the 16 keys from `begin` on, p = 0 where a query does not see the key. */
template <int D, class T, class Sum>
__device__ void at_mma_values(const at_mma_queries<T> &queries, int begin, const uint32_t (&p)[4], const T *v,
                              Sum (&o)[D / 8]) {
    if (begin + AT_MMA_KEYS > queries.least && at_mma_not_finite<D>(v, queries.least - begin))
        at_mma_values_by_query<D>(queries, begin, p, v, o);
    else
        at_mma_values_plain<D>(p, v, o);
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

/* Reasons to decline but the format of activations. */
static inline const char *at_mma_declines(const struct at_problem *problem) {
    const int64_t d = problem->sizes.d;
    if (d != 32 && d != 64 && d != 96 && d != 128)
        return "d is none of 32, 64, 96, 128";
    return at_attention_declines(problem, 0);
}

/* Grid (query heads, requests, tiles of `queries` that the request with the most has); .z = 0 or another: nothing to
 * do. */
static inline dim3 at_mma_grid(const struct at_sizes *z, int64_t queries) {
    return { (unsigned)z->h, z->tokens ? (unsigned)z->b : 0u, (unsigned)((z->max_sq + queries - 1) / queries) };
}

#endif
