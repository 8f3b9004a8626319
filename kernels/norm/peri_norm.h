/* Post-attention and pre-MLP UClip norms of a token in one kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_PERI_NORM_H
#define AT_DEVICE_PERI_NORM_H

#include "kernels/norm/norm.h"
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"

/* sum = round(UClip_post(a)) + res; y = UClip_pre(sum), a block a row. sum may be res: each thread reads before it
 * writes. */
template <class T>
static __global__ void __launch_bounds__(AT_NORM_THREADS)
    at_peri_rows(at_uclip_step post, at_uclip_step pre, int channels, int from, const T *a, const T *res, T *sum,
                 T *y) {
    const int64_t row = (int64_t)blockIdx.x * channels;
    for (int c = (int)threadIdx.x; c < channels; c += AT_NORM_THREADS) {
        const T u = at_round_to<T>(post(c, at_float(a[row + c])));
        const at_residual_sum<T> total(u, res[row + c], from);
        sum[row + c] = total.stored;
        y[row + c] = at_round_to<T>(pre(c, total.used));
    }
}

/* That kernel on a problem's tensors: the residual stream is read from `res` and written to `sum`. */
template <class T> int at_peri_launch(const struct at_launch *launch, const T *res, T *sum, T *y) {
    const struct at_problem *p = launch->problem;
    return at_norm_rows(launch, p->sizes.tokens, at_peri_rows<T>,
                        at_uclip_step::of(p, AT_PERI_ALPHA_POST, AT_PERI_GAMMA_POST, AT_PERI_BETA_POST),
                        at_uclip_step::of(p, AT_PERI_ALPHA_PRE, AT_PERI_GAMMA_PRE, AT_PERI_BETA_PRE),
                        (int)p->sizes.channels, p->params.from, at_activations<T>(p, AT_PERI_A), res, sum, y);
}

#endif
