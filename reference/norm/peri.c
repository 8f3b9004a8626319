/* Post-attention and pre-MLP UClip norms of a token.
 * SPDX-License-Identifier: Apache-2.0 */
#include "norm/peri.h"

const struct at_decoy_spec at_peri_decoys[] = {
    { "post_unclamped", "the post-attention clamp is missing" },
    { "post_skipped", "the post-attention norm is missing" },
    { "pre_unclamped", "the pre-MLP clamp is missing" },
    { "pre_no_gamma", "the pre-MLP gamma is missing" },
    { "residual_dropped", "the residual is not added" },
    { "next_channel", "pre-MLP parameters of the next channel" },
    { "residual_read_late", "the residual is read after the sum has overwritten it" },
};

enum {
    RIGHT = -1,
    POST_UNCLAMPED,
    POST_SKIPPED,
    PRE_UNCLAMPED,
    PRE_NO_GAMMA,
    RESIDUAL_DROPPED,
    NEXT_CHANNEL,
    RESIDUAL_READ_LATE
};

struct norms {
    struct at_uclip post, pre;
    int sum, y; /* tensors that are written */
};

static void declared(const struct at_norm_call *call, const struct norms *n, int64_t c, int64_t i, double a,
                     double res) {
    enum at_format dtype = call->problem->dtype;
    double u = at_round(dtype, at_uclip_declared(&n->post, call->numerics, c, a));
    double s = at_add_declared(call->numerics, u, res), rounded = at_round(dtype, s);
    double y = at_uclip_declared(&n->pre, call->numerics, c, call->problem->params.from == AT_FROM_EXACT ? s : rounded);
    at_norm_put(call, n->sum, i, (struct at_bounded){ rounded, 0 });
    at_norm_put(call, n->y, i, (struct at_bounded){ at_round(dtype, y), 0 });
}

static void bounded(const struct at_norm_call *call, const struct norms *n, int64_t c, int64_t i, double a,
                    double res) {
    enum at_format dtype = call->problem->dtype;
    const struct at_norm_arith *arith = &call->arith;
    int wrong = call->mode == AT_NORM_DECOY ? call->decoy : RIGHT;
    struct at_bounded x = { a, 0 }, r = { wrong == RESIDUAL_DROPPED ? 0 : res, 0 };
    struct at_bounded u =
        wrong == POST_SKIPPED
            ? x
            : at_uclip_bounded(&n->post, arith, c, x, wrong == POST_UNCLAMPED ? AT_UCLIP_UNCLAMPED : AT_UCLIP_RIGHT);
    u = at_bounded_round(arith, dtype, u);
    struct at_residual sum = at_bounded_residual(arith, dtype, call->problem->params.from, u, r);
    if (wrong == RESIDUAL_READ_LATE)
        sum = at_bounded_residual(arith, dtype, call->problem->params.from, u,
                                  (struct at_bounded){ at_round(dtype, sum.stored.value), sum.stored.error });
    at_norm_put(call, n->sum, i, sum.stored);
    enum at_uclip_fault fault = wrong == PRE_UNCLAMPED  ? AT_UCLIP_UNCLAMPED
                                : wrong == PRE_NO_GAMMA ? AT_UCLIP_NO_GAMMA
                                : wrong == NEXT_CHANNEL ? AT_UCLIP_NEXT_CHANNEL
                                                        : AT_UCLIP_RIGHT;
    struct at_bounded y = at_uclip_bounded(&n->pre, arith, c, sum.used, fault);
    at_norm_put(call, n->y, i, at_bounded_store(arith, dtype, y));
}

at_status at_peri_row(const struct at_norm_call *call, int sum, int y, int64_t token) {
    const struct at_problem *p = call->problem;
    const struct at_tensor *t = p->tensors;
    struct norms n = {
        .post = { &t[AT_PERI_ALPHA_POST], &t[AT_PERI_GAMMA_POST], &t[AT_PERI_BETA_POST], p->params.lo, p->params.hi },
        .pre = { &t[AT_PERI_ALPHA_PRE], &t[AT_PERI_GAMMA_PRE], &t[AT_PERI_BETA_PRE], p->params.lo, p->params.hi },
        .sum = sum,
        .y = y,
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
