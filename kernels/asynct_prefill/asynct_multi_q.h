/* AsyncT prefill by tiles of queries of one head, 8 threads a query: the steps of kernels 02, 03 and 22.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block loads keys and rows of V to shared memory once for all queries of its tile (at_stage_keys). A query's q and o
 * stay in the registers of its threads, a run of channels each (at_query_run, at_output_run). Launch bounds ask for one
 * block an SM: for more, ptxas would spill some of those registers. */
#ifndef AT_ASYNCT_MULTI_Q_H
#define AT_ASYNCT_MULTI_Q_H

#include "kernels/attention/asynct_decode.h"

constexpr int AT_MULTI_Q_GROUP = 8;

/* What they declare: q.k is eight chains of fmaf joined by a butterfly; P in f32; keys with p = 0 are left out. SCALE_ON:
 * where the scale is applied. */
#define AT_ASYNCT_MULTI_Q_SCALED_NUMERICS(SCALE_ON) \
    { \
        .qk_unit = AT_UNIT_F32_FMA, .qk_lanes = 8, .qk_tree = AT_TREE_BUTTERFLY, .scale_on = SCALE_ON, \
        .fir_order = AT_FIR_ORDER_TAPS, .fir_fma = 1, .p = AT_F32, .gamma_on = AT_GAMMA_ON_P, \
        .clamp = AT_CLAMP_FMINMAX, .pv_unit = AT_UNIT_F32_FMA, .pv_chunk = 1, .repeats = 1, .batch_invariant = 1, \
        .tail = AT_TAIL_UNREAD, .pv_zero = AT_PV_ZERO_SKIPPED, \
    }
#define AT_ASYNCT_MULTI_Q_NUMERICS AT_ASYNCT_MULTI_Q_SCALED_NUMERICS(AT_SCALE_ON_SCORE)

/* Queries [first, end) of request blockIdx.y for query head blockIdx.x; each group of threads has one or is idle. */
template <int QUERIES> struct at_query_tile {
    int first, end, keys; /* keys: what the last query sees, which no other exceeds */

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
    /* The group's query; an idle group gets the last one of the tile, with no keys to see. */
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
    /* Adds p times a row of V, which is left out when p is 0. */
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

/* Loads keys [begin, end) and their rows of V to shared memory; by all threads of the block. */
template <int D, class T>
__device__ void at_stage_keys(const at_decode_query<T> &query, int begin, int end, T *k, T *v) {
    for (int i = (int)threadIdx.x; i < (end - begin) * D; i += (int)blockDim.x) {
        k[i] = query.k(begin + i / D)[i % D];
        v[i] = query.v(begin + i / D)[i % D];
    }
}

/* Reasons to decline of kernels with tiles of QUERIES queries. */
template <int QUERIES> const char *at_multi_q_declines(const struct at_problem *problem) {
    const char *reason = at_head_size_declines(problem);
    return reason ? reason : at_asynct_declines(problem, 0, QUERIES);
}

/* A kernel on grid (query heads, requests, tiles of the longest request). */
template <int QUERIES>
int at_query_tiles_launch(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>),
                          void (*bf16)(at_asynct_view<at_bf16>), int64_t shared) {
    const struct at_sizes *z = &launch->problem->sizes;
    const dim3 grid{ (unsigned)z->h, (unsigned)z->b, (unsigned)((z->max_sq + QUERIES - 1) / QUERIES) };
    return at_attention_launch(launch, f16, bf16, grid, QUERIES * AT_MULTI_Q_GROUP, shared);
}

#endif
