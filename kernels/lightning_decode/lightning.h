/* What kernels of lightning decode share: a block's head, its decay, one step of an element, launches.
 * SPDX-License-Identifier: Apache-2.0
 *
 * f32 but for the activations of type T: float, at_f16 or at_bf16. */
#ifndef AT_LIGHTNING_H
#define AT_LIGHTNING_H

#include "attest/kernel.h"
#include "kernels/device/device.h"
#include "kernels/device/special.h"
#include "lightning_decode/lightning_decode.h"

constexpr int AT_LIGHTNING_THREADS = 128;

template <class T> struct at_lightning_view {
    const T *q, *k, *v;
    const float *slope;
    float *kv;
    T *o;
    int h, d, e, steps, rounded;

    explicit at_lightning_view(const struct at_problem *p)
        : q(data<const T>(p, AT_LIGHTNING_Q)), k(data<const T>(p, AT_LIGHTNING_K)), v(data<const T>(p, AT_LIGHTNING_V)),
          slope(data<const float>(p, AT_LIGHTNING_SLOPE)), kv(data<float>(p, AT_LIGHTNING_KV)),
          o(data<T>(p, AT_LIGHTNING_O)), h((int)p->sizes.h), d((int)p->sizes.d), e((int)at_lightning_own_of(p).e),
          steps((int)at_lightning_own_of(p).steps), rounded(at_lightning_own_of(p).outer == AT_LIGHTNING_ROUNDED) {}
    template <class U> static U *data(const struct at_problem *p, int tensor) {
        return static_cast<U *>(p->tensors[tensor].data);
    }
};

/* Four neighbours as f32; p is a multiple of four elements. */
inline __device__ void at_lightning_load4(const float *p, float (&x)[4]) { at_load16(p, x); }
template <class T> inline __device__ void at_lightning_load4(const T *p, float (&x)[4]) {
    at_load_pair(p, x[0], x[1]);
    at_load_pair(p + 2, x[2], x[3]);
}

/* One head of one request. */
template <class T> struct at_lightning_block {
    const T *q, *k, *v; /* [steps d], [steps d], [steps e] */
    float *kv;          /* [d e] */
    T *o;               /* [steps e] */
    int d, e, steps, rounded;
    float decay;

    __device__ at_lightning_block(const at_lightning_view<T> &a, int64_t i)
        : q(a.q + i * a.steps * a.d), k(a.k + i * a.steps * a.d), v(a.v + i * a.steps * a.e), kv(a.kv + i * a.d * a.e),
          o(a.o + i * a.steps * a.e), d(a.d), e(a.e), steps(a.steps), rounded(a.rounded),
          decay(at_ex2_approx(-a.slope[(int)i % a.h] * 0x1.715476p0f)) {}
    /* An element of k v^T. */
    __device__ float product(float k_of, float v_of) const {
        const float product = k_of * v_of;
        return rounded ? at_float(at_round_to<T>(product)) : product;
    }
    /* An element of the state after a step, by one fmaf. */
    __device__ float updated(float old, float k_of, float v_of) const { return fmaf(decay, old, product(k_of, v_of)); }
};

/* f.operator()<T>() for the problem's activations; 0 when there are no requests. */
template <class F> int at_lightning_launch(const struct at_problem *p, F f) {
    if (p->sizes.b == 0)
        return 0;
    if (p->dtype == AT_F16)
        return f.template operator()<at_f16>();
    return p->dtype == AT_BF16 ? f.template operator()<at_bf16>() : f.template operator()<float>();
}

/* A block of AT_LIGHTNING_THREADS a head. */
template <class T>
int at_lightning_heads(const struct at_launch *launch, void (*kernel)(at_lightning_view<T>), int64_t shared) {
    const struct at_sizes *z = &launch->problem->sizes;
    return at_launch(kernel, dim3{ (unsigned)(z->b * z->h), 1, 1 }, dim3{ AT_LIGHTNING_THREADS, 1, 1 }, shared,
                     launch->stream, at_lightning_view<T>(launch->problem));
}

/* What is declared: the decay by ex2.approx, the sum of an answer by LANES lanes. */
#define AT_LIGHTNING_NUMERICS(fused, lanes, run, tree) \
    { \
        .qk_unit = AT_UNIT_F32_FMA, .qk_lanes = (lanes), .qk_run = (run), .qk_tree = (tree), .fir_fma = (fused), \
        .p = AT_F32, .exp = AT_EXP_EX2_APPROX, .pv_unit = AT_UNIT_F32, .pv_chunk = 1, .repeats = 1, \
        .batch_invariant = 1 \
    }

#endif
