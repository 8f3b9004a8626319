/* AsyncT decode by a block: the steps that variants are put together from, and their launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A step is run by all threads of the block and leaves the barrier after it to the kernel. Keys [begin, end) are those
 * of the block; `first` is the key that row[0] belongs to, p[0] belongs to `begin`. */
#ifndef AT_DEVICE_ASYNCT_DECODE_H
#define AT_DEVICE_ASYNCT_DECODE_H

#include "kernels/device/asynct.h"

constexpr int AT_DECODE_THREADS = 128;
/* Blocks that at least fit a multiprocessor: without a number ptxas keeps to fewer registers and spills. */
constexpr int AT_DECODE_BLOCKS = 4;

/* One query head of one request, of a grid (query heads, requests, ...) unless the head is given. */
template <class T> struct at_decode_query {
    const at_asynct_view<T> &a;
    int request, head, kv_head, token, keys;

    __device__ explicit at_decode_query(const at_asynct_view<T> &view) : at_decode_query(view, (int)blockIdx.x) {}
    __device__ at_decode_query(const at_asynct_view<T> &view, int query_head)
        : at_decode_query(view, query_head, (int)blockIdx.y, view.query_start[blockIdx.y], view.seq_lens[blockIdx.y]) {}
    /* Any query token of a request, as if it were the only one and saw all of `visible` keys. */
    __device__ at_decode_query(const at_asynct_view<T> &view, int query_head, int of, int query_token, int visible)
        : a(view), request(of), head(query_head), kv_head(head / (a.h / a.hk)), token(query_token), keys(visible) {}

    /* The request asks nothing. */
    __device__ bool absent() const { return a.query_start[request + 1] == token; }
    __device__ const T *q() const { return a.q + ((int64_t)token * a.h + head) * a.d; }
    __device__ const T *k(int t) const { return a.k + a.key(request, t, kv_head); }
    __device__ const T *v(int t) const { return a.v + a.key(request, t, kv_head); }
    /* What the filter reads of q.k. */
    __device__ float r(float dot) const {
        const float s = dot * a.scale;
        return a.relu_pre ? fmaxf(s, 0.0f) : s;
    }
    __device__ void put(int c, float o) const { a.o[((int64_t)token * a.h + head) * a.d + c] = at_round_to<T>(o); }
};

/* Scores of keys [first, end) by groups of GROUP threads; part(t) is this lane's part of q.k of key t, which the group
 * adds. A group has several keys on their way: their loads do not wait for the sums. */
template <int GROUP, class T, class Part>
__device__ void at_decode_scores(const at_decode_query<T> &query, int first, int end, float *row, Part part) {
    constexpr int AHEAD = 4;
    const int thread = (int)threadIdx.x, groups = (int)blockDim.x / GROUP;
    for (int begin = first + thread / GROUP; begin < end; begin += AHEAD * groups) {
        float parts[AHEAD];
        for (int i = 0; i < AHEAD; i++) { /* past the end: the last key again, for a load behind a branch waits */
            const int t = begin + i * groups;
            parts[i] = part(t < end ? t : end - 1);
        }
        for (int i = 0; i < AHEAD; i++) {
            const int t = begin + i * groups;
            if (t >= end)
                break;
            const float r = query.r(at_group_sum<GROUP>(parts[i]));
            if (thread % GROUP == 0)
                row[t - first] = r;
        }
    }
}

template <class T>
__device__ void at_decode_gates(const at_decode_query<T> &query, const float *row, int first, int begin, int end,
                                float *p) {
    const at_asynct_gate gate = at_asynct_gate::of(query.a, query.head);
    for (int t = begin + (int)threadIdx.x; t < end; t += (int)blockDim.x)
        p[t - begin] = gate(row + (t - first), t);
}

/* Channel c of `sum` + P.V over n keys; weight(i) is p of the i-th and key(i) its number. Rows of V whose weight is 0
 * are left unread where SKIP says so: all threads see the same weights, so no warp diverges. Several rows are on their
 * way at a time, without a branch before a load (the query stands in for a row that is not wanted): loads wait neither
 * for the sum nor for each other. The order of the sum stays that of the keys. */
template <bool SKIP, class T, class Weight, class Key>
__device__ float at_decode_sum(const at_decode_query<T> &query, int n, int c, Weight weight, Key key,
                               float sum = 0.0f) {
    constexpr int AHEAD = 8;
    for (int begin = 0; begin < n; begin += AHEAD) {
        const T *from[AHEAD];
        float w[AHEAD];
        T x[AHEAD];
        bool wanted[AHEAD];
        for (int i = 0; i < AHEAD; i++) {
            const int at = begin + i < n ? begin + i : n - 1;
            w[i] = weight(at);
            wanted[i] = begin + i < n && (!SKIP || w[i] != 0.0f);
            from[i] = query.v(key(at)) + c;
        }
        for (int i = 0; i < AHEAD; i++)
            x[i] = *(wanted[i] ? from[i] : query.q() + c);
        for (int i = 0; i < AHEAD; i++)
            if (wanted[i])
                sum = fmaf(w[i], at_float(x[i]), sum);
    }
    return sum;
}

/* Channel c of P.V, every key multiplied. */
template <class T>
__device__ float at_decode_every(const at_decode_query<T> &query, const float *p, int begin, int end, int c) {
    return at_decode_sum<false>(
        query, end - begin, c, [&](int i) { return p[i]; }, [&](int i) { return begin + i; });
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

/* Gates of keys [begin, end), and the list of t - begin of those whose p is not 0, in the order the block's atomic adds
 * to *count come in. *count is 0 before. */
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

/* Runs of q in registers. A dot product is LANES chains over D / LANES channels each, joined by a butterfly; GROUP
 * threads share it, and each holds the chains of LANES / GROUP lanes. */
template <int D, int LANES, int GROUP = LANES> struct at_query_run {
    static constexpr int THREADS = GROUP, HELD = LANES / GROUP, RUN = D / LANES;
    static_assert(D % LANES == 0 && RUN % 2 == 0 && LANES % GROUP == 0, "runs of whole pairs");
    float q[HELD][RUN];
    int lane; /* the first one of the thread; the others lie GROUP apart, the butterfly's first partners */

    template <class T> __device__ explicit at_query_run(const T *from) : lane(at_lane() % GROUP) {
        for (int n = 0; n < HELD; n++)
            for (int i = 0; i < RUN; i++)
                q[n][i] = at_float(from[(lane + n * GROUP) * RUN + i]);
    }
    /* The chain of held lane n, k read two channels at a time. */
    template <class T> __device__ float chain(const T *k, int n) const {
        float sum = 0.0f;
        for (int i = 0; i < RUN; i += 2) {
            float k0, k1;
            at_load_pair(k + (lane + n * GROUP) * RUN + i, k0, k1);
            sum = fmaf(q[n][i], k0, sum);
            sum = fmaf(q[n][i + 1], k1, sum);
        }
        return sum;
    }
    /* This thread's part of q.k, which the group has yet to add. */
    template <class T> __device__ float part(const T *k) const {
        static_assert(HELD <= 2, "one step of the butterfly within a thread");
        const float sum = chain(k, 0);
        return HELD == 2 ? sum + chain(k, HELD - 1) : sum;
    }
    /* q.k for all threads of the group. */
    template <class T> __device__ float dot(const T *k) const { return at_group_sum<GROUP>(part(k)); }
};

/* Reasons to decline that decode kernels share. */
static inline const char *at_asynct_decode_declines(const struct at_problem *problem, int64_t bytes_per_key) {
    return problem->sizes.max_sq > 1 ? "at most one query a request" : at_asynct_declines(problem, bytes_per_key);
}

/* Those of kernels that at_with_head_size picks. */
static inline const char *at_head_size_declines(const struct at_problem *problem) {
    const int64_t d = problem->sizes.d;
    return d != 32 && d != 64 && d != 96 && d != 128 && d != 256 ? "d is none of 32, 64, 96, 128, 256" : nullptr;
}

static inline const char *at_asynct_decode_sized_declines(const struct at_problem *problem, int64_t bytes_per_key) {
    const char *reason = at_head_size_declines(problem);
    return reason ? reason : at_asynct_decode_declines(problem, bytes_per_key);
}

/* f.operator()<D>() for the head size d: registers are addressed by constants only. */
template <class F> int at_with_head_size(int64_t d, F f) {
    switch (d) {
    case 32:
        return f.template operator()<32>();
    case 64:
        return f.template operator()<64>();
    case 96:
        return f.template operator()<96>();
    case 128:
        return f.template operator()<128>();
    default:
        return f.template operator()<256>();
    }
}

/* A kernel on grid (x, requests, z); `args` follow the view. */
template <class... P, class... A>
int at_decode_launch_grid(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>, P...),
                          void (*bf16)(at_asynct_view<at_bf16>, P...), int64_t x, int64_t z, int64_t shared,
                          A... args) {
    const dim3 grid{ (unsigned)x, (unsigned)launch->problem->sizes.b, (unsigned)z };
    return at_asynct_launch(launch, f16, bf16, grid, AT_DECODE_THREADS, shared, args...);
}

/* On grid (query heads, requests). */
static inline int at_decode_launch(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>),
                                   void (*bf16)(at_asynct_view<at_bf16>), int64_t shared) {
    return at_decode_launch_grid(launch, f16, bf16, launch->problem->sizes.h, 1, shared);
}

#endif
