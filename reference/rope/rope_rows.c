/* Rotations of rows of tokens: exact values with limits, the declared arithmetic, and ways of being wrong.
 * SPDX-License-Identifier: Apache-2.0
 *
 * y1 = x1 c - x2 s and y2 = x2 c + x1 s, with c and s as the table has them. In double both products are exact (48 bits at
 * most), so that the sum's rounding is the reference's only error.
 *
 * Declared arithmetic, in f32: the product with s is rounded. fir_fma = 0: so is the product with c, and then the sum;
 * fir_fma = 1: the product with c and the sum are one fma. The result is rounded once more to the format of the output.
 *
 * Limit. fl(a op b) = (a op b)(1 + t) + e with |t| <= u and |e| <= eta, one of the two 0; a sum of two numbers of a format
 * is exact where it underflows, a product or an fma is not. So the products are off by u |x c| + eta and u |x s| + eta (the
 * first not where it is fused), the sum by u times the largest that it can be (fused: + eta), the store by the same in the
 * output's format; where one of these can reach what rounds to infinity, nothing is promised. An order that is not
 * declared (free_order = 1) may fuse either product: the bound of three roundings is never less than that of two. */
#include "rope/rope.h"

#include <math.h>

#include "attest/rotary.h"

static const double REFERENCE_U = 0x1p-53;

double at_rope_test_u[AT_ROPE_STAGES] = { 1, 1, 1, 1 }, at_rope_test_eta[AT_ROPE_STAGES] = { 1, 1, 1, 1 };

/* ---- limits ---- */

static double end_of_range(const struct at_format_info *f) { return f->max + ldexp(1.0, f->emax - f->precision); }

/* One rounding of something as large as `size`; +inf where it may leave the format's range. */
static double rounding(enum at_rope_stage stage, const struct at_format_info *f, double size, int underflows) {
    if (!(size < end_of_range(f)))
        return INFINITY;
    return size > 0 ? at_rope_test_u[stage] * f->u * size + (underflows ? at_rope_test_eta[stage] * f->eta : 0) : 0;
}

/* |x c|, |x s|, and their exact sum or difference. */
static double limit_of(const struct at_problem *p, const struct at_numerics *numerics, double cosine, double sine,
                       double value) {
    const struct at_format_info *f32 = at_format_info(AT_F32), *out = at_format_info(p->dtype);
    const double own = REFERENCE_U * fabs(value);
    if (!isfinite(value))
        return 0;
    if (!numerics)
        return own;
    const int fused = numerics->fir_fma && !numerics->free_order;
    double error = rounding(AT_ROPE_SIN_PRODUCT, f32, sine, 1);
    if (!fused)
        error += rounding(AT_ROPE_COS_PRODUCT, f32, cosine, 1);
    error += rounding(AT_ROPE_SUM, f32, fabs(value) + error, fused);
    if (p->dtype != AT_F32)
        error += rounding(AT_ROPE_STORE, out, fabs(value) + error, 1);
    return error + own;
}

/* ---- rows ---- */

struct call {
    const struct at_problem *problem;
    const struct at_numerics *numerics;
    struct at_eval *eval;
    struct at_rope_own own; /* as the fault has it */
    int modelled, fault;
    int64_t run; /* first token of the present one's request */
};

static int64_t position_of(const struct at_problem *p, int64_t token) {
    return at_tensor_i32(&p->tensors[AT_ROPE_POSITIONS], token);
}

/* Tokens of a request are contiguous, in the order of their positions. */
static int continues(const struct at_problem *p, int64_t token) {
    return token > 0 && position_of(p, token) == position_of(p, token - 1) + 1;
}

static int64_t used_position(const struct call *call, int64_t token) {
    const int64_t position = position_of(call->problem, token);
    switch (call->fault) {
    case AT_ROPE_NEXT_POSITION:
        return position + 1;
    case AT_ROPE_PREFIX_DROPPED:
        return token - call->run;
    case AT_ROPE_POSITION_BF16:
        return (int64_t)at_round(AT_BF16, (double)position);
    default:
        return position;
    }
}

/* Column of the table's row; what the table does not have is computed as it would be. */
static double entry(const struct call *call, int64_t position, int64_t column) {
    const struct at_tensor *table = &call->problem->tensors[AT_ROPE_COS_SIN];
    const int other = call->fault == AT_ROPE_OTHER_BASE || call->fault == AT_ROPE_WHOLE_HEAD;
    if (!other && position < call->own.max_position)
        return at_tensor_get(table, position * call->own.rot + column);
    return at_round(table->format, at_rotary_entry((double)call->own.base, call->own.rot, position, column));
}

static void put(const struct call *call, int tensor, int64_t i, double value, double limit) {
    if (call->eval->value[tensor])
        call->eval->value[tensor][i] = value;
    if (call->eval->limit[tensor])
        call->eval->limit[tensor][i] = limit;
}

/* a is x c; b is x s or its negative. */
static void put_sum(const struct call *call, int tensor, int64_t i, double a, double b) {
    const double value = a + b;
    put(call, tensor, i, value, limit_of(call->problem, call->numerics, fabs(a), fabs(b), value));
}

/* The declared arithmetic: x c + y s; products in double are exact, so that each rounding is the only one. */
static void put_declared(const struct call *call, int tensor, int64_t i, double x, double c, double y, double s) {
    const float product = (float)(y * s);
    const float cosine = (float)(x * c);
    const float sum = call->numerics->fir_fma ? fmaf((float)x, (float)c, product) : cosine + product;
    put(call, tensor, i, at_round(call->problem->dtype, (double)sum), 0);
}

static void put_pair(const struct call *call, int out, int64_t head, int64_t pair, double c, double s) {
    const struct at_rope_own *own = &call->own;
    const struct at_tensor *in = &call->problem->tensors[out - AT_ROPE_Q_OUT + AT_ROPE_Q];
    const int64_t first = head + at_rope_first(own->style, pair),
                  second = head + at_rope_second(own->style, own->rot, pair);
    const double x1 = at_tensor_get(in, first), x2 = at_tensor_get(in, second);
    if (call->modelled) {
        put_declared(call, out, first, x1, c, x2, -s);
        put_declared(call, out, second, x2, c, x1, s);
    } else {
        put_sum(call, out, first, x1 * c, -(x2 * s));
        put_sum(call, out, second, x2 * c, x1 * s);
    }
}

static void copy_channels(const struct call *call, int out, int64_t first, int64_t n) {
    const struct at_tensor *in = &call->problem->tensors[out - AT_ROPE_Q_OUT + AT_ROPE_Q];
    for (int64_t i = first; i < first + n; i++)
        put(call, out, i, call->fault == AT_ROPE_REST_ZEROED ? 0 : at_tensor_get(in, i), 0);
}

/* All heads of a token in one of the two tensors; `turned` of them are rotated. */
static void put_heads(const struct call *call, int out, int64_t token, int64_t heads, int64_t turned) {
    const int64_t d = call->problem->sizes.d, position = used_position(call, token), pairs = call->own.rot / 2;
    const int swapped = call->fault == AT_ROPE_COS_SIN_SWAPPED;
    for (int64_t pair = 0; pair < pairs; pair++) {
        const double c = entry(call, position, swapped ? pairs + pair : pair);
        const double s = entry(call, position, swapped ? pair : pairs + pair);
        for (int64_t head = 0; head < turned; head++)
            put_pair(call, out, (token * heads + head) * d, pair, c, call->fault == AT_ROPE_SIN_NEGATED ? -s : s);
    }
    for (int64_t head = 0; head < heads; head++) {
        const int64_t kept = head < turned ? call->own.rot : 0;
        copy_channels(call, out, (token * heads + head) * d + kept, d - kept);
    }
}

static void walk(struct call *call, int64_t row0, int64_t row1) {
    const struct at_sizes *sizes = &call->problem->sizes;
    const int64_t h = sizes->h, hk = sizes->hk;
    for (call->run = row0; continues(call->problem, call->run);)
        call->run--;
    for (int64_t token = row0; token < row1; token++) {
        if (!continues(call->problem, token))
            call->run = token;
        put_heads(call, AT_ROPE_Q_OUT, token, h, call->fault == AT_ROPE_HEADS_OF_K ? hk : h);
        put_heads(call, AT_ROPE_K_OUT, token, hk, call->fault == AT_ROPE_K_COPIED ? 0 : hk);
    }
}

at_status at_rope_evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                           struct at_eval *eval) {
    struct call call = { p, numerics, eval, at_rope_own_of(p), 0, AT_ROPE_RIGHT, 0 };
    walk(&call, row0, row1);
    return AT_OK;
}

at_status at_rope_model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                        struct at_eval *eval) {
    struct call call = { p, numerics, eval, at_rope_own_of(p), 1, AT_ROPE_RIGHT, 0 };
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "rope: no order is declared, so there is no modelled value");
    walk(&call, row0, row1);
    return AT_OK;
}

at_status at_rope_decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                        int64_t row1, struct at_eval *eval) {
    struct call call = { p, numerics, eval, at_rope_own_of(p), 0, which, 0 };
    const int64_t even = p->sizes.d - p->sizes.d % 2;
    if (which == AT_ROPE_OTHER_STYLE)
        call.own.style = call.own.style == AT_ROPE_HALF_SPLIT ? AT_ROPE_INTERLEAVED : AT_ROPE_HALF_SPLIT;
    if (which == AT_ROPE_OTHER_BASE)
        call.own.base *= 50;
    if (which == AT_ROPE_WHOLE_HEAD && call.own.rot == even)
        call.fault = AT_ROPE_RIGHT;
    if (call.fault == AT_ROPE_WHOLE_HEAD)
        call.own.rot = even;
    walk(&call, row0, row1);
    return AT_OK;
}
