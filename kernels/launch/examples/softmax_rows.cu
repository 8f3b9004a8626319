/* Softmax attention as device code alone, plain CUDA without attest's headers: a warp for each query and head.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     nvcc -cubin -arch=sm_90a -O3 -o softmax_rows.cubin softmax_rows.cu
 *
 * softmax_rows.json launches it: grid (heads, queries of the longest request, requests), 32 threads. Keys come one after the other,
 * contiguous or in pages; each thread has d/32 channels, d a multiple of 32 up to 256. */
#include <cuda_bf16.h>

namespace {

constexpr int channels_max = 8;

__device__ float sum_of_warp(float x) {
    for (int mask = 16; mask; mask /= 2)
        x += __shfl_xor_sync(0xffffffff, x, mask);
    return x;
}

__device__ float minus_infinity() { return __int_as_float(0xff800000); }

} // namespace

extern "C" __global__ void __launch_bounds__(32)
    softmax_rows(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const int *query_start,
                 const int *seq_lens, const int *key_start, const int *block_table, __nv_bfloat16 *o, float *lse, int h,
                 int hk, int d, int page, int max_pages, int causal, float scale) {
    const int head = (int)blockIdx.x, i = (int)blockIdx.y, request = (int)blockIdx.z, lane = (int)threadIdx.x;
    const int first = query_start[request], sq = query_start[request + 1] - first, sk = seq_lens[request];
    if (i >= sq)
        return;
    const int visible = causal ? min(sk, max(sk - sq + i + 1, 0)) : sk, per_lane = d / 32;
    const long long row = ((long long)(first + i) * h + head) * d;
    float query[channels_max], sum[channels_max], m = minus_infinity(), l = 0;
    for (int c = 0; c < per_lane; c++) {
        query[c] = __bfloat162float(q[row + c * 32 + lane]);
        sum[c] = 0;
    }
    for (int t = 0; t < visible; t++) {
        const long long slot = page ? (long long)block_table[request * max_pages + t / page] * page + t % page
                                    : (long long)key_start[request] + t;
        const long long at = (slot * hk + head / (h / hk)) * d;
        float dot = 0;
        for (int c = 0; c < per_lane; c++)
            dot = fmaf(query[c], __bfloat162float(k[at + c * 32 + lane]), dot);
        const float score = sum_of_warp(dot) * scale, larger = fmaxf(m, score);
        if (score == minus_infinity() && larger == score) /* a key of weight 0, and none before it had another */
            continue;
        const float factor = expf(m - larger), weight = expf(score - larger);
        l = l * factor + weight;
        for (int c = 0; c < per_lane; c++)
            sum[c] = fmaf(weight, __bfloat162float(v[at + c * 32 + lane]), sum[c] * factor);
        m = larger;
    }
    for (int c = 0; c < per_lane; c++)
        o[row + c * 32 + lane] = __float2bfloat16(visible ? sum[c] / l : 0);
    if (lane == 0)
        lse[(long long)(first + i) * h + head] = l > 0 || l != l ? m + logf(l) : minus_infinity();
}
