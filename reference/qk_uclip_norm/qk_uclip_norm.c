/* UClip norm of q and k, per head, both tensors in one launch: alpha per channel of d; gamma one number for each of the two
 * tensors, as in the source (gamma_per=tensor), or per channel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "qk_uclip_norm/qk_uclip_norm.h"

#include <stddef.h>

#include "norm/norm.h"

enum { GAMMA_PER, GAMMAS, FIELDS };
#define PLACE(member) AT_OWN_PLACE(at_qk_uclip_own, member)

static const char *gamma_words(int i) {
    static const char *const words[] = { [AT_QK_GAMMA_CHANNEL] = "channel", [AT_QK_GAMMA_TENSOR] = "tensor" };
    return i >= 0 && i < 2 ? words[i] : NULL;
}

/* clang-format off */
static const struct at_scalar own[FIELDS] = {
    [GAMMA_PER] = { "gamma_per", AT_SCALAR_CHOICE, PLACE(gamma_per), AT_QK_GAMMA_CHANNEL,
                    "channel: a gamma for each channel; tensor: one for q, one for k", "gamma_per", .text = gamma_words },
    [GAMMAS]    = { "gammas", AT_SCALAR_SIZE, PLACE(gammas), 0, "channels with a gamma of their own: d or 1", .word = "factor" },
};
static const struct at_tensor_spec tensors[] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "queries", AT_FILL_ROWS },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "keys", AT_FILL_ROWS },
    { "alpha_q", AT_IN, AT_FORMAT_F32, { AT_DIM_d }, "slope for q", AT_FILL_SLOPE },
    { "alpha_k", AT_IN, AT_FORMAT_F32, { AT_DIM_d }, "slope for k", AT_FILL_SLOPE },
    { "gamma_q", AT_IN, AT_FORMAT_F32, { AT_DIM_OWN(GAMMAS) }, "factor for q", AT_FILL_FACTOR },
    { "gamma_k", AT_IN, AT_FORMAT_F32, { AT_DIM_OWN(GAMMAS) }, "factor for k", AT_FILL_FACTOR },
    { "q_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "normalised queries" },
    { "k_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "normalised keys" },
};
static const struct at_decoy_spec decoys[] = {
    { "unclamped", "the clamp is missing" },
    { "no_alpha", "alpha is missing" },
    { "no_gamma", "gamma is missing" },
    { "next_channel", "parameters of the next channel" },
    { "swapped_parameters", "q with the parameters of k, and k with those of q" },
};
/* clang-format on */

/* The first decoys are listed in the order of enum at_uclip_fault. */
enum { SWAPPED_PARAMETERS = 4 };

static void one_tensor(const struct at_norm_call *call, int in, int out, int alpha, int gamma, int64_t first,
                       int64_t count) {
    const struct at_problem *p = call->problem;
    struct at_uclip uclip = { &p->tensors[alpha], &p->tensors[gamma], NULL, p->params.lo, p->params.hi };
    int named = call->mode == AT_NORM_DECOY && call->decoy < SWAPPED_PARAMETERS;
    enum at_uclip_fault fault = named ? (enum at_uclip_fault)(call->decoy + 1) : AT_UCLIP_RIGHT;
    for (int64_t i = first; i < first + count; i++) {
        struct at_bounded x = { at_tensor_get(&p->tensors[in], i), 0 }, y;
        int64_t c = i % p->sizes.d;
        if (call->mode == AT_NORM_MODEL)
            y = (struct at_bounded){ at_round(p->dtype, at_uclip_declared(&uclip, call->numerics, c, x.value)), 0 };
        else
            y = at_bounded_store(&call->arith, p->dtype, at_uclip_bounded(&uclip, &call->arith, c, x, fault));
        at_norm_put(call, out, i, y);
    }
}

static at_status row(const struct at_norm_call *call, int64_t token) {
    const struct at_sizes *s = &call->problem->sizes;
    int swapped = call->mode == AT_NORM_DECOY && call->decoy == SWAPPED_PARAMETERS;
    int aq = swapped ? AT_QK_UCLIP_ALPHA_K : AT_QK_UCLIP_ALPHA_Q,
        ak = swapped ? AT_QK_UCLIP_ALPHA_Q : AT_QK_UCLIP_ALPHA_K;
    int gq = swapped ? AT_QK_UCLIP_GAMMA_K : AT_QK_UCLIP_GAMMA_Q,
        gk = swapped ? AT_QK_UCLIP_GAMMA_Q : AT_QK_UCLIP_GAMMA_K;
    one_tensor(call, AT_QK_UCLIP_Q, AT_QK_UCLIP_Q_OUT, aq, gq, token * s->h * s->d, s->h * s->d);
    one_tensor(call, AT_QK_UCLIP_K, AT_QK_UCLIP_K_OUT, ak, gk, token * s->hk * s->d, s->hk * s->d);
    return AT_OK;
}

AT_NORM_EVALUATIONS(row)

static int64_t gammas_of(const struct at_problem *p) {
    return at_qk_uclip_own_of(p).gamma_per == AT_QK_GAMMA_TENSOR ? 1 : p->sizes.d;
}

static void complete(struct at_problem *p, unsigned given) {
    struct at_qk_uclip_own z = at_qk_uclip_own_of(p);
    (void)given;
    z.gammas = gammas_of(p);
    at_qk_uclip_own_set(p, &z);
}

static at_status check(const struct at_problem *p) {
    const struct at_qk_uclip_own z = at_qk_uclip_own_of(p);
    AT_TRY(at_norm_check(p));
    if (z.gamma_per != AT_QK_GAMMA_CHANNEL && z.gamma_per != AT_QK_GAMMA_TENSOR)
        return AT_FAIL(AT_USAGE, "qk_uclip_norm: gamma_per is %d, wanted 0 or 1", (int)z.gamma_per);
    if (z.gammas != gammas_of(p))
        return AT_FAIL(AT_USAGE, "qk_uclip_norm: gammas is %lld, wanted %lld", (long long)z.gammas,
                       (long long)gammas_of(p));
    return AT_OK;
}

static const char *const keys[] = { "h",  "hk", "d",         "tokens",  "dtype",  "data", "seed",
                                    "lo", "hi", "gamma_per", "require", "expect", NULL };
static const struct at_factor heads = {
    .name = "heads",
    .meaning = "of q and of k",
    .classes = AT_CLASSES("h=8 hk=4", "h=1 hk=1", "h=6 hk=2", "h=3 hk=1", "h=8 hk=8"),
    .far = AT_CLASSES("h=32 hk=8"),
};
static const struct at_factor head_size = {
    .name = "d",
    .meaning = "about vector widths",
    .classes = AT_CLASSES("d=64", "d=128", "d=8,32,96", "d=1,2,5", "d=31,33,100"),
    .far = AT_CLASSES("d=512,257"),
};
static const struct at_factor of_gamma = {
    .name = "gamma",
    .meaning = "what has one",
    .classes = AT_CLASSES("gamma_per=channel", "gamma_per=tensor"),
};
static const struct at_factor *const domain[] = { &heads,        &head_size,    &at_norm_tokens, &at_norm_dtype,
                                                  &at_norm_data, &at_norm_ends, &of_gamma,       NULL };

const struct at_op at_op_qk_uclip_norm = {
    .name = "qk_uclip_norm",
    .summary = "UClip norm of q and k per head, in one launch",
    .source = "000 §6.1, §6.9",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = sizeof decoys / sizeof *decoys,
    .uses = AT_USES(h) | AT_USES(hk) | AT_USES(d) | AT_USES(tokens) | AT_USES(lo) | AT_USES(hi),
    .own = own,
    .n_own = FIELDS,
    .complete = complete,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES(qk_unit) | AT_DECLARES(clamp), /* there is no shift to fuse */
    AT_NORM_FUNCTIONS_AND(check),
};
