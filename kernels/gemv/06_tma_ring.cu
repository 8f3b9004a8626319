/* A product with weights by rows that W streams through by TMA: each warp has a ring of its own, and a block all of k.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 05_cluster_ring, one thread of a warp issues a copy for 64 rows of 64 bytes, two of them ahead: 64 KiB a
 * block are under way by 16 instructions, and no thread has addresses to compute. A block has 32 columns, so that the
 * sums of k meet in its own shared memory and n = 4096 is a block for nearly every multiprocessor; all blocks walk down
 * the same rows at the same pace, which DRAM likes. Blocks are persistent: the copies of the next tile begin before
 * this one is added up. W is read once, and its lines leave L2 before others.
 *
 * Numerically: as 05: 64 chains of fma, here chain c being warp c / 8 and lanes 4 (c % 8) on; chain c takes eight
 * products from 8 c on, then the eight 512 further on. They are joined in pairs: c and c + 32, then c + 16, ... c + 1.
 * One rounding for the scale, one for the format of y.
 * Launch: at most one block of 256 threads a multiprocessor; 73 KiB of dynamic shared memory for one row of x, 129
 * KiB for eight. Two barriers of the block for each 32 columns; copies are waited for by mbarriers, each of one warp.
 * Limits: f16 or bf16; at most eight rows; n a multiple of 8, k not 0; sm_90, before which a launch traps.
 * Source: ours. */
#include "kernels/device/tma_once.h"
#include "kernels/gemv/gemv.h"

namespace {

constexpr int WARPS = 8, THREADS = 32 * WARPS, EACH = AT_GEMV_VECTOR, ACROSS = 4, COLUMNS = ACROSS * EACH;
constexpr int RUN = AT_GEMV_RUN, DOWN = 32 / ACROSS, ROWS = DOWN * RUN, LANES = WARPS * DOWN, SWEEP = LANES * RUN;
constexpr int AHEAD = 2, BOX = ROWS * COLUMNS; /* boxes that a warp copies ahead, elements of one */

template <class T, int M> struct memory_of {
    T boxes[WARPS][AHEAD][BOX];
    float sums[M][COLUMNS][LANES + 1]; /* odd: lanes that write one chain each of four columns use other banks */
    at_mbarrier full[WARPS][AHEAD];
};

/* The first column and row of a warp's box, and of those after it: down the rows, then over to this block's next tile. */
struct place {
    int column = (int)blockIdx.x * COLUMNS, row = (int)threadIdx.x / 32 * ROWS;

    __device__ void next(int k) {
        row += SWEEP;
        if (row / SWEEP * SWEEP < k)
            return;
        row %= SWEEP;
        column += (int)gridDim.x * COLUMNS;
    }
};

/* One thread of a warp copies its box number i, unless there is none. */
template <class T, int M>
__device__ void copy(memory_of<T, M> &to, const at_gemv_view<T> &v, const at_tensor_map &map, const place &from,
                     int i) {
    const int warp = (int)threadIdx.x / 32;
    if (from.column >= v.n || at_lane() != 0)
        return;
    at_mbarrier_arrive_expect(&to.full[warp][i % AHEAD], (uint32_t)(BOX * sizeof(T)));
    at_tensor_load_once(to.boxes[warp][i % AHEAD], map, { from.column, from.row }, &to.full[warp][i % AHEAD]);
}

/* Adds what this lane has of a box: eight rows from `row` on, of eight columns. Rows past k are zeros in shared memory; a
 * product with one would turn a sum of -0 to +0. */
template <class T, int M>
__device__ __forceinline__ void add(const T *box, int row, int k, const T (&x)[M][RUN], float (&sums)[M][EACH]) {
    AT_UNROLL
    for (int r = 0; r < RUN; r++) {
        T w[EACH];
        at_load16(box + r * COLUMNS, w);
        if (row + r >= k)
            continue;
        AT_UNROLL
        for (int i = 0; i < M; i++) {
            AT_UNROLL
            for (int c = 0; c < EACH; c++)
                sums[i][c] = fmaf(at_float(x[i][r]), at_float(w[c]), sums[i][c]);
        }
    }
}

/* Joins the chains of each column and stores them: those of the warps first. */
template <class T, int M> __device__ void join(const memory_of<T, M> &from, const at_gemv_view<T> &v, int first) {
    const int down = (int)threadIdx.x % DOWN, column = (int)threadIdx.x / DOWN;
    AT_UNROLL
    for (int i = 0; i < M; i++) {
        const float *chains = from.sums[i][column] + down;
        float sum = at_gemv_joined([=](int warp) { return chains[warp * DOWN]; });
        AT_UNROLL
        for (int apart = DOWN / 2; apart > 0; apart /= 2)
            sum += at_shuffle_xor(0xffffffffu, sum, apart);
        if (down == 0)
            v.put(i, first + column, sum);
    }
}

template <class T, int M>
__global__ void __launch_bounds__(THREADS, 1) multiply(at_gemv_view<T> v, const __grid_constant__ at_tensor_map map) {
    using memory_t = memory_of<T, M>;
    AT_SHARED_TILES(memory_t, memory);
    const int warp = (int)threadIdx.x / 32, across = at_lane() % ACROSS, down = at_lane() / ACROSS;
    if (at_lane() == 0) {
        for (int i = 0; i < AHEAD; i++)
            at_mbarrier_init(&memory->full[warp][i], 1);
        at_proxy_fence();
    }
    place here, ahead;
    for (int i = 0; i < AHEAD; i++, ahead.next(v.k))
        copy(*memory, v, map, ahead, i);
    at_sync_warp(); /* nobody but this warp uses its barriers */
    T x[M][RUN];    /* those of the next box are loaded while this one is waited for */
    at_gemv_load_x(v, here.row + down * RUN, x);
    for (int i = 0; here.column < v.n;) {
        const int tile = here.column;
        float sums[M][EACH] = {};
        while (here.column == tile) {
            const int row = here.row + down * RUN;
            T now[M][RUN];
            memcpy(now, x, sizeof now);
            here.next(v.k);
            at_gemv_load_x(v, here.row + down * RUN, x);
            at_mbarrier_wait(&memory->full[warp][i % AHEAD], (uint32_t)(i / AHEAD % 2));
            add<T, M>(memory->boxes[warp][i % AHEAD] + down * RUN * COLUMNS + across * EACH, row, v.k, now, sums);
            at_sync_warp(); /* all lanes have read the box */
            copy(*memory, v, map, ahead, i + AHEAD);
            ahead.next(v.k);
            i++;
        }
        if (tile != (int)blockIdx.x * COLUMNS)
            at_sync(); /* the sums of the tile before have been joined */
        AT_UNROLL
        for (int m = 0; m < M; m++) {
            AT_UNROLL
            for (int c = 0; c < EACH; c++)
                memory->sums[m][across * EACH + c][warp * DOWN + down] = sums[m][c];
        }
        at_sync();
        join(*memory, v, tile);
    }
}

const char *supports(const struct at_problem *p) {
    if (at_gemm_own_of(p).n % EACH || at_gemm_own_of(p).k == 0)
        return "rows of W are no multiple of 16 bytes, or there are none, which a tensor map wants";
    return at_gemv_declines(p);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_gemv_launch(p, [=]<class T, int M>() {
        const at_gemv_view<T> v = at_gemv_view<T>::of(p);
        const at_tensor_box box = { .base = v.w,
                                    .rank = 2,
                                    .element_bytes = 2,
                                    .size = { v.n, v.k },
                                    .stride = { 0, 2 * (int64_t)v.n },
                                    .box = { COLUMNS, ROWS },
                                    .swizzle = 0 };
        const unsigned tiles = at_gemv_pieces(v.n, COLUMNS), most = at_multiprocessors();
        at_tensor_map map{};
        const int code = at_tensor_map_encode(&map, &box);
        return code ? code
                    : at_launch(multiply<T, M>, dim3{ tiles < most ? tiles : most, 1, 1 }, dim3{ THREADS, 1, 1 },
                                (int64_t)sizeof(memory_of<T, M>), launch->stream, v, map);
    });
}

} // namespace

AT_KERNEL(gemv, 06_tma_ring) = {
    .summary = "W by TMA, two boxes of 64 rows ahead of each warp; 32 columns and all of k a block",
    .source = "ours",
    .numerics = AT_GEMV_NUMERICS(LANES, RUN, AT_TREE_BUTTERFLY, 0),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
