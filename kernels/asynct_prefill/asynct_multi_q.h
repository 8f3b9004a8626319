/* AsyncT prefill by tiles of queries of one head, 8 threads a query: what a tile and a query's threads hold, the kernel
 * that walks key by key, and the launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Keys and rows of V come to shared memory once for all queries of a tile. A query's q and o stay in registers, a run
 * of channels a thread: launch bounds name one block an SM, or ptxas spills some for the sake of more. */
#ifndef AT_DEVICE_ASYNCT_MULTI_Q_H
#define AT_DEVICE_ASYNCT_MULTI_Q_H

#include "kernels/attention/asynct_decode.h"

constexpr int AT_MULTI_Q_GROUP = 8;

/* Queries [first, end) of request blockIdx.y for query head blockIdx.x; each group of threads has one, or none. */
template <int QUERIES> struct at_query_tile {
    int first, end, keys; /* keys: what the last of them sees, and so the most */

    template <class T> __device__ explicit at_query_tile(const at_asynct_view<T> &a) {
        const int request = (int)blockIdx.y, queries = a.query_start[request + 1] - a.query_start[request];
        first = (int)blockIdx.z * QUERIES;
        end = queries < first + QUERIES ? queries : first + QUERIES;
        keys = empty() ? 0 : a.visible(request, end - 1);
    }
    __device__ bool empty() const { return first >= end; }
    /* This thread's place in its group, and its group in the block. */
    __device__ static int lane() { return (int)threadIdx.x % AT_MULTI_Q_GROUP; }
    __device__ static int group() { return (int)threadIdx.x / AT_MULTI_Q_GROUP; }
    /* The group has no query. */
    __device__ bool idle() const { return first + group() >= end; }
    /* The group's query; an idle group has the last one of the tile, seeing nothing. */
    template <class T> __device__ at_decode_query<T> query(const at_asynct_view<T> &a) const {
        const int request = (int)blockIdx.y, i = idle() ? end - 1 : first + group();
        return { a, (int)blockIdx.x, request, a.query_start[request] + i, idle() ? 0 : a.visible(request, i) };
    }
};

/* A thread's run of o in registers, the channels of at_query_run. */
template <int D, int GROUP> struct at_output_run {
    static constexpr int RUN = D / GROUP;
    float o[RUN] = {};
    int channel;

    __device__ at_output_run() : channel(at_lane() % GROUP * RUN) {}
    /* A key's share, left out when p is 0. */
    template <class T> __device__ void add(float p, const T *v) {
        if (p == 0.0f)
            return;
        for (int i = 0; i < RUN; i += 2) {
            float v0, v1;
            at_load_pair(v + channel + i, v0, v1);
            o[i] = fmaf(p, v0, o[i]);
            o[i + 1] = fmaf(p, v1, o[i + 1]);
        }
    }
    template <class T> __device__ void put(const at_decode_query<T> &query) const {
        for (int i = 0; i < RUN; i++)
            query.put(channel + i, o[i]);
    }
};

/* Keys [begin, end) and their rows of V, to k and v in shared memory; by all threads of the block. */
template <int D, class T>
__device__ void at_stage_keys(const at_decode_query<T> &query, int begin, int end, T *k, T *v) {
    for (int i = (int)threadIdx.x; i < (end - begin) * D; i += (int)blockDim.x) {
        k[i] = query.k(begin + i / D)[i % D];
        v[i] = query.v(begin + i / D)[i % D];
    }
}

/* Key by key: a key and its row of V in one of two buffers in turn, so that one barrier a key is enough; the last K
 * scores of a query in a ring. Each score stands there twice, K apart: the filter's window is always a run. */
template <class T, int D, int QUERIES>
static __global__ void __launch_bounds__(QUERIES *AT_MULTI_Q_GROUP, 1) at_multi_q(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, rings);
    const at_query_tile<QUERIES> tile(a);
    if (tile.empty())
        return;
    const int taps = a.n_taps;
    const at_decode_query<T> query = tile.query(a);
    const at_asynct_gate gate = at_asynct_gate::of(a, query.head);
    const at_query_run<D, AT_MULTI_Q_GROUP> q(query.q());
    at_output_run<D, AT_MULTI_Q_GROUP> o;
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
        at_sync_warp(at_group_mask<AT_MULTI_Q_GROUP>());
        o.add(gate(newest + taps, t), v);
    }
    if (!tile.idle())
        o.put(query);
}

/* Reasons to decline. */
static inline const char *at_multi_q_declines(const struct at_problem *problem) {
    const char *reason = at_head_size_declines(problem);
    return reason ? reason : at_asynct_declines(problem, 0);
}

/* A kernel on grid (query heads, requests, tiles that the request with the most queries has). */
template <int QUERIES>
int at_query_tiles_launch(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>),
                          void (*bf16)(at_asynct_view<at_bf16>), int64_t shared) {
    const struct at_sizes *z = &launch->problem->sizes;
    const dim3 grid{ (unsigned)z->h, (unsigned)z->b, (unsigned)((z->max_sq + QUERIES - 1) / QUERIES) };
    return at_attention_launch(launch, f16, bf16, grid, QUERIES * AT_MULTI_Q_GROUP, shared);
}

template <int QUERIES> int at_multi_q_launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int64_t rings = QUERIES * 2 * z->taps * (int64_t)sizeof(float), buffers = 4 * z->d * (int64_t)sizeof(at_f16);
    return at_with_head_size(z->d, [=]<int D>() {
        return at_query_tiles_launch<QUERIES>(launch, at_multi_q<at_f16, D, QUERIES>, at_multi_q<at_bf16, D, QUERIES>,
                                              rings + buffers);
    });
}

#endif
