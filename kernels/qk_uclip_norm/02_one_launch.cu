/* UClip norm of q and k in one launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_two_launches: f32; alpha * x, fmaxf and fminf (a NaN becomes lo), gamma * c; one rounding to the
 * format of the activations.
 * Launch: a block of 256 threads a token, which take the channels of all its heads of q and k in turn; no shared
 * memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 section 6.1: a norm without a sum needs no block of its own for a tensor. */
#include "qk_uclip_norm/qk_uclip_norm.h"
#include "kernels/norm/norm.h"

namespace {

/* One of the two tensors. */
template <class T> struct side {
    at_uclip_step uclip;
    int channels; /* of all heads */
    const T *x;
    T *y;
};

template <class T> __device__ void put(const side<T> &s, int64_t token, int channel, int d) {
    const int64_t at = token * s.channels + channel;
    s.y[at] = at_round_to<T>(s.uclip(channel % d, at_float(s.x[at])));
}

template <class T> __global__ void __launch_bounds__(AT_NORM_THREADS) normalise(side<T> q, side<T> k, int d) {
    for (int i = (int)threadIdx.x; i < q.channels + k.channels; i += AT_NORM_THREADS)
        if (i < q.channels)
            put(q, blockIdx.x, i, d);
        else
            put(k, blockIdx.x, i - q.channels, d);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_sizes *z = &p->sizes;
    return at_norm_launch(launch, [=]<class T>() {
        const side<T> q{ at_uclip_step::of(p, AT_QK_UCLIP_ALPHA_Q, AT_QK_UCLIP_GAMMA_Q, -1), (int)(z->h * z->d),
                         at_activations<T>(p, AT_QK_UCLIP_Q), at_activations<T>(p, AT_QK_UCLIP_Q_OUT) };
        const side<T> k{ at_uclip_step::of(p, AT_QK_UCLIP_ALPHA_K, AT_QK_UCLIP_GAMMA_K, -1), (int)(z->hk * z->d),
                         at_activations<T>(p, AT_QK_UCLIP_K), at_activations<T>(p, AT_QK_UCLIP_K_OUT) };
        return at_norm_rows(launch, z->tokens, normalise<T>, q, k, (int)z->d);
    });
}

} // namespace

AT_KERNEL(qk_uclip_norm, 02_one_launch) = {
    .summary = "UClip of q and k in one launch",
    .source = "000 6.1",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
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
