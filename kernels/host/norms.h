/* The steps of the norms in plain f32, for the C baselines.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Activations are [tokens ... channels] in f32, f16 or bf16; parameters are f32 [channels]. Every operation
 * rounds once to f32, every store once to the activations' format. */
#ifndef AT_HOST_NORMS_H
#define AT_HOST_NORMS_H

#include "attest/kernel.h"

/* y = gamma * clamp(alpha * x, lo, hi) + beta. fmaxf and fminf take the other operand of a NaN: NaN becomes lo. */
struct at_host_uclip {
    const float *alpha, *gamma, *beta; /* beta NULL: none */
    float lo, hi;
    int fused;     /* 1: gamma * c + beta is one fmaf */
    int one_gamma; /* 1: gamma[0] is that of every channel */
};
/* From the tensors with these indices (beta -1: none) and the declared fir_fma. */
struct at_host_uclip at_host_uclip(const struct at_problem *problem, int alpha, int gamma, int beta,
                                   const struct at_numerics *numerics);

/* Reasons to decline, NULL when there are none; `only` is the one format taken, AT_FORMAT_COUNT for all three. */
const char *at_host_norm_declines(const struct at_problem *problem, enum at_format only);

/* y = UClip(x), for whole tensors. */
void at_host_uclip_tensor(const struct at_host_uclip *uclip, int64_t channels, const struct at_tensor *x,
                          const struct at_tensor *y);

/* sum = x + res, stored rounded; y = UClip of the rounded sum (from = AT_FROM_ROUNDED) or of the f32 one. */
void at_host_add_uclip_tensor(const struct at_host_uclip *uclip, int64_t channels, int32_t from,
                              const struct at_tensor *x, const struct at_tensor *res, const struct at_tensor *sum,
                              const struct at_tensor *y);

/* u = round(UClip_post(a)); sum = u + res; y = UClip_pre of the rounded or the f32 sum. sum may be res. */
void at_host_peri_tensor(const struct at_host_uclip *post, const struct at_host_uclip *pre, int64_t channels,
                         int32_t from, const struct at_tensor *a, const struct at_tensor *res,
                         const struct at_tensor *sum, const struct at_tensor *y);

/* Bytes of scratch for the RMS norm: one row. */
int64_t at_host_rms_workspace(const struct at_problem *problem);
/* y = gamma * (x * 1/sqrt(mean(x^2) + eps)); with res and sum (NULL: none) x is x + res first, as above. The
 * squares are added in the order the numerics declare: qk_unit f32 or f32_fma, qk_lanes partial sums of every
 * qk_lanes-th channel, joined in order or by a butterfly. */
void at_host_rms_tensor(const struct at_launch *launch, const struct at_numerics *numerics, const float *gamma,
                        const struct at_tensor *x, const struct at_tensor *res, const struct at_tensor *sum,
                        const struct at_tensor *y);

#endif
