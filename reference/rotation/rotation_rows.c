/* Rotations of heads of tokens: exact values with limits, the declared arithmetic, and ways of being wrong.
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
#include "rotation/rotation.h"

#include <math.h>

#include "attest/rotary.h"

static const double REFERENCE_U = 0x1p-53;

double at_rope_test_u[AT_ROPE_STAGES] = { 1, 1, 1, 1 }, at_rope_test_eta[AT_ROPE_STAGES] = { 1, 1, 1, 1 };

/* ---- limits ---- */

/* One rounding of something as large as `size`; +inf where it may leave the format's range. */
static double rounding(enum at_rope_stage stage, const struct at_format_info *f, double size, int underflows) {
    if (!(size < f->end))
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

static int64_t position_of(const struct at_rotation *r, int64_t token) {
    return at_tensor_i32(&r->problem->tensors[r->positions], token);
}

/* Tokens of a request are contiguous, in the order of their positions. */
static int continues(const struct at_rotation *r, int64_t token) {
    return token > 0 && position_of(r, token) == position_of(r, token - 1) + 1;
}

static int64_t used_position(const struct at_rotation *r, int64_t token) {
    const int64_t position = position_of(r, token);
    switch (r->fault) {
    case AT_ROPE_NEXT_POSITION:
        return position + 1;
    case AT_ROPE_PREFIX_DROPPED:
        return token - r->run;
    case AT_ROPE_POSITION_BF16:
        return (int64_t)at_round(AT_BF16, (double)position);
    default:
        return position;
    }
}

/* Column of the table's row; what the table does not have is computed as it would be. */
static double entry(const struct at_rotation *r, int64_t position, int64_t column) {
    const struct at_tensor *table = &r->problem->tensors[r->table];
    const int other = r->fault == AT_ROPE_OTHER_BASE || r->fault == AT_ROPE_WHOLE_HEAD;
    if (!other && position < r->own.max_position)
        return at_tensor_get(table, position * r->own.rot + column);
    return at_round(table->format, at_rotary_entry((double)r->own.base, r->own.rot, position, column));
}

static void put(const struct at_rotation *r, int tensor, int64_t i, double value, double limit) {
    if (r->eval->value[tensor])
        r->eval->value[tensor][i] = value;
    if (r->eval->limit[tensor])
        r->eval->limit[tensor][i] = limit;
}

/* a is x c; b is x s or its negative. */
static void put_sum(const struct at_rotation *r, int tensor, int64_t i, double a, double b) {
    const double value = a + b;
    put(r, tensor, i, value, limit_of(r->problem, r->numerics, fabs(a), fabs(b), value));
}

/* The declared arithmetic: x c + y s; products in double are exact, so that each rounding is the only one. */
static void put_declared(const struct at_rotation *r, int tensor, int64_t i, double x, double c, double y, double s) {
    const float product = (float)(y * s);
    const float cosine = (float)(x * c);
    const float sum = r->numerics->fir_fma ? fmaf((float)x, (float)c, product) : cosine + product;
    put(r, tensor, i, at_round(r->problem->dtype, (double)sum), 0);
}

/* A pair of the heads at `from` of tensor `in` and `to` of `out`. */
struct place {
    int in, out;
    int64_t from, to;
};

static void put_pair(const struct at_rotation *r, struct place at, int64_t pair, double c, double s) {
    const struct at_rope_own *own = &r->own;
    const struct at_tensor *in = &r->problem->tensors[at.in];
    const int64_t first = at_rope_first(own->style, pair), second = at_rope_second(own->style, own->rot, pair);
    const double x1 = at_tensor_get(in, at.from + first), x2 = at_tensor_get(in, at.from + second);
    if (r->modelled) {
        put_declared(r, at.out, at.to + first, x1, c, x2, -s);
        put_declared(r, at.out, at.to + second, x2, c, x1, s);
    } else {
        put_sum(r, at.out, at.to + first, x1 * c, -(x2 * s));
        put_sum(r, at.out, at.to + second, x2 * c, x1 * s);
    }
}

void at_rotation_keep(const struct at_rotation *r, int in, int64_t from, int out, int64_t to, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        put(r, out, to + i, at_tensor_get(&r->problem->tensors[in], from + i), 0);
}

static void copy_rest(const struct at_rotation *r, struct place at, int64_t kept) {
    const int64_t d = r->problem->sizes.d;
    if (r->fault != AT_ROPE_REST_ZEROED)
        at_rotation_keep(r, at.in, at.from + kept, at.out, at.to + kept, d - kept);
    for (int64_t i = kept; r->fault == AT_ROPE_REST_ZEROED && i < d; i++)
        put(r, at.out, at.to + i, 0, 0);
}

void at_rotation_heads(const struct at_rotation *r, int in, int64_t token, int out, int64_t row, int64_t heads,
                       int64_t turned) {
    const int64_t d = r->problem->sizes.d, position = used_position(r, token), pairs = r->own.rot / 2;
    const int swapped = r->fault == AT_ROPE_COS_SIN_SWAPPED;
    for (int64_t pair = 0; pair < pairs; pair++) {
        const double c = entry(r, position, swapped ? pairs + pair : pair);
        const double s = entry(r, position, swapped ? pair : pairs + pair);
        for (int64_t head = 0; head < turned; head++) {
            const struct place at = { in, out, (token * heads + head) * d, (row * heads + head) * d };
            put_pair(r, at, pair, c, r->fault == AT_ROPE_SIN_NEGATED ? -s : s);
        }
    }
    for (int64_t head = 0; head < heads; head++) {
        const struct place at = { in, out, (token * heads + head) * d, (row * heads + head) * d };
        copy_rest(r, at, head < turned ? r->own.rot : 0);
    }
}

void at_rotation_init(struct at_rotation *r) {
    const int64_t even = r->problem->sizes.d - r->problem->sizes.d % 2;
    r->own = at_rope_own_of(r->problem);
    r->run = 0;
    if (r->fault == AT_ROPE_OTHER_STYLE)
        r->own.style = r->own.style == AT_ROPE_HALF_SPLIT ? AT_ROPE_INTERLEAVED : AT_ROPE_HALF_SPLIT;
    if (r->fault == AT_ROPE_OTHER_BASE)
        r->own.base *= 50;
    if (r->fault == AT_ROPE_WHOLE_HEAD && r->own.rot == even)
        r->fault = AT_ROPE_RIGHT;
    if (r->fault == AT_ROPE_WHOLE_HEAD)
        r->own.rot = even;
}

void at_rotation_begin(struct at_rotation *r, int64_t token) {
    for (r->run = token; continues(r, r->run);)
        r->run--;
}

void at_rotation_next(struct at_rotation *r, int64_t token) {
    if (!continues(r, token))
        r->run = token;
}
