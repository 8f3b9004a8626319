/* Post-attention and pre-MLP UClip norms in one (norm/peri.h), the residual stream updated in place: res holds the old sum before
 * a launch and the new one after it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "post_attn_pre_mlp_uclip_in_place/post_attn_pre_mlp_uclip_in_place.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "a", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "attention output", AT_FILL_ROWS },
    { "res", AT_INOUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "residual stream, old, then new", AT_FILL_RESIDUAL },
    AT_PERI_PARAMETERS,
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "input of the MLP" },
};
/* clang-format on */

static at_status row(const struct at_norm_call *call, int64_t token) {
    return at_peri_row(call, AT_PERI_RES, AT_PERI_IN_PLACE_Y, token);
}

AT_NORM_EVALUATIONS(row)

/* The residual stream is read and written. */
static int64_t moved(const struct at_problem *p, int tensor) {
    return (tensor == AT_PERI_RES ? 2 : 1) * at_tensor_count(&p->tensors[tensor]);
}

static const char *const keys[] = { "tokens", "channels", "dtype",   "data",   "seed", "lo",
                                    "hi",     "from",     "require", "expect", NULL };
static const struct at_factor *const domain[] = { AT_NORM_DOMAIN, &at_norm_ends, &at_norm_from, NULL };

const struct at_op at_op_post_attn_pre_mlp_uclip_in_place = {
    .name = "post_attn_pre_mlp_uclip_in_place",
    .summary = "u = round(UClip(a)); res' = round(u + res); y = UClip(res'); res' in the place of res",
    .source = "000 §6.3",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = at_peri_decoys,
    .n_decoys = AT_PERI_DECOYS,
    .uses = AT_USES(tokens) | AT_USES(channels) | AT_USES(lo) | AT_USES(hi) | AT_USES(from),
    .keys = keys,
    .domain = domain,
    .declares = AT_UCLIP_DECLARES,
    .moved = moved,
    AT_NORM_FUNCTIONS,
};
