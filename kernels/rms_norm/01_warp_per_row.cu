/* RMS norm: a warp a token.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; the squares of every 32nd channel are a chain of fmaf in a lane, a butterfly joins the lanes;
 * division, + eps, square root, reciprocal, each rounded once; gamma * (x * r); one rounding to the activations'
 * format.
 * Launch: a warp a token, 8 tokens a block of 256 threads; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 002 has the operator; this form is ours. */
#include "rms_norm/rms_norm.h"
#include "kernels/norm/norm.h"

namespace {

constexpr int WARPS = AT_NORM_THREADS / 32;

template <class T>
__global__ void __launch_bounds__(AT_NORM_THREADS)
    normalise(int64_t tokens, int channels, float eps, const float *gamma, const T *x, T *y) {
    const int64_t token = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, row = token * channels;
    if (token >= tokens)
        return;
    const float r = at_rms_inverse(channels, eps, [&](int c) { return at_float(x[row + c]); });
    for (int c = at_lane(); c < channels; c += 32)
        y[row + c] = at_round_to<T>(gamma[c] * (at_float(x[row + c]) * r));
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t tokens = p->sizes.tokens;
    return at_norm_launch(launch, [=]<class T>() {
        return at_norm_rows(launch, (tokens + WARPS - 1) / WARPS, normalise<T>, tokens, (int)p->sizes.channels,
                            p->params.eps, static_cast<const float *>(p->tensors[AT_RMS_GAMMA].data),
                            at_activations<T>(p, AT_RMS_X), at_activations<T>(p, AT_RMS_Y));
    });
}

} // namespace

AT_KERNEL(rms_norm, 01_warp_per_row) = {
    .summary = "y = gamma * x / sqrt(mean(x^2) + eps), a warp a token",
    .source = "002",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 32,
        .qk_run = 1,
        .qk_tree = AT_TREE_BUTTERFLY,
        .p = AT_F32,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
