/* Rotary position embedding: pairs of channels of q and of k turn by the position of their token.
 * SPDX-License-Identifier: Apache-2.0
 *
 * In each head the first `rot` channels are pairs, and pair i of a token at position p turns by p * base^(-2 i / rot):
 *
 *   y1 = x1 cos - x2 sin     y2 = x2 cos + x1 sin
 *
 * Channels from rot on are copied, to the bit (a model that rotates a part of each head). Cosines and sines are an input, a
 * table of one row a position, which a model computes once: whoever fills it decides what an angle is, and kernels only
 * read it. `base` says what it was filled by; no kernel needs it. */
#include "rope/rope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROT, MAX_POSITION, BASE, STYLE, TABLE, SCALARS };

static const char *style_text(int i) {
    static const char *const words[] = { "half_split", "interleaved" };
    return i >= 0 && i < 2 ? words[i] : NULL;
}

static const char *table_text(int i) {
    static const char *const words[] = { "f32", "input" };
    return i >= 0 && i < 2 ? words[i] : NULL;
}

#define PLACE(member) AT_OWN_PLACE(at_rope_own, member)

/* clang-format off */
static const struct at_scalar own_table[SCALARS] = {
    [ROT]          = { "rot", AT_SCALAR_SIZE, PLACE(rot), 0, "channels of a head that are rotated: at most d, and one less where that is odd; default d", "rot", 0, 4096, .word = "column" },
    [MAX_POSITION] = { "max_position", AT_SCALAR_SIZE, PLACE(max_position), 1, "positions that the table has: at least the longest request's, the default", "max_position", 1, 1 << 26, .word = "position" },
    [BASE]         = { "base", AT_SCALAR_FLOAT, PLACE(base), 10000, "pair i turns by base^(-2 i / rot) a position", "base", 1, 1e12 },
    [STYLE]        = { "style", AT_SCALAR_CHOICE, PLACE(style), AT_ROPE_HALF_SPLIT, "half_split: pair i is channels i and i + rot/2; interleaved: 2 i and 2 i + 1", "style", .text = style_text },
    [TABLE]        = { "table", AT_SCALAR_CHOICE, PLACE(table), AT_ROPE_TABLE_F32, "format of the table: f32, or that of the inputs", "table", .text = table_text },
};
static const struct at_tensor_spec tensors[] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "queries", AT_FILL_ROWS },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "keys", AT_FILL_ROWS },
    { "positions", AT_IN, AT_FORMAT_I32, { AT_DIM_tokens }, "place of each token in its request: a row of cos_sin", AT_FILL_POSITIONS },
    { "cos_sin", AT_IN, AT_FORMAT_OWN, { AT_DIM_OWN(MAX_POSITION), AT_DIM_OWN(ROT) }, "rot/2 cosines, then rot/2 sines of each position", AT_FILL_ROTARY },
    { "q_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "rotated queries" },
    { "k_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "rotated keys" },
};
static const struct at_decoy_spec decoys[AT_ROPE_FAULTS] = {
    [AT_ROPE_SIN_NEGATED]     = { "sin_negated", "pairs turn backwards" },
    [AT_ROPE_COS_SIN_SWAPPED] = { "cos_sin_swapped", "sines are taken for cosines, cosines for sines" },
    [AT_ROPE_OTHER_STYLE]     = { "other_style", "pairs of the other style" },
    [AT_ROPE_NEXT_POSITION]   = { "next_position", "each token turns as the one after it" },
    [AT_ROPE_PREFIX_DROPPED]  = { "prefix_dropped", "positions are counted from a request's first new token" },
    [AT_ROPE_POSITION_BF16]   = { "position_bf16", "positions are rounded to bf16, which has whole numbers up to 256" },
    [AT_ROPE_OTHER_BASE]      = { "other_base", "a table of 50 times the base" },
    [AT_ROPE_WHOLE_HEAD]      = { "whole_head", "all of a head is rotated" },
    [AT_ROPE_REST_ZEROED]     = { "rest_zeroed", "channels from rot on are 0" },
    [AT_ROPE_K_COPIED]        = { "k_copied", "keys are not rotated" },
    [AT_ROPE_HEADS_OF_K]      = { "heads_of_k", "as many heads of q are rotated as k has" },
};
/* clang-format on */

/* ---- the problem ---- */

/* No case has half a pair, channels that a head lacks, or a token beyond the table. */
static void complete(struct at_problem *p, unsigned given) {
    struct at_rope_own own = at_rope_own_of(p);
    if (!(given >> ROT & 1) || own.rot > p->sizes.d)
        own.rot = p->sizes.d;
    own.rot -= own.rot % 2;
    if (own.max_position < p->sizes.max_sk)
        own.max_position = p->sizes.max_sk;
    at_rope_own_set(p, &own);
}

static enum at_format own_format(const struct at_problem *p, int tensor) {
    (void)tensor;
    return at_rope_own_of(p).table == AT_ROPE_TABLE_F32 ? AT_F32 : p->dtype;
}

static at_status check_own(const struct at_problem *p) {
    const struct at_rope_own own = at_rope_own_of(p);
    if (own.rot < 0 || own.rot > p->sizes.d || own.rot % 2)
        return AT_FAIL(AT_USAGE, "rope: rot is %lld, wanted an even number from 0 to d = %lld", (long long)own.rot,
                       (long long)p->sizes.d);
    if (own.max_position < 1)
        return AT_FAIL(AT_USAGE, "rope: max_position is %lld, wanted 1 or more", (long long)own.max_position);
    if (!(own.base >= 1) || !isfinite(own.base))
        return AT_FAIL(AT_USAGE, "rope: base is %g, wanted a finite number from 1 on", (double)own.base);
    if (!style_text(own.style) || !table_text(own.table))
        return AT_FAIL(AT_USAGE, "rope: style and table are %d and %d, wanted 0 or 1 each", (int)own.style,
                       (int)own.table);
    return AT_OK;
}

static at_status check_shape(const struct at_problem *p, int i) {
    const struct at_tensor_spec *spec = &p->op->tensors[i];
    const struct at_tensor *t = &p->tensors[i];
    int64_t wanted = 1, found = at_tensor_count(t);
    for (int k = 0; k < AT_MAX_RANK && spec->dims[k] != AT_DIM_NONE; k++)
        wanted *= at_dim_size(p, spec->dims[k]);
    if (found != wanted)
        return AT_FAIL(AT_USAGE, "rope: tensor %s has %lld elements, wanted %lld", spec->name, (long long)found,
                       (long long)wanted);
    if (spec->role != AT_OUT && found > 0 && !t->data)
        return AT_FAIL(AT_USAGE, "rope: tensor %s has no data", spec->name);
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    const struct at_sizes *s = &p->sizes;
    const int64_t positions = at_rope_own_of(p).max_position;
    if (s->tokens < 0)
        return AT_FAIL(AT_USAGE, "rope: tokens is %lld, wanted 0 or more", (long long)s->tokens);
    if (s->h < 1 || s->hk < 1 || s->d < 1)
        return AT_FAIL(AT_USAGE, "rope: h, hk, d are %lld, %lld, %lld, wanted 1 or more", (long long)s->h,
                       (long long)s->hk, (long long)s->d);
    AT_TRY(check_own(p));
    for (int i = 0; i < p->op->n_tensors; i++)
        AT_TRY(check_shape(p, i));
    for (int64_t token = 0; token < s->tokens; token++) {
        const int64_t position = at_tensor_i32(&p->tensors[AT_ROPE_POSITIONS], token);
        if (position < 0 || position >= positions)
            return AT_FAIL(AT_USAGE, "rope: positions[%lld] is %lld, wanted 0 to %lld, as max_position says",
                           (long long)token, (long long)position, (long long)positions - 1);
    }
    return AT_OK;
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

/* Different positions; 0 where memory lacks for a mark each. */
static int64_t used_positions(const struct at_problem *p) {
    int64_t used = 0;
    char *seen = calloc((size_t)at_rope_own_of(p).max_position, 1);
    for (int64_t token = 0; seen && token < p->sizes.tokens; token++) {
        char *at = &seen[at_tensor_i32(&p->tensors[AT_ROPE_POSITIONS], token)];
        used += !*at;
        *at = 1;
    }
    free(seen);
    return used;
}

/* Of the table: each position's row once, however many tokens stand there. */
static int64_t moved(const struct at_problem *p, int tensor) {
    return tensor == AT_ROPE_COS_SIN ? used_positions(p) * at_rope_own_of(p).rot : at_tensor_count(&p->tensors[tensor]);
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
static const struct at_factor style = { .name = "style", .meaning = "which channels are a pair", .classes = AT_CLASSES("style=half_split", "style=interleaved") };
static const struct at_factor table = { .name = "table", .meaning = "format of the table, and more rows than are used", .classes = AT_CLASSES("table=f32", "table=input", "table=f32 max_position=41000") };
static const struct at_factor base = { .name = "base", .meaning = "of the angles", .classes = AT_CLASSES("base=10000", "base=500000,1000000", "base=1,100") };
static const struct at_factor padding = { .name = "padding", .meaning = "tokens of no request", .classes = AT_CLASSES("padding=0", "padding=1", "padding=3,5") };
static const struct at_factor dtype = { .name = "dtype", .meaning = "format of the activations", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
static const struct at_factor values = { .name = "data", .meaning = "what the values look like", .classes = AT_CLASSES("data=normal", "data=exact", "data=uniform,same_sign", "data=heavy_tail,outlier_channel", "data=subnormal,ties") };
static const struct at_factor *const domain[] = { &batch, &before, &heads, &head_size, &style, &table, &base, &padding, &dtype, &values, NULL };
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
    .own = own_table,
    .n_own = SCALARS,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES(fir_fma),
    .complete = complete,
    .own_format = own_format,
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
