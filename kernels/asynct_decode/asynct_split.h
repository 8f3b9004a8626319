/* AsyncT decode with the keys cut into ranges, each for a block of its own: the ranges, their partial outputs, the sum.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the filter reaches across the edge of a range: each range computes the K - 1 scores to its left once more, its
 * halo. Partial outputs are f32; a second kernel adds them in ascending order, without rescaling. */
#ifndef AT_ASYNCT_SPLIT_H
#define AT_ASYNCT_SPLIT_H

#include "kernels/attention/asynct_decode.h"

/* The keys of range i, or of range blockIdx.z; `first` is the first of its halo. */
template <int RANGE> struct at_split_range_of {
    int begin, end, first;

    template <class T>
    __device__ explicit at_split_range_of(const at_decode_query<T> &query)
        : at_split_range_of(query, (int)blockIdx.z) {}
    template <class T> __device__ at_split_range_of(const at_decode_query<T> &query, int i) {
        const int halo = query.a.n_taps - 1;
        begin = i * RANGE;
        end = query.keys < begin + RANGE ? query.keys : begin + RANGE;
        first = begin < halo ? 0 : begin - halo;
    }
    __device__ bool empty() const { return begin >= end; }
};
using at_split_range = at_split_range_of<AT_SPLIT_RANGE>;

/* Floats of shared memory for the scores of a range and its halo; P of the range follows. */
template <int RANGE = AT_SPLIT_RANGE> __host__ __device__ int at_split_row(int n_taps) { return RANGE + n_taps; }

/* The d channels of a query's partial output `range` of `ranges`. */
template <class T>
__device__ float *at_split_partial(const at_decode_query<T> &query, float *partials, int ranges, int range) {
    return partials + (((int64_t)query.request * query.a.h + query.head) * ranges + range) * query.a.d;
}

template <class T, int RANGE>
static __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    at_split_add(at_asynct_view<T> a, float *partials, int max_ranges) {
    const at_decode_query<T> query(a);
    const int ranges = at_split_ranges<RANGE>(query.keys);
    if (query.absent())
        return;
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS) {
        float sum = ranges > 0 ? at_split_partial(query, partials, max_ranges, 0)[c] : 0.0f;
        for (int i = 1; i < ranges; i++)
            sum += at_split_partial(query, partials, max_ranges, i)[c];
        query.put(c, sum);
    }
}

template <int RANGE = AT_SPLIT_RANGE> int64_t at_split_workspace(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->b * z->h * at_split_ranges<RANGE>(z->capacity) * z->d * (int64_t)sizeof(float);
}

/* Launches a kernel on grid (query heads, requests, ranges that the longest request can have), then the sum. Shared
 * memory: scores and P of a range, and `more` bytes. */
template <int RANGE = AT_SPLIT_RANGE>
int at_split_launch(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>, float *),
                    void (*bf16)(at_asynct_view<at_bf16>, float *), int64_t more) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int ranges = at_split_ranges<RANGE>(z->capacity);
    const int64_t shared = (at_split_row<RANGE>((int)z->taps) + RANGE) * (int64_t)sizeof(float) + more;
    float *partials = static_cast<float *>(launch->workspace);
    const int code = at_decode_launch_grid(launch, f16, bf16, z->h, ranges, shared, partials);
    return code ? code
                : at_decode_launch_grid(launch, at_split_add<at_f16, RANGE>, at_split_add<at_bf16, RANGE>, z->h, 1, 0,
                                        partials, ranges);
}

#endif
