/* Products of matrices for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/gemm_problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/built_case.h"

void at_test_gemm_problem(const struct at_test_gemm_shape *shape, struct at_test_problem *out) {
    struct at_problem *p = &out->problem;
    memset(out, 0, sizeof *out);
    const struct at_gemm_own own = at_gemm_stored((struct at_gemm_own){ .m = shape->m,
                                                                        .n = shape->n,
                                                                        .k = shape->k,
                                                                        .out = (int32_t)shape->out,
                                                                        .layout = (int32_t)shape->layout,
                                                                        .scales = shape->scales,
                                                                        .amax = shape->amax,
                                                                        .bias = (int32_t)shape->bias,
                                                                        .scale_a = 1,
                                                                        .scale_b = 1 });
    at_problem_init(p, &at_op_gemm, shape->dtype);
    at_gemm_own_set(p, &own);
    p->params.scale = shape->scale != 0 ? (float)shape->scale : 1.0f;
    at_problem_shape(p);
    int64_t need = 16;
    for (int t = 0; t < AT_GEMM_D; t++)
        need += (at_tensor_bytes(&p->tensors[t]) + 15) / 16 * 16;
    unsigned char *memory = out->memory = calloc(1, (size_t)need);
    if (!memory)
        abort();
    for (int t = 0; t < AT_GEMM_D; t++) {
        p->tensors[t].data = at_test_count(p, t) ? memory : NULL;
        memory += (at_tensor_bytes(&p->tensors[t]) + 15) / 16 * 16;
    }
    for (int t = AT_GEMM_SCALE_A; shape->scales && t <= AT_GEMM_SCALE_B; t++)
        at_test_set(p, at_op_gemm.tensors[t].name, 0, 1);
}

void at_test_gemm_turned(const struct at_problem *from, struct at_test_problem *out) {
    const struct at_gemm_own z = at_gemm_own_of(from);
    at_test_gemm_problem(&(struct at_test_gemm_shape){ z.m, z.n, z.k, from->dtype, (enum at_format)z.out,
                                                       (double)from->params.scale, AT_GEMM_KN },
                         out);
    for (int64_t i = 0; i < z.m * z.k; i++)
        at_test_set(&out->problem, "a", i, at_test_get(from, "a", i));
    for (int64_t i = 0; i < z.n * z.k; i++)
        at_test_set(&out->problem, "w", i % z.k * z.n + i / z.k, at_test_get(from, "b", i));
}

static double random_sign(struct at_test_random *random) { return at_test_below(random, 2) ? -1 : 1; }

/* 1 to 2, times 2^low .. 2^(low + n - 1), either sign. */
static double wide(struct at_test_random *random, int low, int n) {
    return random_sign(random) * (1 + at_test_uniform(random)) * exp2((double)(low + at_test_below(random, n)));
}

static double bent(struct at_test_random *random, int way, enum at_format dtype) {
    const struct at_format_info *f = at_format_info(dtype);
    switch (way) {
    case 0: /* every exponent the format has */
        return wide(random, f->emin - f->precision, f->emax - f->emin + f->precision);
    case 1: /* products on either side of the end of the format's range */
        return wide(random, f->emax / 2 - 2, 4);
    default: /* below the least normal number, and about 1 */
        return at_test_below(random, 2) ? wide(random, f->emin - f->precision, f->precision) : wide(random, -1, 2);
    }
}

static void bend(struct at_test_random *random, struct at_problem *p) {
    static const char *const names[] = { "a", "b" };
    const int way = at_test_below(random, 9), odd = at_test_below(random, 24);
    for (int t = 0; t < 2; t++) {
        const int64_t n = at_test_count(p, t);
        for (int64_t i = 0; i < n && way < 3; i++)
            at_test_set(p, names[t], i, bent(random, way, p->dtype));
        if (odd < 3)
            at_test_set(p, names[t], (int64_t)(at_test_bits(random) % (uint64_t)n),
                        (double[]){ INFINITY, -INFINITY, NAN }[at_test_below(random, 3)]);
        if (odd == 3 + t)
            at_test_set_all(p, names[t], 0);
    }
}

void at_test_gemm_draw(struct at_test_random *random, int max_k, struct at_test_problem *out) {
    static const char *const data[] = { "normal",      "same_sign", "uniform",     "heavy_tail", "outlier_channel",
                                        "near_65504",  "overflow",  "cancel",      "ties",       "subnormal",
                                        "random_bits", "nonfinite", "adversarial", "exact" };
    static const enum at_format formats[] = { AT_F32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2 };
    static const double scales[] = { 1, 1, 0.25, -8, 0.3, 1e-5 };
    struct at_test_gemm_shape shape = { .m = 1 + at_test_below(random, 6),
                                        .n = 1 + at_test_below(random, 6),
                                        .k = 1 + at_test_below(random, at_test_below(random, 3) ? max_k : 4),
                                        .dtype = formats[at_test_below(random, 5)],
                                        .out = formats[at_test_below(random, 3)],
                                        .scale = scales[at_test_below(random, 6)] };
    char line[256];
    snprintf(line, sizeof line, "gemm m=%lld n=%lld k=%lld dtype=%s data=%s seed=%d", (long long)shape.m,
             (long long)shape.n, (long long)shape.k, at_format_info(shape.dtype)->name, data[at_test_below(random, 14)],
             at_test_below(random, 1000000));
    struct at_built_case built = at_build_line(line);
    at_test_gemm_problem(&shape, out);
    for (int t = AT_GEMM_A; t <= AT_GEMM_B; t++)
        memcpy(out->problem.tensors[t].data, built.data.problem.tensors[t].data,
               (size_t)at_tensor_bytes(&out->problem.tensors[t]));
    at_drop_case(&built);
    bend(random, &out->problem);
}

void at_test_gemm_draw_all(struct at_test_random *random, int max_k, struct at_test_problem *out) {
    static const double scales[] = { 1, 0.5, -4, 0.3, -1.7, 1e-4, 0 };
    struct at_test_problem plain;
    at_test_gemm_draw(random, max_k, &plain);
    const struct at_gemm_own z = at_gemm_own_of(&plain.problem);
    const struct at_test_gemm_shape shape = { .m = z.m,
                                              .n = z.n,
                                              .k = z.k,
                                              .dtype = plain.problem.dtype,
                                              .out = (enum at_format)z.out,
                                              .scale = (double)plain.problem.params.scale,
                                              .scales = at_test_below(random, 2),
                                              .amax = at_test_below(random, 2),
                                              .bias = (enum at_gemm_bias)at_test_below(random, 3) };
    at_test_gemm_problem(&shape, out);
    for (int t = AT_GEMM_A; t <= AT_GEMM_B; t++)
        memcpy(out->problem.tensors[t].data, plain.problem.tensors[t].data,
               (size_t)at_tensor_bytes(&out->problem.tensors[t]));
    for (int s = 0; s < 2 && shape.scales; s++)
        at_test_set(&out->problem, s ? "scale_b" : "scale_a", 0, scales[at_test_below(random, 7)]);
    for (int64_t j = 0; shape.bias != AT_GEMM_BIAS_NONE && j < z.n; j++)
        at_test_set(&out->problem, "bias", j, wide(random, -8, 12));
    at_test_problem_release(&plain);
}

struct at_numerics at_test_gemm_numerics(struct at_test_random *random, const struct at_problem *problem) {
    static const int any[] = { AT_UNIT_F32, AT_UNIT_F32_FMA, AT_UNIT_F64 };
    static const int of_f16[] = { AT_UNIT_TC_F32, AT_UNIT_TC_F16, AT_UNIT_F16_FMA };
    static const int of_8_bits[] = { AT_UNIT_TC_FP8, AT_UNIT_TC_FP8_ADA, AT_UNIT_TC_FP8_BY_F16,
                                     AT_UNIT_TC_FP8_BY_F16_F16 };
    const int narrow = problem->dtype == AT_E4M3 || problem->dtype == AT_E5M2;
    struct at_numerics n = at_numerics_default();
    n.qk_unit = any[at_test_below(random, 3)];
    if (problem->dtype == AT_F32 && at_test_below(random, 2))
        n.qk_unit = at_test_below(random, 2) ? AT_UNIT_TC_TF32 : AT_UNIT_TC_TF32_RNA;
    if (problem->dtype != AT_F32 && at_test_below(random, 3))
        n.qk_unit = narrow                      ? of_8_bits[at_test_below(random, 4)]
                    : problem->dtype == AT_BF16 ? AT_UNIT_TC_F32
                                                : of_f16[at_test_below(random, 3)];
    const int tensor_core = at_unit_rule((enum at_unit)n.qk_unit) != NULL;
    if (!tensor_core) {
        n.qk_lanes = 1 << at_test_below(random, 6);
        n.qk_run = at_test_below(random, 3);
        n.qk_tree = at_test_below(random, 2);
    }
    n.split = (tensor_core ? 32 : 1) * at_test_below(random, 4);
    if (at_unit_format((enum at_unit)n.qk_unit) == AT_F16)
        n.guard = at_test_below(random, 2) ? AT_GUARD_NONE : at_test_below(random, 4);
    return n;
}
