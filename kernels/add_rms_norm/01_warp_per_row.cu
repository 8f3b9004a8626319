/* Residual add and RMS norm: a warp a token.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32; x + res is stored rounded once, and y starts from the rounded sum, or from the f32 one with
 * from=exact (it is computed again for y rather than read back). The squares of every 32nd channel are a chain of fmaf
 * in a lane, a butterfly joins the lanes; division, + eps, square root, reciprocal, each rounded once; gamma * (x * r);
 * one rounding to the format of the activations.
 * Launch: a warp a token, 8 tokens a block of 256 threads; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 002 has the operator; this form is ours. */
#include "add_rms_norm/add_rms_norm.h"
#include "kernels/norm/norm.h"

namespace {

constexpr int WARPS = AT_NORM_THREADS / 32;

template <class T>
__global__ void __launch_bounds__(AT_NORM_THREADS)
    normalise(int64_t tokens, int channels, float eps, int from, const float *gamma, const T *x, const T *res, T *sum,
              T *y) {
    const int64_t token = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, row = token * channels;
    if (token >= tokens)
        return;
    const auto total = [&](int c) { return at_residual_sum<T>(x[row + c], res[row + c], from); };
    const float r = at_rms_inverse(channels, eps, [&](int c) { return total(c).used; });
    for (int c = at_lane(); c < channels; c += 32) {
        sum[row + c] = total(c).stored;
        y[row + c] = at_round_to<T>(gamma[c] * (total(c).used * r));
    }
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t tokens = p->sizes.tokens;
    return at_norm_launch(launch, [=]<class T>() {
        return at_norm_rows(launch, (tokens + WARPS - 1) / WARPS, normalise<T>, tokens, (int)p->sizes.channels,
                            p->params.eps, p->params.from,
                            static_cast<const float *>(p->tensors[AT_ADD_RMS_GAMMA].data),
                            at_activations<T>(p, AT_ADD_RMS_X), at_activations<T>(p, AT_ADD_RMS_RES),
                            at_activations<T>(p, AT_ADD_RMS_RES_OUT), at_activations<T>(p, AT_ADD_RMS_Y));
    });
}

} // namespace

AT_KERNEL(add_rms_norm, 01_warp_per_row) = {
    .summary = "res' = x + res; y = RMS(res'), a warp a token",
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
