/* Decode by warps that own keys: what kernels of every operator are composed of.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A row's keys are cut into 32 or 256 ranges of one length, a multiple of 8 (at_partial_keys). Half of a warp owns a
 * run of neighbouring ranges. A step is 8 keys of each half: their 16 rows of K are the rows of one m16n8k16, the query
 * heads of a kv head its columns, so that up to 8 heads cost the same. Rows g and g + 8 of the operand are keys
 * g % 4 and 4 + g % 4 of half g / 4: so a lane has to do with the keys of its own half alone, from K to V. Rows of V
 * are loaded 16 bytes a lane and added in ascending order; at the end of a range its sums go to shared memory, where they
 * are joined in the order of the ranges. Nothing before that goes through shared memory, and no warp waits for another.
 *
 * Contraction: lane 4 g + t holds 8 neighbouring channels of row g, 32 i + 8 t on, by one load of 16 bytes, of which k-step
 * 2 i takes the first four and 2 i + 1 the others (qk_run = 8). q is laid out the same way.
 *
 * Pages hold a multiple of 8 keys: a step of a half lies in one page. */
#ifndef AT_WARP_PAGES_H
#define AT_WARP_PAGES_H

#include "kernels/attention/attention.h"
#include "kernels/device/dependent.h"
#include "kernels/device/instances.h"
#include "kernels/device/mma.h"

constexpr int AT_PAGES_STEP = 8, AT_PAGES_EACH = 8; /* keys of a half a step, elements of a load */

/* How the ranges of a row are dealt out: `cluster` blocks, in each half of a warp `each` ranges. */
struct at_pages_shape {
    int warps, cluster, each;
    int log_cluster; /* cluster = 2 ^ log_cluster */
    int group;       /* query heads of a kv head */
    int heads;       /* those of a block at most */
    int parts;       /* blocks or clusters that share them */
    int log_ranges;  /* a row is cut into up to 2 ^ log_ranges ranges */
    int most;        /* so many of them have keys at most */
    int early;       /* the kernel may begin while the one before it ends */
    int64_t bytes;   /* shared memory of a block */
    int range; /* keys of a range of the longest request there may be: a first guess at where the keys of a warp begin */
};

/* Keys of a range of a row of so many, at least a step's. */
static inline __host__ __device__ int at_pages_range(int keys, int log_ranges) {
    const int shares = (keys + (AT_PAGES_STEP << log_ranges) - 1) >> log_ranges; /* below by less than a step */
    return keys > AT_PAGES_STEP << log_ranges ? shares / AT_PAGES_STEP * AT_PAGES_STEP : AT_PAGES_STEP;
}

/* Query heads of a block, of so many that share a kv head. Four and four with d 256, for want of registers. */
static inline constexpr int at_pages_heads(int d, int64_t group) {
    return group <= 1 ? 1 : group <= 2 ? 2 : group <= 4 || d > 128 ? 4 : 8;
}

/* Threads of a block at most, and so the registers of a thread: 128 or 255. */
static inline constexpr int at_pages_threads(int d, int heads) { return d <= 128 && heads <= 2 ? 512 : 256; }

/* Pieces of 8 channels of a row of V; those of a lane. */
template <int D> constexpr int AT_PAGES_PIECES = D / AT_PAGES_EACH;
template <int D> constexpr int AT_PAGES_OF_LANE = (AT_PAGES_PIECES<D> + 15) / 16;

/* A lane's place in its warp. */
struct at_pages_lane {
    int g, t, half, within; /* row and column of fragments; which half, and where in it */
    __device__ at_pages_lane() : g(at_lane() / 4), t(at_lane() % 4), half(at_lane() / 16), within(at_lane() % 16) {}
};

/* The query heads of a block, up to HEADS of a kv head, and their ranges. Grid (cluster, groups of heads, requests). */
template <class T, int HEADS> struct at_pages_block {
    int request, kv_head, head, heads; /* the first head, and how many */
    int token, keys, range;            /* range: keys of one */

    __device__ at_pages_block(const at_attention_view<T> &a, const at_pages_shape &shape) {
        request = (int)blockIdx.z;
        kv_head = (int)blockIdx.y;
        int first = 0;
        if (shape.parts > 1) { /* a division takes as long as a load */
            kv_head = (int)blockIdx.y / shape.parts;
            first = ((int)blockIdx.y - kv_head * shape.parts) * HEADS;
        }
        head = kv_head * shape.group + first;
        heads = shape.group - first < HEADS ? shape.group - first : HEADS;
        token = a.query_start[request];
        keys = a.seq_lens[request];
        if (a.query_start[request + 1] == token)
            keys = -1;
        range = at_pages_range(keys, shape.log_ranges);
    }
    /* The request has no query. */
    __device__ bool absent() const { return keys < 0; }
    /* Those that have keys. */
    __device__ int ranges() const { return keys > 0 ? (keys + range - 1) / range : 0; }
    __device__ const T *q(const at_attention_view<T> &a, int i) const {
        return a.q + ((int64_t)token * a.h + head + i) * a.d;
    }
};

/* The heads' queries as columns of b; columns that have no head are zeros. */
template <int D> struct at_pages_q {
    uint32_t x[D / 32][4];

    template <class T, int HEADS>
    __device__ at_pages_q(const at_attention_view<T> &a, const at_pages_block<T, HEADS> &block,
                          const at_pages_lane &lane) {
        const bool has = lane.g < block.heads;
        const T *from = block.q(a, has ? lane.g : 0) + AT_PAGES_EACH * lane.t;
        AT_UNROLL
        for (int i = 0; i < D / 32; i++) {
            at_load16(reinterpret_cast<const uint32_t *>(from + 32 * i), x[i]);
            AT_UNROLL
            for (int r = 0; r < 4; r++)
                x[i][r] = has ? x[i][r] : 0;
        }
    }
};

/* 8 rows of K of each half, of which a lane has its parts of keys g % 4 and 4 + g % 4 of its half. */
template <int D> struct at_pages_k {
    uint32_t x[2][D / 32][4];

    /* From a lane's first channels of a key on. */
    template <class T> __device__ void load(int row, const T *from) {
        AT_UNROLL
        for (int i = 0; i < D / 32; i++)
            at_load16_once(reinterpret_cast<const uint32_t *>(from + 32 * i), x[row][i]);
    }
    /* Row 1 in the place of row 0. */
    __device__ void repeat() {
        AT_UNROLL
        for (int i = 0; i < D / 32; i++) {
            AT_UNROLL
            for (int r = 0; r < 4; r++)
                x[0][i][r] = x[1][i][r];
        }
    }
    template <class T> __device__ at_sum_f32 dots(const at_pages_q<D> &q) const {
        at_sum_f32 sum;
        AT_UNROLL
        for (int i = 0; i < D / 32; i++) {
            AT_UNROLL
            for (int s = 0; s < 4; s += 2)
                sum.add<T>({ x[0][i][s], x[1][i][s], x[0][i][s + 1], x[1][i][s + 1] }, { q.x[i][s], q.x[i][s + 1] });
        }
        return sum;
    }
};

/* The number of the page in which key t lies; anything where the table has none. */
template <class T> __device__ int at_pages_page(const at_attention_view<T> &a, int request, int t) {
    const int column = a.page_of(t);
    return t >= 0 && column < a.row_stride ? a.rows[request * a.row_stride + column] : 0;
}

/* Rows of V of the 8 keys of a half, 16 bytes a lane and piece. In the place of a row that nobody wants `instead` is read,
 * a row that is in the cache: a load that depends on a condition would hold its registers all the time. */
template <class T, int D> struct at_pages_v {
    static constexpr int OF_LANE = AT_PAGES_OF_LANE<D>;
    uint32_t x[AT_PAGES_STEP][OF_LANE][AT_PAGES_EACH / 2];

    /* A lane's first channel of a row; a short row has no piece for every lane. */
    static __device__ int channel(const at_pages_lane &lane) {
        return (lane.within < AT_PAGES_PIECES<D> ? lane.within : 0) * AT_PAGES_EACH;
    }
    /* row, instead: from the lane's first channel on. */
    template <class Live> __device__ void load(const T *row, int step, const T *instead, Live is_live) {
        AT_UNROLL
        for (int i = 0; i < AT_PAGES_STEP; i++, row += step) {
            const T *from = is_live(i) ? row : instead;
            AT_UNROLL
            for (int c = 0; c < OF_LANE; c++)
                at_load16_once(reinterpret_cast<const uint32_t *>(from + 16 * AT_PAGES_EACH * c), x[i][c]);
        }
    }
};

/* What a lane makes weights of: COUNT of the products of its half's 8 keys with the block's heads. A lane's fragment has
 * columns 2 t and 2 t + 1 of two keys; up to four heads leave half or more of the columns empty, and then the four
 * lanes of a row share what there is. */
template <int HEADS> struct at_pages_share {
    static constexpr int COUNT = HEADS <= 2 ? 1 : HEADS <= 4 ? 2 : 4;

    /* Which of the 8 keys, and which head. */
    static __device__ int key(const at_pages_lane &lane, int i) {
        return lane.g % 4 + 4 * (COUNT == 4 ? i / 2 : lane.t / 2);
    }
    static __device__ int head(const at_pages_lane &lane, int i) {
        return COUNT == 1 ? lane.t % 2 : COUNT == 2 ? lane.t % 2 * 2 + i : 2 * lane.t + i % 2;
    }
    /* Takes the lane's share out of fragments. */
    static __device__ void take(const at_sum_f32 &from, const at_pages_lane &lane, float (&x)[COUNT]) {
        AT_UNROLL
        for (int i = 0; i < COUNT; i++) {
            x[i] = from[i];
            if constexpr (COUNT == 1) {
                x[i] = at_shuffle(0xffffffffu, from[0], 4 * lane.g);
                AT_UNROLL
                for (int t = 1; t < 4; t++) {
                    const float other = at_shuffle(0xffffffffu, from[t], 4 * lane.g);
                    x[i] = lane.t == t ? other : x[i];
                }
            }
            if constexpr (COUNT == 2) {
                const float first = at_shuffle(0xffffffffu, from[i], 4 * lane.g + lane.t % 2),
                            second = at_shuffle(0xffffffffu, from[2 + i], 4 * lane.g + lane.t % 2);
                x[i] = lane.t < 2 ? first : second;
            }
        }
    }
    /* Of the shares of the lane's half what belongs to key k and head n. */
    static __device__ float of(const float (&x)[COUNT], int k, int n) {
        const int first = 4 * (k % 4), part = k / 4;
        if (COUNT == 4)
            return at_shuffle(0xffffffffu, x[(2 * part + n % 2) % COUNT], first + n / 2, 16);
        return at_shuffle(0xffffffffu, x[COUNT == 1 ? 0 : n % 2], first + 2 * part + (COUNT == 1 ? n : n / 2), 16);
    }
    /* Whether a weight is not 0, for all keys of the lane's half: 16 bits for keys 0 to 3, two or four a key, and 16 for 4 to 7
     * where a lane has weights of both. */
    static __device__ uint32_t live(const float (&x)[COUNT], const at_pages_lane &lane) {
        const uint32_t first = at_ballot(0xffffffffu, x[0] != 0.0f || x[COUNT == 1 ? 0 : 1] != 0.0f) >> 16 * lane.half;
        if (COUNT < 4)
            return first;
        const uint32_t second = at_ballot(0xffffffffu, x[COUNT / 2] != 0.0f || x[COUNT - 1] != 0.0f) >> 16 * lane.half;
        return (first & 0xffffu) | second << 16;
    }
    static __device__ bool is_live(uint32_t live, int k) {
        return COUNT == 4 ? live >> (4 * (k % 4) + 16 * (k / 4)) & 15u : live >> (4 * (k % 4) + 2 * (k / 4)) & 3u;
    }
};

/* A lane's sums of P V. */
template <int D, int HEADS> struct at_pages_sums {
    static constexpr int OF_LANE = AT_PAGES_OF_LANE<D>;
    float x[HEADS][OF_LANE][AT_PAGES_EACH] = {};

    __device__ void clear() {
        AT_UNROLL
        for (int n = 0; n < HEADS; n++) {
            AT_UNROLL
            for (int c = 0; c < OF_LANE; c++) {
                AT_UNROLL
                for (int e = 0; e < AT_PAGES_EACH; e++)
                    x[n][c][e] = 0.0f;
            }
        }
    }
    __device__ void scale(int n, float factor) {
        AT_UNROLL
        for (int c = 0; c < OF_LANE; c++) {
            AT_UNROLL
            for (int e = 0; e < AT_PAGES_EACH; e++)
                x[n][c][e] *= factor;
        }
    }
    /* Key by key; a weight of 0 leaves a sum alone. */
    template <class T>
    __device__ void add(const float (&weights)[at_pages_share<HEADS>::COUNT], const at_pages_v<T, D> &v) {
        AT_UNROLL
        for (int i = 0; i < AT_PAGES_STEP; i++) {
            float w[HEADS];
            AT_UNROLL
            for (int n = 0; n < HEADS; n++)
                w[n] = at_pages_share<HEADS>::of(weights, i, n);
            AT_UNROLL
            for (int c = 0; c < OF_LANE; c++) {
                float row[AT_PAGES_EACH];
                AT_UNROLL
                for (int e = 0; e < AT_PAGES_EACH; e++)
                    row[e] = at_float(T{ (uint16_t)(v.x[i][c][e / 2] >> 16 * (e % 2)) });
                AT_UNROLL
                for (int n = 0; n < HEADS; n++)
                    at_fma_where(w[n] != 0.0f, w[n], row, x[n][c]);
            }
        }
    }
};

/* Pieces of 8 channels, of all heads, that a block of a cluster joins. */
static inline __host__ __device__ int at_pages_pieces(int d, int heads, int log_cluster) {
    return (heads * (d / AT_PAGES_EACH) + (1 << log_cluster) - 1) >> log_cluster;
}

/* The sums of all ranges in shared memory, [range][piece][8]: piece number p, of all heads, lies in block p % cluster. */
template <int D, int HEADS> struct at_pages_partials {
    float *x;
    int log_cluster, most, pieces; /* pieces of a block */

    __device__ at_pages_partials(float *shared, const at_pages_shape &shape)
        : x(shared), log_cluster(shape.log_cluster), most(shape.most),
          pieces(at_pages_pieces(D, HEADS, shape.log_cluster)) {}

    /* What the kernel has beside the sums. */
    __device__ float *past() const { return x + most * pieces * AT_PAGES_EACH; }

    /* range < 0: it has no keys. */
    __device__ void put(int range, const at_pages_sums<D, HEADS> &sums, const at_pages_lane &lane) const {
        if (range < 0)
            return;
        AT_UNROLL
        for (int n = 0; n < HEADS; n++) {
            AT_UNROLL
            for (int c = 0; c < AT_PAGES_OF_LANE<D>; c++) {
                const int within = lane.within + 16 * c, piece = n * AT_PAGES_PIECES<D> + within;
                if (within >= AT_PAGES_PIECES<D>)
                    continue;
                float *to = x + (range * pieces + (piece >> log_cluster)) * AT_PAGES_EACH;
                if (log_cluster > 0)
                    to = at_cluster_map(to, piece & ((1 << log_cluster) - 1));
                const float *from = sums.x[n][c];
                const float low[4] = { from[0], from[1], from[2], from[3] },
                            high[4] = { from[4], from[5], from[6], from[7] };
                at_store16(to, low);
                at_store16(to + 4, high);
            }
        }
    }
    /* Joins the first `ranges` ranges of `heads` heads in their order, from term(range, head, its sum): put(head, channel,
     * sum), with AT_ONCE terms under way. By all threads of the block. */
    template <int AT_ONCE, class Term, class Put>
    __device__ void join(int ranges, int heads, Term term, Put put) const {
        const int each = pieces * AT_PAGES_EACH;
        for (int i = (int)threadIdx.x; i < each; i += (int)blockDim.x) {
            const int piece = (i / AT_PAGES_EACH << log_cluster) + (int)blockIdx.x, head = piece / AT_PAGES_PIECES<D>;
            if (head >= heads)
                continue;
            float sum = -0.0f; /* so that the first term stays what it is */
            int r = 0;
            AT_NO_UNROLL
            for (; r + AT_ONCE <= ranges; r += AT_ONCE) {
                AT_UNROLL
                for (int n = 0; n < AT_ONCE; n++)
                    sum += term(r + n, head, x[(r + n) * each + i]);
            }
            AT_NO_UNROLL
            for (; r < ranges; r++)
                sum += term(r, head, x[r * each + i]);
            if (ranges == 0)
                sum = 0.0f;
            put(head, piece % AT_PAGES_PIECES<D> * AT_PAGES_EACH + i % AT_PAGES_EACH, sum);
        }
    }
};

/* All sums of a row are where they are joined: a barrier of the block, or of the cluster. */
static inline __device__ void at_pages_meet(const at_pages_shape &shape) {
    if (shape.log_cluster > 0) {
        at_cluster_arrive();
        at_cluster_wait();
    } else {
        at_sync();
    }
}

#endif
