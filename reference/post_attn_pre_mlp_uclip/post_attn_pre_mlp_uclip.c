/* Post-attention and pre-MLP UClip norms in one: u = round(UClip_post(a)); res' = round(u + res); y = UClip_pre(res'),
 * from the rounded sum (from=rounded) or from the sum before it is rounded (from=exact). A kernel that works in place
 * (v1) copies res to res_out first and then reads and writes only res_out; one with a residual of its own (v2) reads
 * res.
 * SPDX-License-Identifier: Apache-2.0 */
#include "post_attn_pre_mlp_uclip/post_attn_pre_mlp_uclip.h"

#include "norm/norm.h"

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "a", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "attention output", AT_FILL_ROWS },
    { "res", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "residual stream", AT_FILL_RESIDUAL },
    { "alpha_post", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "slope before the clamp", AT_FILL_SLOPE },
    { "gamma_post", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "factor after the clamp", AT_FILL_FACTOR },
    { "beta_post", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "added last", AT_FILL_SHIFT },
    { "alpha_pre", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "slope before the clamp", AT_FILL_SLOPE },
    { "gamma_pre", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "factor after the clamp", AT_FILL_FACTOR },
    { "beta_pre", AT_IN, AT_FORMAT_F32, { AT_DIM_channels }, "added last", AT_FILL_SHIFT },
    { "res_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "new residual stream" },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "input of the MLP" },
};
static const struct at_decoy_spec decoys[] = {
    { "post_unclamped", "the post-attention clamp is missing" },
    { "post_skipped", "the post-attention norm is missing" },
    { "pre_unclamped", "the pre-MLP clamp is missing" },
    { "pre_no_gamma", "the pre-MLP gamma is missing" },
    { "residual_dropped", "the residual is not added" },
    { "next_channel", "pre-MLP parameters of the next channel" },
};
/* clang-format on */

enum { POST_UNCLAMPED, POST_SKIPPED, PRE_UNCLAMPED, PRE_NO_GAMMA, RESIDUAL_DROPPED, NEXT_CHANNEL };

struct norms {
    struct at_uclip post, pre;
};

static void declared(const struct at_norm_call *call, const struct norms *n, int64_t c, int64_t i, double a,
                     double res) {
    enum at_format dtype = call->problem->dtype;
    double u = at_round(dtype, at_uclip_declared(&n->post, call->numerics, c, a));
    double s = at_add_declared(call->numerics, u, res), rounded = at_round(dtype, s);
    double y = at_uclip_declared(&n->pre, call->numerics, c, call->problem->params.from == AT_FROM_EXACT ? s : rounded);
    at_norm_put(call, AT_PERI_RES_OUT, i, (struct at_bounded){ rounded, 0 });
    at_norm_put(call, AT_PERI_Y, i, (struct at_bounded){ at_round(dtype, y), 0 });
}

static void bounded(const struct at_norm_call *call, const struct norms *n, int64_t c, int64_t i, double a,
                    double res) {
    enum at_format dtype = call->problem->dtype;
    const struct at_norm_arith *arith = &call->arith;
    int wrong = call->mode == AT_NORM_DECOY ? call->decoy : -1;
    struct at_bounded x = { a, 0 }, r = { wrong == RESIDUAL_DROPPED ? 0 : res, 0 };
    struct at_bounded u =
        wrong == POST_SKIPPED
            ? x
            : at_uclip_bounded(&n->post, arith, c, x, wrong == POST_UNCLAMPED ? AT_UCLIP_UNCLAMPED : AT_UCLIP_RIGHT);
    u = at_bounded_round(arith, dtype, u);
    struct at_residual sum = at_bounded_residual(arith, dtype, call->problem->params.from, u, r);
    at_norm_put(call, AT_PERI_RES_OUT, i, sum.stored);
    enum at_uclip_fault fault = wrong == PRE_UNCLAMPED  ? AT_UCLIP_UNCLAMPED
                                : wrong == PRE_NO_GAMMA ? AT_UCLIP_NO_GAMMA
                                : wrong == NEXT_CHANNEL ? AT_UCLIP_NEXT_CHANNEL
                                                        : AT_UCLIP_RIGHT;
    struct at_bounded y = at_uclip_bounded(&n->pre, arith, c, sum.used, fault);
    at_norm_put(call, AT_PERI_Y, i, at_bounded_store(arith, dtype, y));
}

static at_status row(const struct at_norm_call *call, int64_t token) {
    const struct at_problem *p = call->problem;
    const struct at_tensor *t = p->tensors;
    struct norms n = {
        .post = { &t[AT_PERI_ALPHA_POST], &t[AT_PERI_GAMMA_POST], &t[AT_PERI_BETA_POST], p->params.lo, p->params.hi },
        .pre = { &t[AT_PERI_ALPHA_PRE], &t[AT_PERI_GAMMA_PRE], &t[AT_PERI_BETA_PRE], p->params.lo, p->params.hi },
    };
    for (int64_t c = 0; c < p->sizes.channels; c++) {
        int64_t i = token * p->sizes.channels + c;
        double a = at_tensor_get(&t[AT_PERI_A], i), res = at_tensor_get(&t[AT_PERI_RES], i);
        if (call->mode == AT_NORM_MODEL)
            declared(call, &n, c, i, a, res);
        else
            bounded(call, &n, c, i, a, res);
    }
    return AT_OK;
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
    .decoys = decoys,
    .n_decoys = sizeof decoys / sizeof *decoys,
    .uses = AT_USES(tokens) | AT_USES(channels) | AT_USES(lo) | AT_USES(hi) | AT_USES(from),
    .keys = keys,
    .domain = domain,
    .declares = AT_UCLIP_DECLARES,
    AT_NORM_FUNCTIONS,
};
