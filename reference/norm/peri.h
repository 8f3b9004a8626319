/* What the two operators of post-attention and pre-MLP UClip norms share: u = round(UClip_post(a)); res' = round(u + res);
 * y = UClip_pre(res'), from the rounded sum (from=rounded) or from the sum before it is rounded (from=exact). One writes res'
 * to a tensor of its own, the other in the place of res.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_NORM_PERI_H
#define AT_NORM_PERI_H

#include "norm/norm.h"

/* The first tensors of both. */
enum {
    AT_PERI_A,
    AT_PERI_RES,
    AT_PERI_ALPHA_POST,
    AT_PERI_GAMMA_POST,
    AT_PERI_BETA_POST,
    AT_PERI_ALPHA_PRE,
    AT_PERI_GAMMA_PRE,
    AT_PERI_BETA_PRE,
    AT_PERI_READ
};
#define AT_PERI_PARAMETERS \
    { "alpha_post", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "slope before the clamp", AT_FILL_SLOPE }, \
        { "gamma_post", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "factor after the clamp", AT_FILL_FACTOR }, \
        { "beta_post", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "added last", AT_FILL_SHIFT }, \
        { "alpha_pre", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "slope before the clamp", AT_FILL_SLOPE }, \
        { "gamma_pre", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "factor after the clamp", AT_FILL_FACTOR }, { \
        "beta_pre", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "added last", AT_FILL_SHIFT \
    }

/* The last is of the operator that works in place alone. */
enum { AT_PERI_DECOYS = 7 };
extern const struct at_decoy_spec at_peri_decoys[AT_PERI_DECOYS];

/* A row function, but for the tensors that res' and y go to. */
at_status at_peri_row(const struct at_norm_call *call, int sum, int y, int64_t token);

#endif
