/* Attention decode by a block: the steps that kernels of every operator are composed of.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A step is run by all threads of the block and leaves the barrier after it to the kernel. Keys [begin, end) are those
 * of the block; `first` is the key that row[0] belongs to, p[0] belongs to `begin`. A Query is an at_decode_query_of
 * with r(dot), the score of a dot product. */
#ifndef AT_DECODE_H
#define AT_DECODE_H

#include "kernels/attention/attention.h"
#include "kernels/device/group.h"

constexpr int AT_DECODE_THREADS = 128;
/* Blocks that at least fit a multiprocessor: without a number ptxas keeps to fewer registers and spills. */
constexpr int AT_DECODE_BLOCKS = 4;

/* A row of keys cut into ranges: the length of a range unless a variant has its own; how many ranges there are. */
constexpr int AT_SPLIT_RANGE = 256;
template <int RANGE = AT_SPLIT_RANGE> __host__ __device__ int at_split_ranges(int64_t keys) {
    return (int)((keys + RANGE - 1) / RANGE);
}

/* One query of one head of a request. View: at_attention_view<T> with o. */
template <class T, class View> struct at_decode_query_of {
    using element = T;
    const View &a;
    int request, head, kv_head, token, keys;

    /* The request's only query, of a grid (query heads, requests, ...). */
    __device__ explicit at_decode_query_of(const View &view) : at_decode_query_of(view, (int)blockIdx.x) {}
    __device__ at_decode_query_of(const View &view, int query_head)
        : at_decode_query_of(view, query_head, (int)blockIdx.y, view.query_start[blockIdx.y],
                             view.seq_lens[blockIdx.y]) {}
    /* Any query token of a request, as if it were the only one and saw all of `visible` keys. */
    __device__ at_decode_query_of(const View &view, int query_head, int of, int query_token, int visible)
        : a(view), request(of), head(query_head), kv_head(head / (a.h / a.hk)), token(query_token), keys(visible) {}

    /* The request has no query. */
    __device__ bool absent() const { return a.query_start[request + 1] == token; }
    __device__ const T *q() const { return a.q + ((int64_t)token * a.h + head) * a.d; }
    __device__ const T *k(int t) const { return a.k + a.key(request, t, kv_head); }
    __device__ const T *v(int t) const { return a.v + a.key(request, t, kv_head); }
    __device__ void put(int c, float o) const { a.o[((int64_t)token * a.h + head) * a.d + c] = at_round_to<T>(o); }
};

/* q.k of n channels by one thread: a chain of fmaf. Loads go ahead of it, eight channels at a time. */
template <class T> __device__ float at_chain(const T *q, const T *k, int n) {
    constexpr int AHEAD = 8;
    float sum = 0.0f;
    int i = 0;
    for (; i + AHEAD <= n; i += AHEAD) {
        T x[AHEAD], y[AHEAD];
        for (int j = 0; j < AHEAD; j++) {
            x[j] = q[i + j];
            y[j] = k[i + j];
        }
        for (int j = 0; j < AHEAD; j++)
            sum = fmaf(at_float(x[j]), at_float(y[j]), sum);
    }
    for (; i < n; i++)
        sum = fmaf(at_float(q[i]), at_float(k[i]), sum);
    return sum;
}

/* The same by loads of 16 bytes; n is a multiple of 8. */
template <class T> __device__ float at_chain_by_16(const T *q, const T *k, int n) {
    constexpr int EACH = 8;
    float sum = 0.0f;
    for (int i = 0; i < n; i += EACH) {
        T x[EACH], y[EACH];
        at_load16(q + i, x);
        at_load16(k + i, y);
        for (int j = 0; j < EACH; j++)
            sum = fmaf(at_float(x[j]), at_float(y[j]), sum);
    }
    return sum;
}

/* A lane's part of q.k when a group of GROUP neighbouring lanes shares it, each taking a run of d / GROUP channels; the
 * group has yet to add the parts. GROUP divides d. */
template <int GROUP, class T> __device__ float at_group_part(const T *q, const T *k, int d) {
    const int run = d / GROUP, first = at_lane() % GROUP * run;
    return at_chain(q + first, k + first, run);
}

/* Scores of keys [first, end) by groups of GROUP threads; part(t) is this lane's part of q.k of key t, which the group
 * adds. A group has loads of several keys in flight: they do not wait for the sums. */
template <int GROUP, class Query, class Part>
__device__ void at_decode_scores(const Query &query, int first, int end, float *row, Part part) {
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

/* Channel c of `sum` + P.V over n keys; weight(i) is p of the i-th and key(i) its number. Rows of V whose weight is 0
 * are left unread where SKIP says so: all threads see the same weights, so no warp diverges. Several loads are in
 * flight at a time, with no branch before a load (the query stands in for a row that is not wanted): they wait neither
 * for the sum nor for each other. The order of the sum stays that of the keys. */
template <bool SKIP, class Query, class Weight, class Key>
__device__ float at_decode_sum(const Query &query, int n, int c, Weight weight, Key key, float sum = 0.0f) {
    using T = typename Query::element;
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
template <class Query> __device__ float at_decode_every(const Query &query, const float *p, int begin, int end, int c) {
    return at_decode_sum<false>(
        query, end - begin, c, [&](int i) { return p[i]; }, [&](int i) { return begin + i; });
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
    /* Puts f(x) in the place of each x of q. */
    template <class F> __device__ void map(F f) {
        for (int n = 0; n < HELD; n++)
            for (int i = 0; i < RUN; i++)
                q[n][i] = f(q[n][i]);
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

/* Reasons to decline of kernels that at_with_head_size picks. */
static inline const char *at_head_size_declines(const struct at_problem *problem) {
    const int64_t d = problem->sizes.d;
    return d != 32 && d != 64 && d != 96 && d != 128 && d != 256 ? "d is none of 32, 64, 96, 128, 256" : nullptr;
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

#endif
