/* AsyncT decode by a block: the steps that variants are composed of, and their launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A step is run by all threads of the block and leaves the barrier after it to the kernel. Keys [begin, end) are those
 * of the block; `first` is the key that row[0] belongs to, p[0] belongs to `begin`. */
#ifndef AT_ASYNCT_DECODE_H
#define AT_ASYNCT_DECODE_H

#include "kernels/attention/asynct.h"
#include "kernels/attention/decode.h"

/* One query head of one request, of a grid (query heads, requests, ...) unless the head is given. */
template <class T> struct at_decode_query : at_decode_query_of<T, at_asynct_view<T>> {
    using at_decode_query_of<T, at_asynct_view<T>>::at_decode_query_of;
    using at_decode_query_of<T, at_asynct_view<T>>::a;

    /* What the filter reads of q.k. */
    __device__ float r(float dot) const {
        const float s = dot * a.scale;
        return a.relu_pre ? fmaxf(s, 0.0f) : s;
    }
};

/* The same when q has been scaled: q.k is the score. */
template <class T> struct at_decode_scaled_query : at_decode_query<T> {
    using at_decode_query<T>::at_decode_query;
    using at_decode_query<T>::a;
    __device__ explicit at_decode_scaled_query(const at_decode_query<T> &query) : at_decode_query<T>(query) {}

    __device__ float r(float dot) const { return a.relu_pre ? fmaxf(dot, 0.0f) : dot; }
};

template <class T>
__device__ void at_decode_gates(const at_decode_query<T> &query, const float *row, int first, int begin, int end,
                                float *p) {
    const at_asynct_gate gate = at_asynct_gate::of(query.a, query.head);
    for (int t = begin + (int)threadIdx.x; t < end; t += (int)blockDim.x)
        p[t - begin] = gate(row + (t - first), t);
}

/* Channel c of `sum` + P.V, the rows of V whose p is 0 left unread. */
template <class T>
__device__ float at_decode_live(const at_decode_query<T> &query, const float *p, int begin, int end, int c,
                                float sum = 0.0f) {
    return at_decode_sum<true>(
        query, end - begin, c, [&](int i) { return p[i]; }, [&](int i) { return begin + i; }, sum);
}

/* Channel c of P.V over the n keys of a list of t - begin. */
template <class T>
__device__ float at_decode_listed(const at_decode_query<T> &query, const float *p, int begin, const int *list, int n,
                                  int c) {
    return at_decode_sum<false>(
        query, n, c, [&](int i) { return p[list[i]]; }, [&](int i) { return begin + list[i]; });
}

/* Gates of keys [begin, end), and the list of t - begin of those whose p is not 0, in the order of the block's atomic
 * additions to *count, which is 0 before. */
template <class T>
__device__ void at_decode_gates_listed(const at_decode_query<T> &query, const float *row, int first, int begin, int end,
                                       float *p, int *list, uint32_t *count) {
    const at_asynct_gate gate = at_asynct_gate::of(query.a, query.head);
    for (int t = begin + (int)threadIdx.x; t < end; t += (int)blockDim.x) {
        const float x = gate(row + (t - first), t);
        p[t - begin] = x;
        if (x != 0.0f)
            list[at_atomic_add(count, 1u)] = t - begin;
    }
}

/* Reasons to decline that kernels for some head sizes share. */
static inline const char *at_asynct_decode_sized_declines(const struct at_problem *problem, int64_t bytes_per_key) {
    const char *reason = at_head_size_declines(problem);
    return reason ? reason : at_asynct_declines(problem, bytes_per_key);
}

/* A kernel on grid (x, requests, z); `args` follow the view. */
template <class... P, class... A>
int at_decode_launch_grid(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>, P...),
                          void (*bf16)(at_asynct_view<at_bf16>, P...), int64_t x, int64_t z, int64_t shared,
                          A... args) {
    const dim3 grid{ (unsigned)x, (unsigned)launch->problem->sizes.b, (unsigned)z };
    return at_attention_launch(launch, f16, bf16, grid, AT_DECODE_THREADS, shared, args...);
}

/* On grid (query heads, requests). */
static inline int at_decode_launch(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>),
                                   void (*bf16)(at_asynct_view<at_bf16>), int64_t shared) {
    return at_decode_launch_grid(launch, f16, bf16, launch->problem->sizes.h, 1, shared);
}

#endif
