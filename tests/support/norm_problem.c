/* Norm problems for tests: random shapes, data families, parameters and declarations.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/norm_problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "special/special.h"
#include "tests/support/built_case.h"

const struct at_op *at_test_norm_op(int i) {
    static const char *const names[AT_TEST_NORMS] = { "uclip_norm",
                                                      "add_uclip_norm",
                                                      "qk_uclip_norm",
                                                      "rms_norm",
                                                      "post_attn_pre_mlp_uclip",
                                                      "add_rms_norm",
                                                      "post_attn_pre_mlp_uclip_in_place" };
    return at_op_find(names[i]);
}

int at_test_norm_is_rms(const struct at_op *op) { return op->takes_mean_square; }

static int is_activation(const struct at_op *op, int tensor) {
    return op->tensors[tensor].role != AT_OUT && op->tensors[tensor].format == AT_FORMAT_DTYPE;
}

void at_test_norm_problem(const struct at_op *op, const struct at_test_norm_shape *shape, struct at_test_problem *out) {
    struct at_problem *p = &out->problem;
    const int per_head = at_op_tensor_index(op, "q") >= 0;
    memset(out, 0, sizeof *out);
    p->op = op;
    p->dtype = shape->dtype;
    p->params = at_params_default();
    p->sizes.tokens = shape->tokens;
    if (per_head) {
        p->sizes.h = shape->h > 0 ? shape->h : 2;
        p->sizes.hk = shape->hk > 0 ? shape->hk : 1;
        p->sizes.d = shape->channels;
    } else {
        p->sizes.channels = shape->channels;
    }
    if (shape->one_gamma)
        at_scalar_set(p, at_op_scalar(op, "gamma_per"), 1);
    if (op->complete)
        op->complete(p, 0);
    at_problem_shape(p);
    size_t bytes = 16;
    for (int i = 0; i < op->n_tensors; i++)
        bytes += (size_t)at_tensor_bytes(&p->tensors[i]) + 16;
    unsigned char *next = out->memory = calloc(1, bytes);
    if (!next)
        abort();
    for (int i = 0; i < op->n_tensors; i++) {
        struct at_tensor *x = &p->tensors[i];
        if (op->tensors[i].role == AT_OUT || x->rank == 0)
            continue;
        x->data = next;
        next += (at_tensor_bytes(x) + 15) / 16 * 16;
        if (!is_activation(op, i) && strncmp(op->tensors[i].name, "beta", 4) != 0)
            at_test_set_all(p, op->tensors[i].name, 1);
    }
}

/* ---- random problems ---- */

static double random_sign(struct at_test_random *random) { return at_test_below(random, 2) ? -1 : 1; }

/* 1 to 2, times 2^low .. 2^(low + n - 1), either sign. */
static double wide(struct at_test_random *random, int low, int n) {
    return random_sign(random) * (1 + at_test_uniform(random)) * exp2((double)(low + at_test_below(random, n)));
}

static void draw_parameters(struct at_test_random *random, struct at_problem *p) {
    const int kind = at_test_below(random, 4);
    for (int i = 0; i < p->op->n_tensors; i++) {
        const char *name = p->op->tensors[i].name;
        if (p->op->tensors[i].role == AT_OUT || is_activation(p->op, i))
            continue;
        for (int64_t j = 0; j < at_tensor_count(&p->tensors[i]); j++) {
            double value = at_test_get(p, name, j); /* kind 0: as the case has it */
            if (kind == 1)
                value = name[0] == 'b' && at_test_below(random, 2) ? 0 : wide(random, -4, 8);
            if (kind == 2)
                value = wide(random, -60, 120);
            if (kind == 3)
                value = name[0] == 'b' ? 0 : exp2((double)(at_test_below(random, 5) - 2));
            at_test_set(p, name, j, value);
        }
    }
}

static void draw_scalars(struct at_test_random *random, struct at_problem *p) {
    static const float ends[][2] = { { -1, 1 },       { -1, 1 },         { 0, 1 },        { -0.5f, 0 },
                                     { 0.25f, 0.5f }, { -1000, 100000 }, { 0, INFINITY }, { -0x1p-100f, 0x1p-100f } };
    static const float eps[] = { 1e-6f, 1e-6f, 1e-5f, 0, 1, 0x1p-140f };
    const int end = at_test_below(random, 8);
    p->params.lo = ends[end][0];
    p->params.hi = ends[end][1];
    p->params.eps = eps[at_test_below(random, 6)];
    p->params.from = at_test_below(random, 2);
}

/* Element i of an activation bent in the given way. */
static double bent(struct at_test_random *random, int way, enum at_format dtype, int64_t i, double x) {
    const struct at_format_info *f = at_format_info(dtype);
    switch (way) {
    case 0: /* every exponent the format has */
        return wide(random, f->emin - f->precision, f->emax - f->emin + f->precision);
    case 1: /* the last binade before infinity */
        return random_sign(random) * f->max * (1 - 0.01 * at_test_uniform(random));
    case 2: /* squares on either side of the end of f32's range */
        return wide(random, dtype == AT_F16 ? 8 : 58, 6);
    case 3: /* swamped: one large, the rest around half of an f32 ulp of its square */
        return i ? exp2(-12.0) * (0.75 + 0.5 * at_test_uniform(random)) : 1 + at_test_uniform(random);
    default: /* squares around the least f32 number */
        return x * exp2((double)(at_test_below(random, 10) - 78));
    }
}

static void bend(struct at_test_random *random, struct at_problem *p) {
    const int way = at_test_below(random, 10), odd = at_test_below(random, 24);
    for (int t = 0; t < p->op->n_tensors; t++) {
        if (!is_activation(p->op, t))
            continue;
        const char *name = p->op->tensors[t].name;
        const int64_t n = at_tensor_count(&p->tensors[t]);
        for (int64_t i = 0; i < n && way < 5; i++)
            at_test_set(p, name, i, bent(random, way, p->dtype, i, at_test_get(p, name, i)));
        if (odd < 3)
            at_test_set(p, name, (int64_t)(at_test_bits(random) % (uint64_t)n),
                        (double[]){ INFINITY, -INFINITY, NAN }[at_test_below(random, 3)]);
        if (odd == 3) /* a row, or all of one, of zeros */
            at_test_set_all(p, name, 0);
    }
}

void at_test_norm_draw(const struct at_op *op, struct at_test_random *random, int max_channels,
                       struct at_test_problem *out) {
    static const char *const data[] = { "normal",      "same_sign", "uniform",    "heavy_tail", "outlier_channel",
                                        "near_65504",  "overflow",  "cancel",     "ties",       "subnormal",
                                        "random_bits", "nonfinite", "adversarial" };
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16 };
    struct at_test_norm_shape shape = { .tokens = 1 + at_test_below(random, 5),
                                        .channels =
                                            1 + at_test_below(random, at_test_below(random, 3) ? max_channels : 4),
                                        .hk = 1 + at_test_below(random, 2),
                                        .dtype = formats[at_test_below(random, 3)] };
    shape.h = shape.hk * (1 + at_test_below(random, 2));
    char line[256], heads[64];
    const int per_head = at_op_tensor_index(op, "q") >= 0;
    shape.one_gamma = per_head && at_test_below(random, 2);
    snprintf(heads, sizeof heads, per_head ? "h=%lld hk=%lld gamma_per=%s d" : "channels", (long long)shape.h,
             (long long)shape.hk, shape.one_gamma ? "tensor" : "channel");
    snprintf(line, sizeof line, "%s tokens=%lld %s=%lld dtype=%s data=%s seed=%d", op->name, (long long)shape.tokens,
             heads, (long long)shape.channels, at_format_info(shape.dtype)->name, data[at_test_below(random, 13)],
             at_test_below(random, 1000000));
    struct at_built_case built = at_build_line(line);
    at_test_norm_problem(op, &shape, out);
    for (int i = 0; i < op->n_tensors; i++)
        if (op->tensors[i].role != AT_OUT)
            memcpy(out->problem.tensors[i].data, built.data.problem.tensors[i].data,
                   (size_t)at_tensor_bytes(&out->problem.tensors[i]));
    at_drop_case(&built);
    draw_parameters(random, &out->problem);
    draw_scalars(random, &out->problem);
    bend(random, &out->problem);
}

struct at_numerics at_test_norm_numerics(struct at_test_random *random) {
    static const int units[] = { AT_UNIT_F32, AT_UNIT_F32_FMA, AT_UNIT_F32, AT_UNIT_F32_FMA, AT_UNIT_F64 };
    struct at_numerics n = at_numerics_default();
    n.qk_unit = units[at_test_below(random, 5)];
    n.qk_lanes = 1 << at_test_below(random, 6);
    n.qk_run = at_test_below(random, 3);
    n.qk_tree = at_test_below(random, 2);
    n.fir_fma = at_test_below(random, 2);
    n.clamp = at_test_below(random, 2);
    n.rsqrt = n.qk_unit == AT_UNIT_F64 ? AT_RSQRT_LIBM : at_test_below(random, 3);
    return n;
}

/* The float farthest from 1/sqrt(m) in this direction and yet no farther than the special-function unit can be. */
static float rsqrt_off(float m, int direction) {
    const double exact = 1 / sqrt((double)m);
    if (!(exact > 0) || isinf(exact)) /* of infinity, NaN, 0: exact */
        return (float)exact;
    float r = (float)exact;
    for (float next = r; isfinite(next) && fabs((double)next - exact) <= AT_SPECIAL_RSQRT_ERROR * exact;
         next = nextafterf(next, direction > 0 ? INFINITY : 0))
        r = next;
    return r;
}

void at_test_rms_kernel(int64_t n, const float *x, const float *gamma, float eps, int direction, float *y) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum = fmaf(x[i], x[i], sum);
    const float r = rsqrt_off(sum / (float)n + eps, direction);
    for (int64_t i = 0; i < n; i++) {
        float scaled = x[i] * r;
        y[i] = gamma[i] * scaled;
    }
}
