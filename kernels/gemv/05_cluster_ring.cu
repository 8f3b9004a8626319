/* A product with weights by rows that W streams through: copies far ahead into shared memory, k shared by a cluster.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 04_split_ordered there is one launch and no scratch. k is cut 64 ways, over eight warps and the eight blocks of a
 * cluster, whatever the shape, so that n = 4096 is 128 blocks of 256 threads, one for nearly every multiprocessor. Each
 * thread copies by cp.async what it will read itself, 24 rows of 16 bytes ahead: 96 KiB a block are under way at any time
 * and nobody waits for anybody, until the blocks of the cluster add their sums through each other's shared memory. Eight
 * neighbours of x come as one load of 16 bytes.
 *
 * Numerically: 64 chains of fma; chain c takes eight products from 8 c on, then the eight 512 further on. They are joined in
 * pairs: c and c + 32, then c + 16, ... c + 1, those of a block first. One rounding for the scale, one for the format of y.
 * Launch: grid (8 columns / 256), clusters of 8 blocks, 256 threads; 96 KiB of dynamic shared memory; one barrier of the
 * block and two of the cluster.
 * Limits: f16 or bf16; at most eight rows; any n, k. Where n is no multiple of 8, W is loaded element by element; where k is
 * none, x is.
 * Source: ours. */
#include "kernels/device/cluster.h"
#include "kernels/gemv/gemv.h"

namespace {

constexpr int WARPS = 8, BLOCKS = 8, LANES = WARPS * BLOCKS, RUN = AT_GEMV_RUN, SWEEP = LANES * RUN;
constexpr int THREADS = 32 * WARPS, EACH = AT_GEMV_VECTOR, COLUMNS = 32 * EACH, SHARE = COLUMNS / BLOCKS;
constexpr int AHEAD = 3, DEPTH = AHEAD * RUN; /* sweeps and rows that a thread copies ahead */
constexpr int64_t SHARED = (int64_t)DEPTH * THREADS * 16;

/* Rows of W of one thread, on their way through shared memory. Everything here is this thread's own. */
template <class T> struct ring {
    const at_gemv_view<T> &v;
    T *slots;
    int column;

    __device__ T *slot(int i) const { return slots + (i * THREADS + (int)threadIdx.x) * EACH; }
    /* Begins the copy of row l, one group even if there is no such row. */
    __device__ void copy(int i, int l) const {
        if (l < v.k && column < v.n) {
            if (v.is_whole()) {
                at_copy_async<16>(slot(i), v.at(l, column));
            } else {
                T w[EACH];
                v.load(l, column, w);
                at_store16(slot(i), w);
            }
        }
        at_copy_commit();
    }
};

/* The sums of this thread's columns over its chain. */
template <class T, int M> __device__ void sum_chain(const ring<T> &w, int chain, float (&sums)[M][EACH]) {
    const at_gemv_view<T> &v = w.v;
    const int first = chain * RUN;
    for (int i = 0; i < DEPTH; i++)
        w.copy(i, first + i / RUN * SWEEP + i % RUN);
    int stage = 0;
    AT_NO_UNROLL
    for (int begin = first; begin < v.k; begin += SWEEP, stage = stage + 1 < AHEAD ? stage + 1 : 0) {
        T x[M][RUN];
        at_gemv_load_x(v, begin, x);
        AT_UNROLL
        for (int r = 0; r < RUN; r++) {
            const int i = stage * RUN + r;
            T row[EACH];
            at_copy_wait<DEPTH - 1>();
            if (begin + r < v.k && w.column < v.n) {
                at_load16(w.slot(i), row);
                AT_UNROLL
                for (int j = 0; j < M; j++) {
                    AT_UNROLL
                    for (int c = 0; c < EACH; c++)
                        sums[j][c] = fmaf(at_float(x[j][r]), at_float(row[c]), sums[j][c]);
                }
            }
            w.copy(i, begin + r + AHEAD * SWEEP);
        }
    } /* each copy of a row that there is has been waited for: the groups behind it are empty */
}

template <class T, int M> __global__ void __launch_bounds__(THREADS, 2) multiply(at_gemv_view<T> v) {
    AT_SHARED_DYNAMIC(unsigned char, memory);
    const int rank = at_cluster_rank(), warp = (int)threadIdx.x / 32, tile = (int)blockIdx.x / BLOCKS * COLUMNS;
    const ring<T> w{ v, reinterpret_cast<T *>(memory), tile + at_lane() * EACH };
    float sums[M][EACH] = {};
    sum_chain<T, M>(w, warp * BLOCKS + rank, sums);
    at_sync();                                           /* what was copied has been read by every thread */
    float *of_warps = reinterpret_cast<float *>(memory); /* [WARPS][M][COLUMNS] */
    AT_UNROLL
    for (int i = 0; i < M; i++) {
        AT_UNROLL
        for (int c = 0; c < EACH; c += 4) {
            const float four[4] = { sums[i][c], sums[i][c + 1], sums[i][c + 2], sums[i][c + 3] };
            at_store16(of_warps + (warp * M + i) * COLUMNS + at_lane() * EACH + c, four);
        }
    }
    at_sync();
    AT_UNROLL
    for (int i = 0; i < M; i++) {
        float *own = of_warps + i * COLUMNS + (int)threadIdx.x; /* of a column; the first warp's is the block's then */
        *own = at_gemv_joined([=](int other) { return own[other * M * COLUMNS]; });
    }
    at_cluster_arrive();
    at_cluster_wait();
    const int row = (int)threadIdx.x / SHARE, column = rank * SHARE + (int)threadIdx.x % SHARE;
    if (row < M)
        v.put(row, tile + column,
              at_gemv_joined([=](int block) { return at_cluster_map(of_warps, block)[row * COLUMNS + column]; }));
    at_cluster_arrive(); /* nobody leaves while others read its sums */
    at_cluster_wait();
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_gemv_launch(p, [=]<class T, int M>() {
        return at_launch_cluster(multiply<T, M>, dim3{ BLOCKS * at_gemv_pieces(at_gemm_own_of(p).n, COLUMNS), 1, 1 },
                                 dim3{ THREADS, 1, 1 }, BLOCKS, SHARED, launch->stream, at_gemv_view<T>::of(p));
    });
}

} // namespace

AT_KERNEL(gemv, 05_cluster_ring) = {
    .summary = "W through cp.async, 24 rows ahead; k over the warps of a cluster, joined in pairs",
    .source = "ours",
    .numerics = AT_GEMV_NUMERICS(LANES, RUN, AT_TREE_BUTTERFLY, 0),
    .supports = at_gemv_declines,
    .workspace = nullptr,
    .launch = launch,
};
