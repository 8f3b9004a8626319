/* Residual add and RMS norm, a warp a token: the kernel and its launch, for each way to compute 1 / sqrt.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ADD_RMS_NORM_WARP_PER_ROW_H
#define AT_ADD_RMS_NORM_WARP_PER_ROW_H

#include "add_rms_norm/add_rms_norm.h"
#include "kernels/norm/norm.h"

namespace {

constexpr int WARPS = AT_NORM_THREADS / 32;

template <float (*RSQRT)(float), class T>
__global__ void __launch_bounds__(AT_NORM_THREADS)
    normalise(int64_t tokens, int channels, float eps, int from, const float *gamma, const T *x, const T *res, T *sum,
              T *y) {
    const int64_t token = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, row = token * channels;
    if (token >= tokens)
        return;
    const auto total = [&](int c) { return at_residual_sum<T>(x[row + c], res[row + c], from); };
    const float r = at_rms_inverse<RSQRT>(channels, eps, [&](int c) { return total(c).used; });
    for (int c = at_lane(); c < channels; c += 32) {
        sum[row + c] = total(c).stored;
        y[row + c] = at_round_to<T>(gamma[c] * (total(c).used * r));
    }
}

template <float (*RSQRT)(float)> int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t tokens = p->sizes.tokens;
    return at_norm_launch(launch, [=]<class T>() {
        return at_norm_rows(launch, (tokens + WARPS - 1) / WARPS, normalise<RSQRT, T>, tokens, (int)p->sizes.channels,
                            p->params.eps, p->params.from,
                            static_cast<const float *>(p->tensors[AT_ADD_RMS_GAMMA].data),
                            at_activations<T>(p, AT_ADD_RMS_X), at_activations<T>(p, AT_ADD_RMS_RES),
                            at_activations<T>(p, AT_ADD_RMS_RES_OUT), at_activations<T>(p, AT_ADD_RMS_Y));
    });
}

} // namespace

#endif
