/* d = scale * (a b^T) by TMA and wgmma: a ring of stages that one thread loads and two warpgroups multiply, tiles in an
 * order that L2 likes, an epilogue through shared memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile of d has 128 rows and 256 columns. A stage holds the 64 products of a step: 128 rows of a and 256 of b, as many
 * bytes each as a swizzled row of TMA and wgmma has. Its full barrier completes when TMA has written both, its empty
 * barrier when the consumer warps have read them. The ring runs on from one tile to the next: while a tile is
 * stored, the stages of the next are loaded. Elements past m, n or k come from TMA as zeros; what lies past d is not
 * stored. */
#ifndef AT_GEMM_TMA_H
#define AT_GEMM_TMA_H

#include "kernels/device/mma.h"
#include "kernels/device/store_matrix.h"
#include "kernels/device/tma.h"
#include "kernels/device/warp_roles.h"
#include "kernels/gemm/gemm_tile.h"

constexpr int AT_GEMM_RING_ROWS = 128, AT_GEMM_RING_COLUMNS = 256, AT_GEMM_RING_STEP = 64, AT_GEMM_RING_STAGES = 4;
constexpr int AT_GEMM_RING_WIDTH = 2 * AT_GEMM_RING_STEP; /* bytes of a row of a stage */
/* A producer warpgroup, of which one thread works, and two that consume, with 64 rows each. */
constexpr int AT_GEMM_RING_THREADS = 384, AT_GEMM_GROUP_WARPS = 4, AT_GEMM_GROUP_ROWS = 64, AT_GEMM_CONSUMERS = 8;
/* Blocks, one a multiprocessor, work on 8 rows of tiles side by side, which is 1024 rows of a and, with 132 of them, about
 * 4000 of b: their share of a step stays in L2. */
constexpr int AT_GEMM_RING_GROUP = 8;
/* What a warp stages for a store: 16 rows of 64 elements. */
constexpr int AT_GEMM_OUT_ROWS = 16, AT_GEMM_OUT_COLUMNS = 64;

template <class T> struct at_gemm_stage {
    T a[AT_GEMM_RING_ROWS * AT_GEMM_RING_STEP], b[AT_GEMM_RING_COLUMNS * AT_GEMM_RING_STEP];
};

/* Shared memory. Everything but the barriers begins at a multiple of 1024. */
template <class T> struct at_gemm_ring {
    at_gemm_stage<T> stages[AT_GEMM_RING_STAGES];
    uint16_t out[AT_GEMM_CONSUMERS][2][AT_GEMM_OUT_ROWS * AT_GEMM_OUT_COLUMNS];
    at_mbarrier full[AT_GEMM_RING_STAGES], empty[AT_GEMM_RING_STAGES];
};

/* Where a thread is in the ring: a stage, and the parity of the phase that its full barrier completes. */
struct at_gemm_turn {
    int stage = 0;
    uint32_t parity = 0;

    __device__ void next() {
        stage = (stage + 1) % AT_GEMM_RING_STAGES;
        parity ^= stage == 0;
    }
};

/* ---- tiles ---- */

/* The first row and column of a tile. */
struct at_gemm_place {
    int row, column;
};

static inline __host__ __device__ int at_gemm_tall(int m) { return (m + AT_GEMM_RING_ROWS - 1) / AT_GEMM_RING_ROWS; }
static inline __host__ __device__ int at_gemm_wide(int n) {
    return (n + AT_GEMM_RING_COLUMNS - 1) / AT_GEMM_RING_COLUMNS;
}

/* Tile number `tile`: groups of 8 rows of tiles, one below the other; in a group down the rows first. */
static inline __device__ at_gemm_place at_gemm_place_of(int tile, int m, int n) {
    const int wide = at_gemm_wide(n), first = tile / (AT_GEMM_RING_GROUP * wide) * AT_GEMM_RING_GROUP;
    const int below = at_gemm_tall(m) - first, rows = below < AT_GEMM_RING_GROUP ? below : AT_GEMM_RING_GROUP;
    const int within = tile % (AT_GEMM_RING_GROUP * wide);
    return { (first + within % rows) * AT_GEMM_RING_ROWS, within / rows * AT_GEMM_RING_COLUMNS };
}

/* ---- the roles ---- */

/* Whether a consumer warpgroup has rows in no tile: then the other empties a stage alone. */
static inline __device__ bool at_gemm_ring_idle(int group, int m) { return group * AT_GEMM_GROUP_ROWS >= m; }

/* Initialises the barriers; ends with a barrier of the block. */
template <class T> __device__ void at_gemm_ring_begin(at_gemm_ring<T> &ring, int m) {
    const int consumers = at_gemm_ring_idle(1, m) ? AT_GEMM_GROUP_WARPS : AT_GEMM_CONSUMERS; /* warps */
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < AT_GEMM_RING_STAGES; stage++) {
            at_mbarrier_init(&ring.full[stage], 1);
            at_mbarrier_init(&ring.empty[stage], (uint32_t)consumers);
        }
        at_proxy_fence(); /* TMA uses the barriers, too */
    }
    at_sync();
}

/* The producer, one thread: loads the steps of a tile, each as soon as its stage has been emptied. */
template <class T>
__device__ void at_gemm_ring_load(at_gemm_ring<T> &ring, at_gemm_turn &turn, const at_tensor_map &a,
                                  const at_tensor_map &b, const at_gemm_place &place, int k) {
    for (int begin = 0; begin < k; begin += AT_GEMM_RING_STEP, turn.next()) {
        at_gemm_stage<T> &stage = ring.stages[turn.stage];
        at_mbarrier *full = &ring.full[turn.stage];
        at_mbarrier_wait(&ring.empty[turn.stage], turn.parity ^ 1);
        at_mbarrier_arrive_expect(full, (uint32_t)sizeof stage);
        at_tensor_load(stage.a, a, { begin, place.row }, full);
        at_tensor_load(stage.b, b, { begin, place.column }, full);
    }
}

/* A consumer warpgroup issues the products of a stage, 16 an instruction: its 64 rows by all columns. */
template <class T, class D>
__device__ __forceinline__ void at_gemm_ring_multiply(const at_gemm_stage<T> &stage, int group, D &sums) {
    const T *a = stage.a + group * AT_GEMM_GROUP_ROWS * AT_GEMM_RING_STEP;
    AT_UNROLL
    for (int byte = 0; byte < AT_GEMM_RING_WIDTH; byte += 32)
        at_wgmma(sums, at_matrix::swizzled<AT_GEMM_RING_WIDTH>(a, 8 * AT_GEMM_RING_WIDTH).moved(byte),
                 at_matrix::swizzled<AT_GEMM_RING_WIDTH>(stage.b, 8 * AT_GEMM_RING_WIDTH).moved(byte), T{}, T{});
}

/* Gives a stage back: the warp has waited for the products that read it. */
static inline __device__ void at_gemm_ring_release(at_mbarrier *empty) {
    if (at_lane() == 0)
        at_mbarrier_arrive(empty);
}

/* ---- epilogue ---- */

/* Two neighbours of d in its format. */
template <class Out, class Sum> __device__ uint32_t at_gemm_pair(float scale, const Sum &sum, int j) {
    return at_pack<Out>(scale * at_gemm_sum(sum, j), scale * at_gemm_sum(sum, j + 1));
}

/* Stores the 16 rows of a warp from `place` on, 64 columns a time: fragments to swizzled rows by stmatrix, from there by
 * TMA. Two buffers a warp: one is filled while the other is read. */
template <class Out, class Sum, int N>
__device__ void at_gemm_ring_store(uint16_t (&buffers)[2][AT_GEMM_OUT_ROWS * AT_GEMM_OUT_COLUMNS],
                                   const at_tensor_map &d, const at_gemm_place &place, float scale,
                                   const Sum (&sums)[N]) {
    constexpr int EACH = AT_GEMM_OUT_COLUMNS / 8;
    const int row = at_lane() % 16, chunk = at_lane() / 16; /* of the four matrices that an instruction stores */
    AT_UNROLL
    for (int part = 0; part < N / EACH; part++) {
        uint16_t *to = buffers[part % 2];
        if (at_lane() == 0)
            at_bulk_wait_read<1>();
        at_sync_warp();
        AT_UNROLL
        for (int i = 0; i < EACH; i += 2) {
            const Sum &left = sums[EACH * part + i], &right = sums[EACH * part + i + 1];
            const uint32_t r[4] = { at_gemm_pair<Out>(scale, left, 0), at_gemm_pair<Out>(scale, left, 2),
                                    at_gemm_pair<Out>(scale, right, 0), at_gemm_pair<Out>(scale, right, 2) };
            at_stmatrix_x4(to + at_swizzle<128>(row * 128 + (i + chunk) * 16) / 2, r);
        }
        at_proxy_fence();
        at_sync_warp();
        if (at_lane() == 0) {
            at_tensor_store(d, { place.column + AT_GEMM_OUT_COLUMNS * part, place.row }, to);
            at_bulk_commit();
        }
    }
}

/* ---- the launch ---- */

/* `rows` contiguous rows of `columns` elements of 16 bits, copied in boxes of 128 bytes. */
static inline at_tensor_box at_gemm_box(const void *base, int64_t rows, int64_t columns, int box_rows) {
    return { .base = base,
             .rank = 2,
             .element_bytes = 2,
             .size = { columns, rows },
             .stride = { 0, 2 * columns },
             .box = { AT_GEMM_RING_WIDTH / 2, box_rows },
             .swizzle = AT_GEMM_RING_WIDTH };
}

/* Whether TMA can store d: 16 bits an element, rows of a multiple of 16 bytes. */
template <class T> bool at_gemm_stored_by_tma(const at_gemm_view<T> &v) { return v.out != AT_F32 && v.n % 8 == 0; }

/* Launches as many blocks as there are tiles, but no more than multiprocessors. */
template <class T>
int at_gemm_ring_launch(const struct at_launch *launch,
                        void (*kernel)(at_gemm_view<T>, at_tensor_map, at_tensor_map, at_tensor_map)) {
    const at_gemm_view<T> v = at_gemm_view<T>::of(launch->problem);
    const int64_t tiles = (int64_t)at_gemm_tall(v.m) * at_gemm_wide(v.n);
    const dim3 grid{ tiles < at_multiprocessors() ? (unsigned)tiles : at_multiprocessors(), 1, 1 };
    at_tensor_map a{}, b{}, d{};
    if (tiles == 0)
        return 0;
    const at_tensor_box boxes[3] = { at_gemm_box(v.a, v.m, v.k, AT_GEMM_RING_ROWS),
                                     at_gemm_box(v.b, v.n, v.k, AT_GEMM_RING_COLUMNS),
                                     at_gemm_box(v.d, v.m, v.n, AT_GEMM_OUT_ROWS) };
    int code = at_tensor_map_encode(&a, &boxes[0]);
    code = code ? code : at_tensor_map_encode(&b, &boxes[1]);
    if (at_gemm_stored_by_tma(v))
        code = code ? code : at_tensor_map_encode(&d, &boxes[2]);
    if (code)
        return code;
    return at_launch(kernel, grid, dim3{ AT_GEMM_RING_THREADS, 1, 1 }, (int64_t)sizeof(at_gemm_ring<T>), launch->stream,
                     v, a, b, d);
}

/* Reasons to decline other than the format of the factors. */
static inline const char *at_gemm_ring_declines(const struct at_problem *p) {
    const struct at_gemm_own z = at_gemm_own_of(p);
    if (!at_gemm_is_plain(p))
        return "tiles leave by TMA with one scale, and without bias and maximum";
    if (z.k % 8 || z.k == 0)
        return "rows of the factors are empty or no multiple of 16 bytes, which a tensor map wants";
    return at_gemm_declines(p);
}

#endif
