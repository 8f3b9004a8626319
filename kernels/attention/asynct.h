/* What AsyncT kernels share: a problem's pointers as a kernel argument, the gate.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ASYNCT_VIEW_H
#define AT_ASYNCT_VIEW_H

#include "asynct_attention/asynct_attention.h"
#include "kernels/attention/attention.h"

/* A problem with activations of type T; every pointer in device memory. */
template <class T> struct at_asynct_view : at_attention_view<T> {
    const float *sigma, *taps, *gamma;
    T *o;
    int n_taps;
    int pooled, shrink, relu_pre;
    float scale, clip_min, clip_max;

    static at_asynct_view of(const struct at_problem *p) {
        const struct at_tensor *t = p->tensors;
        at_asynct_view view{};
        view.attend_to(p);
        view.sigma = static_cast<const float *>(t[AT_ASYNCT_SIGMA].data);
        view.taps = static_cast<const float *>(t[AT_ASYNCT_TAPS].data);
        view.gamma = static_cast<const float *>(t[AT_ASYNCT_GAMMA].data);
        view.o = static_cast<T *>(t[AT_ASYNCT_O].data);
        view.n_taps = (int)p->sizes.taps;
        view.pooled = p->params.fir_form == AT_FIR_POOLED;
        view.shrink = p->params.edge == AT_EDGE_SHRINK;
        view.relu_pre = p->params.relu_pre;
        view.scale = p->params.scale;
        view.clip_min = p->params.clip_min;
        view.clip_max = p->params.clip_max;
        return view;
    }
};

/* Reasons to decline that all kernels share, as at_attention_declines has them. */
static inline const char *at_asynct_declines(const struct at_problem *problem, int64_t bytes_per_key,
                                             int64_t queries = INT32_MAX) {
    return at_attention_declines(problem, bytes_per_key, queries);
}

/* The gate of one head: filter tap by tap with fmaf, clamp by fminf and fmaxf, then gamma. */
struct at_asynct_gate {
    const float *taps;
    float sigma, gamma, clip_min, clip_max;
    int n_taps, pooled, shrink;

    template <class T> __device__ static at_asynct_gate of(const at_asynct_view<T> &view, int head) {
        return { view.taps + head * view.n_taps,
                 view.sigma[head],
                 view.gamma[head],
                 view.clip_min,
                 view.clip_max,
                 view.n_taps,
                 view.pooled,
                 view.shrink };
    }

    /* p of key t; r points at its score (after the ReLU), the keys before it stand before it. */
    __device__ float operator()(const float *r, int t) const {
        const int reach = t < n_taps ? t : n_taps - 1;
        float z;
        if (pooled && shrink && t + 1 < n_taps) { /* a shorter window has taps of its own */
            const float share = sigma / (float)(t + 1);
            z = (1.0f - share) * r[0];
            for (int j = 1; j <= reach; j++)
                z = fmaf(-share, r[-j], z);
        } else {
            z = taps[0] * r[0];
            for (int j = 1; j <= reach; j++)
                z = fmaf(taps[j], r[-j], z);
        }
        return gamma * fmaxf(fminf(fmaxf(z, 0.0f), clip_max), clip_min);
    }
};

#endif
