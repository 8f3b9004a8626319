/* Post-attention and pre-MLP UClip norms of a token with everything but the tensors known at compile time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_PERI_CONSTANTS_H
#define AT_DEVICE_PERI_CONSTANTS_H

#include "kernels/norm/norm.h"
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"

/* A token of the post-attention and pre-MLP UClip norms by 16 bytes an access: C channels, the clamps to -1 .. 1, y from the rounded
 * sum. A block has a thread for each 8 channels. sum may be res: a thread reads before it writes. */
template <class T, int C>
static __global__ void __launch_bounds__(C / 8)
    at_peri_constant_rows(at_uclip_step post, at_uclip_step pre, const T *a, const T *res, T *sum, T *y) {
    const int first = (int)threadIdx.x * 8;
    const int64_t at = (int64_t)blockIdx.x * C + first;
    T u[8], total[8];
    at_load16(&a[at], u);
    at_load16(&res[at], total);
    for (int i = 0; i < 8; i++) {
        const int c = first + i;
        const float after = fminf(fmaxf(post.alpha[c] * at_float(u[i]), -1.0f), 1.0f);
        u[i] = at_round_to<T>(fmaf(post.gamma[c], after, post.beta[c]));
        total[i] = at_round_to<T>(at_float(u[i]) + at_float(total[i]));
        const float before = fminf(fmaxf(pre.alpha[c] * at_float(total[i]), -1.0f), 1.0f);
        u[i] = at_round_to<T>(fmaf(pre.gamma[c], before, pre.beta[c]));
    }
    at_store16(&sum[at], total);
    at_store16(&y[at], u);
}

template <class T> int at_peri_launch_constant(const struct at_launch *launch, const T *res, T *sum, T *y) {
    const struct at_problem *p = launch->problem;
    const int channels = (int)p->sizes.channels;
    return at_launch(channels == 256 ? at_peri_constant_rows<T, 256> : at_peri_constant_rows<T, 1024>,
                     dim3{ (unsigned)p->sizes.tokens, 1, 1 }, dim3{ (unsigned)channels / 8, 1, 1 }, 0, launch->stream,
                     at_uclip_step::of(p, AT_PERI_ALPHA_POST, AT_PERI_GAMMA_POST, AT_PERI_BETA_POST),
                     at_uclip_step::of(p, AT_PERI_ALPHA_PRE, AT_PERI_GAMMA_PRE, AT_PERI_BETA_PRE),
                     at_activations<T>(p, AT_PERI_A), res, sum, y);
}

/* f.operator()<T>() for f16 and bf16 and at least a token. */
template <class F> int at_peri_launch_half(const struct at_launch *launch, F f) {
    const struct at_problem *p = launch->problem;
    if (p->sizes.tokens == 0)
        return 0;
    return p->dtype == AT_F16 ? f.template operator()<at_f16>() : f.template operator()<at_bf16>();
}

/* NULL, or the reason why at_peri_launch_constant does not take a problem. */
inline const char *at_peri_constant_declines(const struct at_problem *p) {
    if (p->dtype != AT_F16 && p->dtype != AT_BF16)
        return "activations are f16 or bf16";
    if (p->sizes.channels != 256 && p->sizes.channels != 1024)
        return "a row has 256 or 1024 channels";
    if (p->params.from != AT_FROM_ROUNDED)
        return "y is made from the rounded sum";
    return p->params.lo != -1.0f || p->params.hi != 1.0f ? "the clamp is to -1 .. 1" : nullptr;
}

#endif
