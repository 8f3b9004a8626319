/* What norm kernels share: UClip and RMS of a value, the residual sum, kernels over rows, and their launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * f32, one rounding an operation; activations of type T: float, at_f16 or at_bf16. A row is what the parameters are per
 * channel of. */
#ifndef AT_DEVICE_NORM_H
#define AT_DEVICE_NORM_H

#include "attest/kernel.h"
#include "kernels/device/device.h"
#include "kernels/device/group.h"
#include "kernels/device/special.h"

constexpr int AT_NORM_THREADS = 256;

/* gamma * clamp(alpha * x, lo, hi) + beta, the last two at once; a NaN becomes lo. No beta: a product. */
struct at_uclip_step {
    const float *alpha, *gamma, *beta;
    float lo, hi;
    bool one_gamma; /* gamma[0] is that of every channel */

    /* Tensors of the problem; beta < 0: none. */
    static at_uclip_step of(const struct at_problem *p, int alpha, int gamma, int beta) {
        const auto floats = [p](int t) { return static_cast<const float *>(p->tensors[t].data); };
        return { floats(alpha), floats(gamma), beta < 0 ? nullptr : floats(beta),
                 p->params.lo,  p->params.hi,  p->tensors[gamma].shape[0] == 1 };
    }
    __device__ float operator()(int c, float x) const {
        const float clamped = fminf(fmaxf(alpha[c] * x, lo), hi);
        const float factor = gamma[one_gamma ? 0 : c];
        return beta ? fmaf(factor, clamped, beta[c]) : factor * clamped;
    }
};

/* A sum of two activations: as it is stored, and as the norm after it takes it. */
template <class T> struct at_residual_sum {
    T stored;
    float used;

    __device__ at_residual_sum(T x, T res, int from) {
        const float sum = at_float(x) + at_float(res);
        stored = at_round_to<T>(sum);
        used = from == AT_FROM_ROUNDED ? at_float(stored) : sum;
    }
};

/* 1 / sqrt(x), both operations correctly rounded: what rsqrt=libm declares. at_rsqrt_approx and at_rsqrt_approx_ftz are the
 * special-function unit's. */
__device__ inline float at_rsqrt_rounded(float x) { return 1.0f / sqrtf(x); }

/* 1 / sqrt(mean of x^2 + eps) by RSQRT of a row whose channel c is x(c), for all lanes of the warp that asks: lane i sums
 * channels i, i + 32, ... by fmaf, a butterfly joins the lanes; the division is correctly rounded. */
template <float (*RSQRT)(float), class X> __device__ float at_rms_inverse(int channels, float eps, X x) {
    float sum = 0.0f;
    for (int c = at_lane(); c < channels; c += 32)
        sum = fmaf(x(c), x(c), sum);
    const float mean = at_group_sum<32>(sum) / (float)channels;
    return RSQRT(mean + eps);
}

/* What a kernel declares whose rows are normalised by at_rms_inverse: the sum of squares as the warp adds it. */
#define AT_RMS_NUMERICS(inverse_root) \
    { \
        .qk_unit = AT_UNIT_F32_FMA, .qk_lanes = 32, .qk_run = 1, .qk_tree = AT_TREE_BUTTERFLY, .p = AT_F32, \
        .clamp = AT_CLAMP_FMINMAX, .rsqrt = (inverse_root), .pv_unit = AT_UNIT_F32, .pv_chunk = 1, .repeats = 1, \
        .batch_invariant = 1 \
    }

/* y = UClip(x), a block a row. */
template <class T>
static __global__ void __launch_bounds__(AT_NORM_THREADS)
    at_uclip_rows(at_uclip_step uclip, int channels, const T *x, T *y) {
    const int64_t row = (int64_t)blockIdx.x * channels;
    for (int c = (int)threadIdx.x; c < channels; c += AT_NORM_THREADS)
        y[row + c] = at_round_to<T>(uclip(c, at_float(x[row + c])));
}

/* sum = x + res; y = UClip(sum), a block a row. y may be x, and sum may be res: each thread reads before it writes. */
template <class T>
static __global__ void __launch_bounds__(AT_NORM_THREADS)
    at_add_uclip_rows(at_uclip_step uclip, int channels, int from, const T *x, const T *res, T *sum, T *y) {
    const int64_t row = (int64_t)blockIdx.x * channels;
    for (int c = (int)threadIdx.x; c < channels; c += AT_NORM_THREADS) {
        const at_residual_sum<T> total(x[row + c], res[row + c], from);
        sum[row + c] = total.stored;
        y[row + c] = at_round_to<T>(uclip(c, total.used));
    }
}

/* f.operator()<T>() for the problem's activations; 0 when it has none. */
template <class F> int at_norm_launch(const struct at_launch *launch, F f) {
    const struct at_problem *p = launch->problem;
    if (p->sizes.tokens == 0)
        return 0;
    if (p->dtype == AT_F16)
        return f.template operator()<at_f16>();
    return p->dtype == AT_BF16 ? f.template operator()<at_bf16>() : f.template operator()<float>();
}

/* A kernel over rows, a block each. */
template <class... P, class... A>
int at_norm_rows(const struct at_launch *launch, int64_t rows, void (*kernel)(P...), A... args) {
    return at_launch(kernel, dim3{ (unsigned)rows, 1, 1 }, dim3{ AT_NORM_THREADS, 1, 1 }, 0, launch->stream, args...);
}

/* A tensor of activations. */
template <class T> T *at_activations(const struct at_problem *problem, int tensor) {
    return static_cast<T *>(problem->tensors[tensor].data);
}

#endif
