/* The product's declared arithmetic against plain loops, and what an accumulator of few bits loses without promotion.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tensor_core/instruction.h"
#include "tests/support/gemm_problem.h"

/* The model of element 0. */
static double model_of(const struct at_problem *p, const struct at_numerics *numerics) {
    struct at_test_eval model;
    at_assert_ok(at_test_eval_init(p, 1, &model));
    at_assert_ok(p->op->model(p, numerics, 0, at_gemm_own_of(p).m, &model.eval));
    const double first = model.eval.value[AT_GEMM_D][0];
    at_test_eval_release(&model);
    return first;
}

static struct at_numerics declared(int unit, int split) {
    struct at_numerics numerics = at_numerics_default();
    numerics.qk_unit = unit;
    numerics.split = split;
    return numerics;
}

/* 20480 products of 1/16 by 1/16 are 80. 13 fraction bits stop at 64; promoted every 128 products, nothing is lost. */
static void test_stall(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_E4M3, AT_E5M2 };
    for (int f = 0; f < 2; f++) {
        struct at_test_gemm_shape shape = { 1, 1, 20480, formats[f], AT_F32, 0 };
        struct at_numerics fast = declared(AT_UNIT_TC_FP8, 0), promoted = declared(AT_UNIT_TC_FP8, 128);
        struct at_test_problem made;
        at_test_gemm_problem(&shape, &made);
        at_test_set_all(&made.problem, "a", 0.0625);
        at_test_set_all(&made.problem, "b", 0.0625);
        at_assert_same(model_of(&made.problem, &fast), 64.0);
        at_assert_same(model_of(&made.problem, &promoted), 80.0);
        at_test_problem_release(&made);
    }
}

/* What the instruction is given for an element. */
static double operand(int unit, double x) {
    return unit == AT_UNIT_TC_TF32 || unit == AT_UNIT_TC_TF32_RNA ? at_tf32_operand((enum at_unit)unit, x) : x;
}

/* Element (0, 0) by the instruction itself, its accumulator handed on from step to step; partial sums in plain float.
 */
static double by_instruction(const struct at_problem *p, const char *name, int unit, int64_t split) {
    const struct at_tc_instruction *t = at_tc_instruction_find(name);
    double part = 0;
    float sum = 0;
    assert_non_null(t);
    for (int64_t first = 0; first < at_gemm_own_of(p).k; first += t->k) {
        double a[AT_TC_BLOCK_MAX] = { 0 }, b[AT_TC_BLOCK_MAX] = { 0 };
        for (int64_t l = 0; l < t->k && first + l < at_gemm_own_of(p).k; l++) {
            a[l] = operand(unit, at_test_get(p, "a", first + l));
            b[l] = operand(unit, at_test_get(p, "b", first + l));
        }
        if (split && first && first % split == 0) {
            sum += (float)part;
            part = 0;
        }
        part = at_tc_multiply_add(t, NULL, a, b, part);
    }
    sum = split ? sum + (float)part : (float)part;
    return at_round((enum at_format)at_gemm_own_of(p).out, (double)(sum * p->params.scale));
}

static void test_instructions(void **state) {
    (void)state;
    static const struct {
        enum at_format dtype;
        int unit;
        const char *name;
    } of[] = { { AT_F16, AT_UNIT_TC_F32, "hopper_wgmma_k16_f16_f32" },
               { AT_BF16, AT_UNIT_TC_F32, "hopper_mma_k16_bf16_f32" },
               { AT_F16, AT_UNIT_TC_F16, "hopper_mma_k16_f16_f16" },
               { AT_E4M3, AT_UNIT_TC_FP8, "hopper_wgmma_k32_e4m3_f32" },
               { AT_E5M2, AT_UNIT_TC_FP8, "hopper_wgmma_k32_e5m2_f32" },
               { AT_E4M3, AT_UNIT_TC_FP8_ADA, "ada_mma_k32_e4m3_f32" },
               { AT_E5M2, AT_UNIT_TC_FP8_ADA, "ada_mma_k32_e5m2_f32" },
               { AT_E4M3, AT_UNIT_TC_FP8_BY_F16, "hopper_mma_k32_e4m3_f32" },
               { AT_E5M2, AT_UNIT_TC_FP8_BY_F16, "hopper_mma_k32_e5m2_f32" },
               { AT_E4M3, AT_UNIT_TC_FP8_BY_F16_F16, "hopper_mma_k32_e4m3_f16" },
               { AT_E5M2, AT_UNIT_TC_FP8_BY_F16_F16, "hopper_mma_k32_e5m2_f16" },
               { AT_F32, AT_UNIT_TC_TF32, "hopper_mma_k8_tf32_f32" },
               { AT_F32, AT_UNIT_TC_TF32_RNA, "hopper_wgmma_k8_tf32_f32" } };
    enum { N = sizeof of / sizeof *of };
    const long runs = 100 * at_test_effort(20);
    long seen[N] = { 0 };
    for (uint64_t seed = 0; seen[0] < runs || seen[4] < runs || seen[N - 1] < runs; seed++) {
        struct at_test_random random = { seed };
        struct at_test_problem made;
        at_test_gemm_draw(&random, 200, &made);
        for (int i = 0; i < N; i++) {
            const int split = 32 * at_test_below(&random, 4);
            struct at_numerics numerics = declared(of[i].unit, split);
            if (made.problem.dtype != of[i].dtype)
                continue;
            at_assert_same(model_of(&made.problem, &numerics),
                           by_instruction(&made.problem, of[i].name, of[i].unit, split));
            seen[i]++;
        }
        at_test_problem_release(&made);
    }
}

/* The factor from left to right, a product, an addition, each rounded in f32; amax of what is there before d's rounding. */
static void test_what_follows_the_sum(void **state) {
    (void)state;
    long bias = 0, maxima = 0;
    for (uint64_t seed = 0; seed < (uint64_t)(300 * at_test_effort(20)); seed++) {
        struct at_test_random random = { seed };
        struct at_numerics numerics = declared(AT_UNIT_F32_FMA, 0);
        struct at_test_problem made;
        struct at_test_eval model;
        at_test_gemm_draw_all(&random, 60, &made);
        const struct at_problem *p = &made.problem;
        const struct at_gemm_own z = at_gemm_own_of(p);
        float factor = p->params.scale, most = 0;
        if (z.scales) {
            factor *= (float)at_test_get(p, "scale_a", 0);
            factor *= (float)at_test_get(p, "scale_b", 0);
        }
        at_assert_ok(at_test_eval_init(p, 1, &model));
        at_assert_ok(p->op->model(p, &numerics, 0, p->op->rows(p), &model.eval));
        for (int64_t e = 0; e < z.m * z.n; e++) {
            float x = 0;
            for (int64_t l = 0; l < z.k; l++)
                x = fmaf((float)at_test_get(p, "a", e / z.n * z.k + l), (float)at_test_get(p, "b", e % z.n * z.k + l),
                         x);
            x *= factor;
            if (z.bias != AT_GEMM_BIAS_NONE)
                x += (float)at_test_get(p, "bias", e % z.n);
            at_assert_same(model.eval.value[AT_GEMM_D][e], at_round((enum at_format)z.out, (double)x));
            most = isnan(x) || isnan(most) ? NAN : fmaxf(most, fabsf(x));
        }
        if (z.amax)
            at_assert_same(model.eval.value[AT_GEMM_AMAX][0], (double)most);
        bias += z.bias != AT_GEMM_BIAS_NONE;
        maxima += z.amax;
        at_test_eval_release(&model);
        at_test_problem_release(&made);
    }
    assert_true(bias > 100 && maxima > 100);
}

/* fmaf in ascending order, a rounding for the scale, one for the output. */
static void test_float(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)(300 * at_test_effort(20)); seed++) {
        struct at_test_random random = { seed };
        struct at_numerics numerics = declared(AT_UNIT_F32_FMA, 0);
        struct at_test_problem made;
        at_test_gemm_draw(&random, 100, &made);
        float sum = 0;
        for (int64_t l = 0; l < at_gemm_own_of(&made.problem).k; l++)
            sum = fmaf((float)at_test_get(&made.problem, "a", l), (float)at_test_get(&made.problem, "b", l), sum);
        sum *= made.problem.params.scale;
        at_assert_same(model_of(&made.problem, &numerics),
                       at_round((enum at_format)at_gemm_own_of(&made.problem).out, (double)sum));
        at_test_problem_release(&made);
    }
}

/* The scale's product is rounded to f32 first: just above half-way in f16 it lands on half-way, and goes to even. */
static void test_scale_is_rounded(void **state) {
    (void)state;
    struct at_test_gemm_shape shape = { 1, 1, 1, AT_F32, AT_F16, 1 + 0x1p-12 };
    struct at_numerics numerics = declared(AT_UNIT_F32_FMA, 0), wide = declared(AT_UNIT_F64, 0);
    struct at_test_problem made;
    at_test_gemm_problem(&shape, &made);
    at_test_set(&made.problem, "a", 0, 1);
    at_test_set(&made.problem, "b", 0, 1 + 0x1p-12);
    at_assert_same(model_of(&made.problem, &numerics), 1.0);
    at_assert_same(model_of(&made.problem, &wide), 1 + 0x1p-10);
    at_test_problem_release(&made);
}

/* An infinity of an f16 accumulator stays, or is 65504 and goes on from there. */
static void test_guard(void **state) {
    (void)state;
    struct at_test_gemm_shape shape = { 1, 1, 32, AT_F16, AT_F32, 0 };
    struct at_numerics plain = declared(AT_UNIT_TC_F16, 0), guarded = plain;
    struct at_test_problem made;
    guarded.guard = AT_GUARD_ISINF;
    at_test_gemm_problem(&shape, &made);
    at_test_set(&made.problem, "a", 0, 60000);
    at_test_set(&made.problem, "b", 0, 2);
    at_test_set(&made.problem, "a", 16, -60000);
    at_test_set(&made.problem, "b", 16, 1);
    at_assert_same(model_of(&made.problem, &plain), INFINITY);
    at_assert_same(model_of(&made.problem, &guarded), 5504.0);
    at_test_problem_release(&made);
}

/* The step that leaves f16 is on record, where the result shows nothing of it. */
static void test_ledger(void **state) {
    (void)state;
    struct at_test_gemm_shape shape = { 2, 3, 48, AT_F16, AT_F32, 0.5 };
    struct at_numerics guarded = declared(AT_UNIT_TC_F16, 0);
    struct at_test_problem made;
    struct at_test_eval model;
    struct at_ledger ledger;
    guarded.guard = AT_GUARD_ISINF;
    at_test_gemm_problem(&shape, &made);
    at_test_set(&made.problem, "a", 48 + 16, 60000);
    at_test_set(&made.problem, "a", 48 + 32, -60000);
    for (int l = 16; l <= 32; l += 16)
        at_test_set(&made.problem, "b", 2 * 48 + l, l == 16 ? 2 : 1);
    for (int exact = 0; exact < 2; exact++) {
        const struct at_ledger_row *steps = &ledger.stage[AT_STAGE_qk_acc], *sums = &ledger.stage[AT_STAGE_score];
        at_ledger_init(&ledger);
        at_assert_ok(at_test_eval_init(&made.problem, 0, &model));
        model.eval.ledger = &ledger;
        at_assert_ok(exact ? made.problem.op->evaluate(&made.problem, NULL, 0, 2, &model.eval)
                           : made.problem.op->model(&made.problem, &guarded, 0, 2, &model.eval));
        at_assert_same(model.eval.value[AT_GEMM_D][5], exact ? 30000.0 : 2752.0);
        assert_true(sums->count == 6 && ledger.stage[AT_STAGE_out].count == 6);
        at_assert_same(sums->max_abs, exact ? 60000.0 : 5504.0);
        assert_true(steps->count == (exact ? 0 : 18) && ledger.inf_made == (uint64_t)!exact);
        if (!exact)
            assert_true(steps->has_first && steps->first.q == 1 && steps->first.k == 2 && steps->first.step == 1);
        at_test_eval_release(&model);
    }
    at_test_problem_release(&made);
}

/* What a declaration may not say of a product. */
static void test_refusals(void **state) {
    (void)state;
    struct at_test_gemm_shape shape = { 1, 1, 64, AT_E4M3, AT_BF16, 0 };
    struct at_test_problem made;
    struct at_test_eval model;
    at_test_gemm_problem(&shape, &made);
    at_assert_ok(at_test_eval_init(&made.problem, 1, &model));
#define REFUSED(unit, every, type, part) \
    do { \
        struct at_numerics numerics = declared(unit, every); \
        made.problem.dtype = (type); \
        at_assert_fails(made.problem.op->model(&made.problem, &numerics, 0, 1, &model.eval), AT_UNSUPPORTED, part); \
        at_assert_fails(made.problem.op->evaluate(&made.problem, &numerics, 0, 1, &model.eval), AT_UNSUPPORTED, part); \
    } while (0)
    REFUSED(AT_UNIT_TC_F32, 0, AT_E4M3, "qk_unit multiplies e4m3 here, wanted f16 or bf16");
    REFUSED(AT_UNIT_TC_F16, 0, AT_E5M2, "wanted f16");
    REFUSED(AT_UNIT_F16_FMA, 0, AT_BF16, "wanted f16");
    REFUSED(AT_UNIT_TC_FP8, 0, AT_F16, "wanted e4m3 or e5m2");
    REFUSED(AT_UNIT_TC_FP8_ADA, 0, AT_F16, "wanted e4m3 or e5m2");
    REFUSED(AT_UNIT_TC_TF32, 0, AT_BF16, "wanted f32");
    REFUSED(AT_UNIT_TC_TF32_RNA, 0, AT_E4M3, "wanted f32");
    REFUSED(AT_UNIT_TC_TF32, 12, AT_F32, "split is 12, wanted whole steps of 8 products");
    REFUSED(AT_UNIT_TC_FP8_BY_F16, 0, AT_BF16, "wanted e4m3 or e5m2");
    REFUSED(AT_UNIT_TC_FP8_BY_F16_F16, 16, AT_E4M3, "split is 16, wanted whole steps of 32 products");
    REFUSED(AT_UNIT_TC_FP8, 48, AT_E4M3, "split is 48, wanted whole steps of 32 products");
    made.problem.dtype = AT_E4M3;
    struct at_numerics no_order = declared(AT_UNIT_F32, 0);
    no_order.free_order = 1;
    at_assert_fails(made.problem.op->model(&made.problem, &no_order, 0, 1, &model.eval), AT_UNSUPPORTED, "free_order");
    at_test_eval_release(&model);
    at_test_problem_release(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_float),
        cmocka_unit_test(test_what_follows_the_sum),
        cmocka_unit_test(test_scale_is_rounded),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_ledger),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
