/* Rotary position embedding: pairs of channels of q and of k turn by the position of their token (rotation/rotation.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "rope/rope.h"

#include <string.h>

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "queries", AT_FILL_ROWS },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "keys", AT_FILL_ROWS },
    { "positions", AT_IN, AT_FORMAT_I32, { AT_DIM_tokens }, "place of each token in its request: a row of cos_sin", AT_FILL_POSITIONS },
    { "cos_sin", AT_IN, AT_FORMAT_OWN, { AT_DIM_OWN(AT_ROPE_MAX_POSITION), AT_DIM_OWN(AT_ROPE_ROT) }, "rot/2 cosines, then rot/2 sines of each position", AT_FILL_ROTARY },
    { "q_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "rotated queries" },
    { "k_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "rotated keys" },
};
static const struct at_decoy_spec decoys[AT_ROPE_FAULTS] = { AT_ROPE_DECOYS };
/* clang-format on */

static at_status check(const struct at_problem *p) {
    const struct at_sizes *s = &p->sizes;
    if (s->tokens < 0)
        return AT_FAIL(AT_USAGE, "rope: tokens is %lld, wanted 0 or more", (long long)s->tokens);
    if (s->h < 1 || s->hk < 1 || s->d < 1)
        return AT_FAIL(AT_USAGE, "rope: h, hk, d are %lld, %lld, %lld, wanted 1 or more", (long long)s->h,
                       (long long)s->hk, (long long)s->d);
    AT_TRY(at_rope_check_own(p));
    AT_TRY(at_rope_check_shapes(p));
    return at_rope_check_positions(p, AT_ROPE_POSITIONS);
}

/* ---- rows: tokens ---- */

static int64_t rows(const struct at_problem *p) { return p->sizes.tokens; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    *count = (tensor == AT_ROPE_Q_OUT ? p->sizes.h : p->sizes.hk) * p->sizes.d;
    *first = row * *count;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return 2.0 * (double)((p->sizes.h + p->sizes.hk) * p->sizes.d);
}

/* Channels from rot on. */
static void bits(const struct at_problem *p, int t, void *codes, unsigned char *computed) {
    const struct at_tensor *in = &p->tensors[t - AT_ROPE_Q_OUT + AT_ROPE_Q];
    const int64_t d = p->sizes.d, rot = at_rope_own_of(p).rot, n = at_tensor_count(in);
    memcpy(codes, in->data, (size_t)at_tensor_bytes(in));
    for (int64_t i = 0; i < n; i++)
        computed[i] = i % d < rot;
}

/* Of the table: each position's row once, however many tokens stand there. */
static int64_t moved(const struct at_problem *p, int tensor) {
    return tensor == AT_ROPE_COS_SIN ? at_rope_used_positions(p, AT_ROPE_POSITIONS) * at_rope_own_of(p).rot
                                     : at_tensor_count(&p->tensors[tensor]);
}

/* ---- evaluations ---- */

static at_status walk(struct at_rotation call, int64_t row0, int64_t row1) {
    const struct at_sizes *sizes = &call.problem->sizes;
    const int64_t h = sizes->h, hk = sizes->hk;
    at_rotation_init(&call);
    at_rotation_begin(&call, row0);
    for (int64_t token = row0; token < row1; token++) {
        at_rotation_next(&call, token);
        at_rotation_heads(&call, AT_ROPE_Q, token, AT_ROPE_Q_OUT, token, h, call.fault == AT_ROPE_HEADS_OF_K ? hk : h);
        at_rotation_heads(&call, AT_ROPE_K, token, AT_ROPE_K_OUT, token, hk, call.fault == AT_ROPE_K_COPIED ? 0 : hk);
    }
    return AT_OK;
}

static struct at_rotation rotation_of(const struct at_problem *p, const struct at_numerics *numerics, int fault,
                                      struct at_eval *eval) {
    return (struct at_rotation){ .problem = p,
                                 .numerics = numerics,
                                 .eval = eval,
                                 .positions = AT_ROPE_POSITIONS,
                                 .table = AT_ROPE_COS_SIN,
                                 .fault = fault };
}

at_status at_rope_evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                           struct at_eval *eval) {
    return walk(rotation_of(p, numerics, AT_ROPE_RIGHT, eval), row0, row1);
}

at_status at_rope_model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                        struct at_eval *eval) {
    struct at_rotation modelled = rotation_of(p, numerics, AT_ROPE_RIGHT, eval);
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "rope: no order is declared, so there is no modelled value");
    modelled.modelled = 1;
    return walk(modelled, row0, row1);
}

at_status at_rope_decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                        int64_t row1, struct at_eval *eval) {
    return walk(rotation_of(p, numerics, which, eval), row0, row1);
}

/* ---- cases ---- */

static const char *const keys[] = { "scenario", "shrink",  "step",         "b",       "h",     "hk",
                                    "sq",       "sk",      "prefix",       "d",       "rot",   "style",
                                    "base",     "table",   "max_position", "padding", "dtype", "data",
                                    "seed",     "require", "expect",       NULL };
/* clang-format off */
static const struct at_factor batch = { .name = "batch", .meaning = "new tokens of requests", .classes = AT_CLASSES("b=3 sq=1/7/0", "b=1 sq=1", "b=5 sq=1", "b=2 sq=17/40", "b=2 sq=9"), .far = AT_CLASSES("b=96,130 sq=1/0/2", "b=1 sq=300"), .any = "b=2 sq=1..40" };
static const struct at_factor before = { .name = "before", .meaning = "tokens before them", .classes = AT_CLASSES("prefix=20", "prefix=0", "prefix=300/0", "prefix=257"), .far = AT_CLASSES("prefix=16383,40000"), .any = "prefix=0..600" };
static const struct at_factor heads = { .name = "heads", .meaning = "of q and of k", .classes = AT_CLASSES("h=8 hk=4", "h=1 hk=1", "h=6 hk=2", "h=3 hk=1", "h=8 hk=8"), .far = AT_CLASSES("h=32 hk=8") };
static const struct at_factor head_size = { .name = "d", .meaning = "about vector widths, and the part that is rotated", .classes = AT_CLASSES("d=64", "d=128", "d=96,80", "d=128 rot=32,64", "d=40 rot=16", "d=2,6,12", "d=20,100 rot=10", "d=3,7,33", "d=256 rot=64"), .far = AT_CLASSES("d=512,258"), .any = "d=2..130" };
static const struct at_factor padding = { .name = "padding", .meaning = "tokens of no request", .classes = AT_CLASSES("padding=0", "padding=1", "padding=3,5") };
static const struct at_factor dtype = { .name = "dtype", .meaning = "format of the activations", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
static const struct at_factor values = { .name = "data", .meaning = "what the values look like", .classes = AT_CLASSES("data=normal", "data=exact", "data=uniform,same_sign", "data=heavy_tail,outlier_channel", "data=subnormal,ties") };
static const struct at_factor *const domain[] = { &batch, &before, &heads, &head_size, &at_rope_factor_style, &at_rope_factor_table, &at_rope_factor_base, &padding, &dtype, &values, NULL };
/* clang-format on */

const struct at_op at_op_rope = {
    .name = "rope",
    .summary = "rotary position embedding of q and k: pairs of channels turn by a table of cosines and sines",
    .source = "000 §6.9, §7.1",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_ROPE_FAULTS,
    .kind = AT_KIND_ROWS,
    .uses = AT_USES(h) | AT_USES(hk) | AT_USES(d) | AT_USES(tokens),
    .own = at_rope_scalars,
    .n_own = AT_ROPE_SCALARS,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES(fir_fma),
    .complete = at_rope_complete,
    .own_format = at_rope_own_format,
    .batch = AT_DIM_tokens,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = at_rope_evaluate,
    .model = at_rope_model,
    .decoy = at_rope_decoy,
    .bits = bits,
    .moved = moved,
};
