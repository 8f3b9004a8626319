/* Post-attention and pre-MLP UClip norms in one (norm/peri.h): the new residual stream goes to a tensor of its own. A kernel that
 * works in place (v1) copies res to res_out first and then reads and writes only res_out; one with a residual of its own (v2)
 * reads res. The operator post_attn_pre_mlp_uclip_in_place overwrites res itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "a", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "attention output", AT_FILL_ROWS },
    { "res", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "residual stream", AT_FILL_RESIDUAL },
    AT_PERI_PARAMETERS,
    { "res_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "new residual stream" },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "input of the MLP" },
};
/* clang-format on */

static at_status row(const struct at_norm_call *call, int64_t token) {
    return at_peri_row(call, AT_PERI_RES_OUT, AT_PERI_Y, token);
}

AT_NORM_EVALUATIONS(row)

static const char *const keys[] = { "tokens", "channels", "dtype",   "data",   "seed", "lo",
                                    "hi",     "from",     "require", "expect", NULL };
static const struct at_factor *const domain[] = { AT_NORM_DOMAIN, &at_norm_ends, &at_norm_from, NULL };

const struct at_op at_op_post_attn_pre_mlp_uclip = {
    .name = "post_attn_pre_mlp_uclip",
    .summary = "u = round(UClip(a)); res' = round(u + res); y = UClip(res')",
    .source = "000 §6.3",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = at_peri_decoys,
    .n_decoys = AT_PERI_DECOYS - 1,
    .uses = AT_USES(tokens) | AT_USES(channels) | AT_USES(lo) | AT_USES(hi) | AT_USES(from),
    .keys = keys,
    .domain = domain,
    .declares = AT_UCLIP_DECLARES,
    AT_NORM_FUNCTIONS,
};
