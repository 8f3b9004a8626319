/* Softmax prefill under stream-K: what a piece leaves, the launch that joins parts, and the launch of both.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The 16 queries of a warp that all see at most one range of keys are done with their first piece, which stores them.
 * Others have a part (kernels/attention/softmax_parts.h) of each range that they see, in the workspace behind what the
 * scheduler keeps there. */
#ifndef AT_SOFTMAX_STREAM_K_H
#define AT_SOFTMAX_STREAM_K_H

#include "kernels/attention/softmax_mma.h"
#include "kernels/attention/softmax_parts.h"
#include "kernels/attention/stream_k.h"

/* Keys of a piece: parts are read and written once for each, which takes as long as some tens of keys do. */
constexpr int AT_STREAM_RANGE = 512;
using at_schedule_stream = at_schedule_stream_k<AT_STREAM_RANGE>;

/* Where the parts lie: up to `ranges` of each row. */
struct at_stream_parts {
    float *base;
    int ranges;

    at_stream_parts(const struct at_launch *launch, int queries)
        : base(reinterpret_cast<float *>(static_cast<char *>(launch->workspace) +
                                         at_schedule_stream::bytes(launch->problem, queries))),
          ranges(at_split_ranges<AT_STREAM_RANGE>(launch->problem->sizes.capacity)) {}
    /* Bytes of the workspace, the scheduler's included; no parts where no row can have two. */
    template <int QUERIES> static int64_t bytes(const struct at_problem *problem) {
        const struct at_sizes *z = &problem->sizes;
        const int64_t ranges = at_split_ranges<AT_STREAM_RANGE>(z->capacity);
        const int64_t parts = ranges > 1 ? z->tokens * z->h * ranges * at_softmax_part(z->d) : 0;
        return at_schedule_stream::bytes(problem, QUERIES) + parts * (int64_t)sizeof(float);
    }
};

/* The epilogue of a piece: range number `range` of the keys of the warp's 16 queries. */
template <int N, class T, class Sum, class Exp>
__device__ void at_stream_store(const at_softmax_view<T> &a, const at_mma_queries<T> &queries,
                                const at_online_rows<Exp> &rows, const Sum (&o)[N], const at_stream_parts &parts,
                                int range) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    if (queries.keys <= AT_STREAM_RANGE) {
        if (range == 0)
            at_softmax_store(a, queries, rows, o);
        return;
    }
    AT_UNROLL
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half;
        const float sum = rows.total(half);
        if (queries.first + row >= queries.end || queries.visible(row) <= range * AT_STREAM_RANGE)
            continue;
        const int token = a.query_start[queries.request] + queries.query(row);
        float *part = at_softmax_part_of(a, token, queries.head, parts.base, parts.ranges, range);
        AT_UNROLL
        for (int i = 0; i < N; i++)
            for (int j = 0; j < 2; j++)
                part[8 * i + 2 * t + j] = o[i][2 * half + j];
        if (t == 0) {
            part[8 * N] = rows.max[half];
            part[8 * N + 1] = sum;
        }
    }
}

/* The last launch, grid (query heads, requests, tiles of 16 queries): joins the parts of rows that have any, a warp for
 * every fourth of them. */
template <class T, class Exp>
static __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    at_stream_join(at_softmax_view<T> a, at_stream_parts parts) {
    const at_mma_queries<T> queries(a, (int)blockIdx.z);
    if (queries.keys <= AT_STREAM_RANGE)
        return;
    for (int row = (int)threadIdx.x / 32; row < AT_MMA_ROWS; row += AT_DECODE_THREADS / 32) {
        if (queries.first + row >= queries.end)
            return;
        const int token = a.query_start[queries.request] + queries.query(row), seen = queries.visible(row);
        const at_softmax_query<T> query(a, queries.head, queries.request, token, seen);
        at_softmax_join<Exp>(query, at_softmax_part_of(a, token, queries.head, parts.base, parts.ranges, 0),
                             at_split_ranges<AT_STREAM_RANGE>(seen), at_lane(), 32);
    }
}

/* The scheduler's launch, the blocks' by launch_blocks(work, parts, blocks), the join's. `most`: blocks at once. */
template <class T, class Exp = at_softmax_natural, class F>
int at_stream_launch(const struct at_launch *launch, int queries, uint32_t most, F launch_blocks) {
    const struct at_problem *problem = launch->problem;
    const at_mma_work work(launch, queries);
    const at_stream_parts parts(launch, queries);
    const auto view = at_softmax_view<T>::of(problem);
    if (work.items == 0)
        return 0;
    const int64_t pieces = at_schedule_stream::most(problem, work);
    int code = at_schedule_stream::prepare(launch, work, view);
    code = code ? code : launch_blocks(work, parts, pieces < most ? (uint32_t)pieces : most);
    if (code || parts.ranges <= 1)
        return code;
    return at_launch(at_stream_join<T, Exp>, at_mma_grid(&problem->sizes, AT_MMA_ROWS), dim3{ AT_DECODE_THREADS, 1, 1 },
                     0, launch->stream, view, parts);
}

#endif
