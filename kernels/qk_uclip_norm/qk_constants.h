/* UClip norm of q and k in one launch, with head size and clamp known at compile time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_QK_CONSTANTS_H
#define AT_DEVICE_QK_CONSTANTS_H

#include "kernels/norm/norm.h"
#include "qk_uclip_norm/qk_uclip_norm.h"

constexpr int AT_QK_THREADS = 128, AT_QK_PIECE = 8;

/* One of the two tensors. */
template <class T> struct at_qk_side {
    const float *alpha, *gamma;
    int64_t elements;
    const T *x;
    T *y;
};

/* y = UClip(x) of both, D channels a head; ONE: gamma is one number a tensor. */
template <class T, int D, bool ONE>
static __global__ void __launch_bounds__(AT_QK_THREADS)
    at_qk_normalise(at_qk_side<T> q, at_qk_side<T> k, int q_blocks) {
    const bool is_q = (int)blockIdx.x < q_blocks;
    const at_qk_side<T> &s = is_q ? q : k;
    const int64_t block = is_q ? blockIdx.x : blockIdx.x - q_blocks,
                  at = (block * AT_QK_THREADS + threadIdx.x) * AT_QK_PIECE;
    if (at >= s.elements)
        return;
    T piece[AT_QK_PIECE];
    at_load16(&s.x[at], piece);
    for (int i = 0; i < AT_QK_PIECE; i++) {
        const int channel = (int)(at % D) + i;
        const float clamped = fminf(fmaxf(s.alpha[channel] * at_float(piece[i]), -1.0f), 1.0f);
        piece[i] = at_round_to<T>(s.gamma[ONE ? 0 : channel] * clamped);
    }
    at_store16(&s.y[at], piece);
}

template <class T, bool ONE> int at_qk_launch_as(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_sizes *z = &p->sizes;
    const auto floats = [p](int t) { return static_cast<const float *>(p->tensors[t].data); };
    const auto blocks = [](int64_t n) { return (n + AT_QK_THREADS * AT_QK_PIECE - 1) / (AT_QK_THREADS * AT_QK_PIECE); };
    const at_qk_side<T> q{ floats(AT_QK_UCLIP_ALPHA_Q), floats(AT_QK_UCLIP_GAMMA_Q), z->tokens * z->h * z->d,
                           at_activations<T>(p, AT_QK_UCLIP_Q), at_activations<T>(p, AT_QK_UCLIP_Q_OUT) };
    const at_qk_side<T> k{ floats(AT_QK_UCLIP_ALPHA_K), floats(AT_QK_UCLIP_GAMMA_K), z->tokens * z->hk * z->d,
                           at_activations<T>(p, AT_QK_UCLIP_K), at_activations<T>(p, AT_QK_UCLIP_K_OUT) };
    const dim3 grid{ (unsigned)(blocks(q.elements) + blocks(k.elements)), 1, 1 };
    return at_launch(z->d == 64 ? at_qk_normalise<T, 64, ONE> : at_qk_normalise<T, 128, ONE>, grid,
                     dim3{ AT_QK_THREADS, 1, 1 }, 0, launch->stream, q, k, (int)blocks(q.elements));
}

/* On tensors of f16 or bf16, a head size of 64 or 128 and ends of -1 and 1. */
template <bool ONE> int at_qk_launch(const struct at_launch *launch) {
    if (launch->problem->sizes.tokens == 0)
        return 0;
    return launch->problem->dtype == AT_F16 ? at_qk_launch_as<at_f16, ONE>(launch)
                                            : at_qk_launch_as<at_bf16, ONE>(launch);
}

/* NULL, or the reason why at_qk_launch does not take a problem. */
inline const char *at_qk_declines(const struct at_problem *p) {
    if (p->dtype != AT_F16 && p->dtype != AT_BF16)
        return "activations are f16 or bf16";
    if (p->sizes.d != 64 && p->sizes.d != 128)
        return "the head size is 64 or 128";
    return p->params.lo != -1.0f || p->params.hi != 1.0f ? "the clamp is to -1 .. 1" : nullptr;
}

#endif
