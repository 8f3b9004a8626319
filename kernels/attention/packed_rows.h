/* Attention of few queries on mma.sync: all query heads of a kv head in one tile, keys in ranges, tiles by cp.async.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a request and a kv head are its queries times the query heads of the group: row query * group + n is the
 * n-th head of that query, so that K and V are read once for all of them. A warp has 16 rows; a block has one range of
 * keys and as many warps as the longest request has rows for, at most four, which share its tiles. Fewer rows make smaller
 * blocks rather than idle warps: a multiprocessor has room for more of them, and each of its quarters for a warp that
 * multiplies. A second launch joins, for each token and query head, what the ranges left.
 *
 * A grid is (kv heads times blocks of rows, requests, ranges that the longest request can have): blocks of the same
 * keys lie side by side, so that those behind the first find K and V in L2. The lengths at the launch decide nothing: a
 * captured graph keeps its grid. */
#ifndef AT_PACKED_ROWS_H
#define AT_PACKED_ROWS_H

#include "kernels/attention/attention_mma.h"
#include "kernels/attention/decode.h"

constexpr int AT_PACKED_FEWEST = 2, AT_PACKED_WARPS = 4; /* warps of a block: for up to 32 rows, for more */
constexpr int AT_PACKED_THREADS = 32 * AT_PACKED_WARPS;
constexpr int AT_PACKED_QUERIES = 16, AT_PACKED_GROUP = 16; /* most of a request, and of a kv head */

/* Keys of a range. With 8 kv heads, 132 multiprocessors have a block each from 17 thousand keys on, and 131072 keys make
 * 1024 blocks, two rounds of four a multiprocessor, or three of three. What 64 rows leave of a range, to be written and read
 * once more, is a sixteenth of its K and V; half the range would double that, twice the range leave half the GPU idle at 17
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
    const int warp, warps, begin; /* begin: the first key of the range */
    const int kv_head, tile;
    const at_packed_rows<T> rows; /* of this warp */
    const int keys;               /* the end of the range's keys that some row of the block sees */

    __device__ explicit at_packed_block(const at_attention_view<T> &view)
        : warp((int)threadIdx.x / 32), warps((int)blockDim.x / 32), begin((int)blockIdx.z * AT_PACKED_RANGE),
          kv_head((int)blockIdx.x / ((int)gridDim.x / view.hk)), tile((int)blockIdx.x % ((int)gridDim.x / view.hk)),
          rows(view, (int)blockIdx.y, kv_head, tile * warps + warp), keys(seen(view)) {}

    /* The request has no row for the block, or its rows see no key of the range. */
    __device__ bool empty() const { return tile * warps * AT_MMA_ROWS >= rows.end || begin >= keys; }

  private:
    __device__ int seen(const at_attention_view<T> &view) const {
        const int last = tile * warps + warps - 1;
        const int all = at_packed_rows<T>(view, rows.request, kv_head, last).visible(AT_MMA_ROWS - 1);
        return all < begin + AT_PACKED_RANGE ? all : begin + AT_PACKED_RANGE;
    }
};

/* Where a tile of KEYS keys lies: a lane has the first elements, in k and in v, of keys `lane`, `lane + 32` and so on; -1 past
 * the block's last key. Looked up a tile ahead, so that no copy waits for the table of pages. */
template <int KEYS> struct at_packed_places {
    static_assert(KEYS % 32 == 0, "lanes have as many keys each");
    int64_t first[KEYS / 32];

    template <class T> __device__ static at_packed_places of(const at_packed_block<T> &block, int begin) {
        const at_packed_rows<T> &rows = block.rows;
        at_packed_places places;
        AT_UNROLL
        for (int i = 0; i < KEYS / 32; i++) {
            const int t = begin + 32 * i + at_lane();
            places.first[i] = t < block.keys ? rows.a.key(rows.request, t, rows.kv_head) : -1;
        }
        return places;
    }
    /* Of key 32 i + row of the tile; by a whole warp, row from 0 to 31 a lane's own. */
    __device__ int64_t of(int i, int row) const {
        const uint32_t low = at_shuffle(0xffffffffu, (uint32_t)first[i], row);
        const uint32_t high = at_shuffle(0xffffffffu, (uint32_t)(first[i] >> 32), row);
        return (int64_t)((uint64_t)high << 32 | low);
    }
};

/* Shared memory for STAGES tiles of KEYS keys, K and V of each. */
template <class T, int D, int KEYS, int STAGES> struct at_packed_ring {
    static constexpr int TILE = KEYS * AT_MMA_STRIDE<D>; /* elements of K, or of V */
    static constexpr int64_t BYTES = 2 * STAGES * TILE * (int64_t)sizeof(T);
    T *memory;

    __device__ T *k(int stage) const { return memory + 2 * stage * TILE; }
    __device__ T *v(int stage) const { return k(stage) + TILE; }
    /* Issues this thread's copies of a tile, as one group; an empty one past the block's last key, so that a wait counts
     * tiles. */
    __device__ __forceinline__ void copy(const at_packed_block<T> &block, const at_packed_places<KEYS> &places,
                                         int begin, int stage) const {
        if (begin + KEYS > block.keys)
            copy_end(block, places, begin, stage);
        else if (block.warps == AT_PACKED_FEWEST)
            copy_whole<AT_PACKED_FEWEST>(block, places, stage);
        else
            copy_whole<AT_PACKED_WARPS>(block, places, stage);
        at_copy_commit();
    }

  private:
    static constexpr int PARTS = D / 8, EACH = 32 * PARTS; /* 16 bytes each: of a key, of 32 keys */

    __device__ __forceinline__ void put(const at_packed_block<T> &block, int stage, int to, int64_t from) const {
        at_copy_async<16>(k(stage) + to, block.rows.a.k + from);
        at_copy_async<16>(v(stage) + to, block.rows.a.v + from);
    }
    /* By so many warps: with their number known little is left of a step but shuffles, additions and copies. A loop that does not
     * know it takes more instructions than all products of the tile; all of it unrolled, its addresses take the registers. */
    template <int WARPS>
    __device__ __forceinline__ void copy_whole(const at_packed_block<T> &block, const at_packed_places<KEYS> &places,
                                               int stage) const {
        constexpr int TOGETHER = EACH / (32 * WARPS) % 4 == 0 ? 4 : EACH / (32 * WARPS);
        AT_UNROLL
        for (int keys = 0; keys < KEYS; keys += 32)
            AT_NO_UNROLL
        for (int first = (int)threadIdx.x; first < EACH; first += 32 * WARPS * TOGETHER)
            AT_UNROLL
        for (int i = 0; i < TOGETHER; i++) {
            const int part = first + 32 * WARPS * i, row = part / PARTS, channel = part % PARTS * 8;
            put(block, stage, (keys + row) * AT_MMA_STRIDE<D> + channel, places.of(keys / 32, row) + channel);
        }
    }
    /* The tile with the block's last key, zeros behind it; nothing past it. */
    __device__ __forceinline__ void copy_end(const at_packed_block<T> &block, const at_packed_places<KEYS> &places,
                                             int begin, int stage) const {
        AT_UNROLL
        for (int keys = 0; keys < KEYS; keys += 32)
            AT_NO_UNROLL
        for (int part = (int)threadIdx.x; part < EACH && begin < block.keys; part += 32 * block.warps) {
            const int row = part / PARTS, channel = part % PARTS * 8;
            const int to = (keys + row) * AT_MMA_STRIDE<D> + channel;
            const int64_t from = places.of(keys / 32, row);
            if (from >= 0)
                put(block, stage, to, from + channel);
            for (int n = 0; from < 0 && n < 8; n += 2) {
                at_store32(k(stage) + to + n, 0);
                at_store32(v(stage) + to + n, 0);
            }
        }
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

/* Warps of a block. */
static inline int at_packed_warps(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->max_sq * (z->h / z->hk) > AT_PACKED_FEWEST * AT_MMA_ROWS ? AT_PACKED_WARPS : AT_PACKED_FEWEST;
}

/* Launches a kernel for the ranges, then, on grid (query heads, requests, queries of the longest request), the one that
 * joins what they left. */
template <class View>
int at_packed_launch(const struct at_launch *launch, void (*kernel)(View, float *), int64_t shared,
                     void (*join)(View, float *, int)) {
    const struct at_sizes *z = &launch->problem->sizes;
    const int ranges = at_split_ranges<AT_PACKED_RANGE>(z->capacity);
    const int warps = at_packed_warps(launch->problem), block = warps * AT_MMA_ROWS;
    const int64_t blocks = (z->max_sq * (z->h / z->hk) + block - 1) / block;
    const dim3 grid{ (unsigned)(z->hk * blocks), (unsigned)z->b, (unsigned)ranges };
    const dim3 rows{ (unsigned)z->h, (unsigned)z->b, (unsigned)z->max_sq };
    const auto view = View::of(launch->problem);
    float *workspace = static_cast<float *>(launch->workspace);
    if (z->tokens == 0)
        return 0;
    const int code =
        ranges ? at_launch(kernel, grid, dim3{ 32 * (unsigned)warps, 1, 1 }, shared, launch->stream, view, workspace)
               : 0;
    return code ? code
                : at_launch(join, rows, dim3{ AT_DECODE_THREADS, 1, 1 }, 0, launch->stream, view, workspace, ranges);
}

#endif
