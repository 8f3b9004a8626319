/* d = scale * (a b^T) on wgmma: a warpgroup has 64 rows and 64 columns.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two tiles of each factor in shared memory, rows of 128 bytes swizzled: while wgmma multiplies one, the threads write
 * the other. All wait for the products before the barrier that is behind their writes, so behind that barrier the tiles
 * that those products read are free. No product is on its way where the loop turns: ptxas would not let it. */
#ifndef AT_DEVICE_GEMM_WGMMA_H
#define AT_DEVICE_GEMM_WGMMA_H

#include "kernels/gemm/gemm.h"
#include "kernels/device/wgmma.h"

/* A tile of a factor; a swizzle begins anew every 1024 bytes. */
struct alignas(1024) at_gemm_tile {
    uint8_t bytes[AT_GEMM_TILE * AT_GEMM_BYTES];

    __device__ at_matrix matrix() const { return at_matrix::swizzled<AT_GEMM_BYTES>(bytes, 8 * AT_GEMM_BYTES); }
};

template <class T>
__device__ void at_gemm_wgmma_stage(const T *factor, int rows, int k, int first, int begin, at_gemm_tile &tile) {
    at_gemm_each_16_bytes(factor, rows, k, first, begin, [&](int row, int byte, const T(&x)[16 / sizeof(T)]) {
        at_store16(reinterpret_cast<T *>(tile.bytes + at_swizzle<AT_GEMM_BYTES>(row * AT_GEMM_BYTES + byte)), x);
    });
}

/* What a step has summed moves on to f32. */
template <int N> __device__ void at_gemm_promote(float (&sums)[N][4], float (&d)[N][4]) {
    AT_UNROLL
    for (int i = 0; i < N; i++) {
        AT_UNROLL
        for (int j = 0; j < 4; j++) {
            sums[i][j] += d[i][j];
            d[i][j] = 0.0f;
        }
    }
}

/* C, W: sums of 8 columns, as kernels/device/wgmma.h has them: float, 4 or uint32_t, 2. PROMOTED: the sum of each step,
 * 128 bytes of k, starts from 0 and is added in f32. */
template <class T, class C, int W, bool PROMOTED>
static __global__ void __launch_bounds__(AT_GEMM_THREADS, 1) at_gemm_wgmma(at_gemm_view<T> v) {
    constexpr int N = AT_GEMM_TILE / 8;
    AT_SHARED(at_gemm_tile[2], a);
    AT_SHARED(at_gemm_tile[2], b);
    const int row = (int)blockIdx.y * AT_GEMM_TILE, column = (int)blockIdx.x * AT_GEMM_TILE;
    float sums[N][4] = {};
    C d[N][W] = {};
    const auto stage = [&](int begin, int turn) {
        at_gemm_wgmma_stage(v.a, v.m, v.k, row, begin, a[turn]);
        at_gemm_wgmma_stage(v.b, v.n, v.k, column, begin, b[turn]);
        at_proxy_fence();
    };
    stage(0, 0);
    at_sync();
    for (int begin = 0, turn = 0; begin < v.k; begin += AT_GEMM_STEP<T>, turn = 1 - turn) {
        at_wgmma_fence(d);
        AT_UNROLL
        for (int byte = 0; byte < AT_GEMM_BYTES; byte += 32)
            at_wgmma(d, a[turn].matrix().moved(byte), b[turn].matrix().moved(byte), T{}, T{});
        at_wgmma_commit();
        if (begin + AT_GEMM_STEP<T> < v.k)
            stage(begin + AT_GEMM_STEP<T>, 1 - turn);
        at_wgmma_wait<0>(d);
        at_sync();
        if constexpr (PROMOTED)
            at_gemm_promote(sums, d);
    }
    if constexpr (PROMOTED)
        at_gemm_store(v, row, column, sums);
    else
        at_gemm_store(v, row, column, d);
}

template <class T, class C, int W, bool PROMOTED = false> int at_gemm_wgmma_launch(const struct at_launch *launch) {
    return at_gemm_launch(launch, at_gemm_wgmma<T, C, W, PROMOTED>, 0);
}

#endif
