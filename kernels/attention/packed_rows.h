/* Attention of few queries on mma.sync: all query heads of a kv head in one tile, keys in ranges, tiles by cp.async.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a request and a kv head are its queries times the query heads of the group: row query * group + n is the
 * n-th head of that query, so that K and V are read once for all of them. A warp has 16 rows, a block 64 rows and one
 * range of keys, whose tiles its warps share; warps without a row only copy. A second launch joins, for each token and
 * query head, what the ranges left.
 *
 * A grid is (kv heads times blocks of 64 rows, requests, ranges that the longest request can have): blocks of the same
 * keys lie side by side, so that those behind the first find K and V in L2. The lengths at the launch decide nothing: a
 * captured graph keeps its grid. */
#ifndef AT_PACKED_ROWS_H
#define AT_PACKED_ROWS_H

#include "kernels/attention/attention_mma.h"
#include "kernels/attention/decode.h"

constexpr int AT_PACKED_WARPS = 4, AT_PACKED_THREADS = 32 * AT_PACKED_WARPS;
constexpr int AT_PACKED_BLOCK = AT_PACKED_WARPS * AT_MMA_ROWS; /* rows */
constexpr int AT_PACKED_QUERIES = 16, AT_PACKED_GROUP = 16;    /* most of a request, and of a kv head */

/* Keys of a range. With 8 kv heads, 132 multiprocessors have a block each from 17 thousand keys on, and 131072 keys make
 * 1024 blocks, almost four rounds of two a multiprocessor. What 64 rows leave of a range, to be written and read once
 * more, is a sixteenth of its K and V; half the range would double that, twice the range leave half the GPU idle at 17
 * thousand keys. */
constexpr int AT_PACKED_RANGE = 1024;

/* The 16 rows of a warp from `first` on. Rows past the last one repeat it and are not stored. */
template <class T> struct at_packed_rows {
    const at_attention_view<T> &a;
    int request, kv_head, first;
    int group, queries, end; /* heads of a kv head; queries and rows of the request */
    int all;                 /* keys of the request */
    int least, keys;         /* what the first and the last of the rows see; 0: there is none */

    __device__ at_packed_rows(const at_attention_view<T> &view, int of_request, int of_kv_head, int tile)
        : a(view), request(of_request), kv_head(of_kv_head), first(tile * AT_MMA_ROWS), group(view.h / view.hk),
          queries(view.query_start[request + 1] - view.query_start[request]), end(queries * group),
          all(view.seq_lens[request]), least(first < end ? visible(0) : 0),
          keys(first < end ? visible(AT_MMA_ROWS - 1) : 0) {}

    __device__ bool has(int row) const { return first + row < end; }
    __device__ int number(int row) const { return has(row) ? first + row : end - 1; }
    __device__ int query(int row) const { return number(row) / group; }
    __device__ int head(int row) const { return kv_head * group + number(row) % group; }
    __device__ int token(int row) const { return a.query_start[request] + query(row); }
    __device__ int visible(int row) const {
        const int hidden = a.causal ? queries - 1 - query(row) : 0;
        return hidden < all ? all - hidden : 0;
    }
    __device__ int64_t element(int row) const { return ((int64_t)token(row) * a.h + head(row)) * a.d; }
};

/* The rows of a block, 16 for each warp, and its range of keys. */
template <class T> struct at_packed_block {
    const int warp, begin; /* the first key of the range */
    const int kv_head, tile;
    const at_packed_rows<T> rows; /* of this warp */
    const int keys;               /* the end of the range's keys that some row of the block sees */

    __device__ explicit at_packed_block(const at_attention_view<T> &view)
        : warp((int)threadIdx.x / 32), begin((int)blockIdx.z * AT_PACKED_RANGE),
          kv_head((int)blockIdx.x / ((int)gridDim.x / view.hk)), tile((int)blockIdx.x % ((int)gridDim.x / view.hk)),
          rows(view, (int)blockIdx.y, kv_head, tile * AT_PACKED_WARPS + warp), keys(seen(view)) {}

    /* The request has no row for the block, or its rows see no key of the range. */
    __device__ bool empty() const { return tile * AT_PACKED_BLOCK >= rows.end || begin >= keys; }

  private:
    __device__ int seen(const at_attention_view<T> &view) const {
        const int last = tile * AT_PACKED_WARPS + AT_PACKED_WARPS - 1;
        const int all = at_packed_rows<T>(view, rows.request, kv_head, last).visible(AT_MMA_ROWS - 1);
        return all < begin + AT_PACKED_RANGE ? all : begin + AT_PACKED_RANGE;
    }
};

/* Shared memory for STAGES tiles of KEYS keys, K and V of each. */
template <class T, int D, int KEYS, int STAGES> struct at_packed_ring {
    static constexpr int TILE = KEYS * AT_MMA_STRIDE<D>; /* elements of K, or of V */
    static constexpr int64_t BYTES = 2 * STAGES * TILE * (int64_t)sizeof(T);
    T *memory;

    __device__ T *k(int stage) const { return memory + 2 * stage * TILE; }
    __device__ T *v(int stage) const { return k(stage) + TILE; }
    /* Issues this thread's copies of the tile from `begin` on, as one group; an empty one past the block's last key, so
     * that a wait counts tiles. */
    __device__ __forceinline__ void copy(const at_packed_block<T> &block, int begin, int stage) const {
        const at_packed_rows<T> &rows = block.rows;
        const auto put = [to_k = k(stage), to_v = v(stage), k = rows.a.k, v = rows.a.v](int to, int64_t from) {
            if (from >= 0) {
                at_copy_async<16>(to_k + to, k + from);
                at_copy_async<16>(to_v + to, v + from);
            }
            for (int i = 0; from < 0 && i < 8; i += 2) {
                at_store32(to_k + to + i, 0);
                at_store32(to_v + to + i, 0);
            }
        };
        if (begin < block.keys)
            at_mma_each_16_bytes<D, KEYS>(rows.a, rows.request, rows.kv_head, begin, block.keys, (int)threadIdx.x,
                                          AT_PACKED_THREADS, put);
        at_copy_commit();
    }
};

/* Reasons to decline other than the format of activations: the workspace grows with the queries. */
static inline const char *at_packed_declines(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    if (z->max_sq > AT_PACKED_QUERIES)
        return "more than 16 queries a request";
    return z->h / z->hk > AT_PACKED_GROUP ? "more than 16 query heads a kv head" : at_mma_declines(problem);
}

/* Bytes for `floats` floats of each token, query head and range that a request's pages hold. */
static inline int64_t at_packed_workspace(const struct at_sizes *z, int64_t floats) {
    return z->tokens * z->h * at_split_ranges<AT_PACKED_RANGE>(z->capacity) * floats * (int64_t)sizeof(float);
}

/* Launches a kernel for the ranges, then, on grid (query heads, requests, queries of the longest request), the one that
 * joins what they left. */
template <class View>
int at_packed_launch(const struct at_launch *launch, void (*kernel)(View, float *), int64_t shared,
                     void (*join)(View, float *, int)) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int ranges = at_split_ranges<AT_PACKED_RANGE>(z->capacity);
    const int64_t blocks = (z->max_sq * (z->h / z->hk) + AT_PACKED_BLOCK - 1) / AT_PACKED_BLOCK;
    const dim3 grid{ (unsigned)(z->hk * blocks), (unsigned)z->b, (unsigned)ranges };
    const dim3 rows{ (unsigned)z->h, (unsigned)z->b, (unsigned)z->max_sq };
    const auto view = View::of(launch->problem);
    float *workspace = static_cast<float *>(launch->workspace);
    if (z->tokens == 0)
        return 0;
    const int code =
        ranges ? at_launch(kernel, grid, dim3{ AT_PACKED_THREADS, 1, 1 }, shared, launch->stream, view, workspace) : 0;
    return code ? code
                : at_launch(join, rows, dim3{ AT_DECODE_THREADS, 1, 1 }, 0, launch->stream, view, workspace, ranges);
}

#endif
