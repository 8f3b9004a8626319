/* Lightning decode's declared arithmetic against plain loops, and the intervals that another exponential leaves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "special/special.h"
#include "tests/support/lightning_problem.h"

static struct at_test_eval model_of(const struct at_problem *p, const char *declared) {
    struct at_numerics numerics;
    struct at_test_eval eval;
    at_assert_ok(at_numerics_parse(declared, &numerics));
    at_assert_ok(at_test_eval_init(p, 1, &eval));
    at_assert_ok(p->op->model(p, &numerics, 0, p->op->rows(p), &eval.eval));
    return eval;
}

/* One head, one step, with the state in f32: ascending rows, one fmaf each, or each operation rounded. */
static void plain(const struct at_problem *p, float decay, int fused, int rounded, float *kv, float *o) {
    const int64_t d = p->sizes.d, e = at_lightning_own_of(p).e;
    for (int64_t j = 0; j < e; j++) {
        float sum = 0;
        for (int64_t i = 0; i < d; i++) {
            const float old = (float)at_test_get(p, "kv", i * e + j);
            float t = (float)at_test_get(p, "k", i) * (float)at_test_get(p, "v", j);
            if (rounded)
                t = (float)at_round(p->dtype, (double)t);
            const float decayed = decay * old;
            kv[i * e + j] = fused ? fmaf(decay, old, t) : decayed + t;
            sum = fmaf((float)at_test_get(p, "q", i), kv[i * e + j], sum);
        }
        o[j] = (float)at_round(p->dtype, (double)sum);
    }
}

static void compare(const char *line, const char *declared, float decay, int fused, int rounded) {
    float kv[64], o[8];
    struct at_built_case built = at_build_line(line);
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval got = model_of(p, declared);
    plain(p, decay, fused, rounded, kv, o);
    for (int64_t i = 0; i < at_test_count(p, AT_LIGHTNING_KV); i++)
        at_assert_same(got.eval.value[AT_LIGHTNING_KV][i], (double)kv[i]);
    for (int64_t i = 0; i < at_test_count(p, AT_LIGHTNING_O); i++)
        at_assert_same(got.eval.value[AT_LIGHTNING_O][i], (double)o[i]);
    at_test_eval_release(&got);
    at_drop_case(&built);
}

static float ex2_of(float slope, int ftz) {
    return (float)at_special_value(AT_SPECIAL_ex2, ftz, (double)(-slope * 0x1.715476p0f));
}

static void test_plain_loops(void **state) {
    (void)state;
#define ONE "lightning_decode b=1 h=1 d=12 e=5 "
    compare(ONE "slope=0.7 dtype=bf16", "exp=ex2_approx fir_fma=1", ex2_of(0.7f, 0), 1, 0);
    compare(ONE "slope=0.7 dtype=bf16 outer=rounded", "exp=ex2_approx fir_fma=1", ex2_of(0.7f, 0), 1, 1);
    compare(ONE "slope=3 dtype=f16 outer=rounded", "exp=ex2_approx fir_fma=0", ex2_of(3, 0), 0, 1);
    compare(ONE "slope=-1.1 dtype=f32 data=heavy_tail", "exp=ex2_approx_ftz fir_fma=0", ex2_of(-1.1f, 1), 0, 0);
    compare(ONE "slope=87.6 dtype=f32 data=subnormal", "exp=ex2_approx fir_fma=1", ex2_of(87.6f, 0), 1, 0);
    compare(ONE "slope=87.6 dtype=f32 data=subnormal", "exp=ex2_approx_ftz fir_fma=1", 0, 1, 0);
    compare(ONE "slope=0.3 dtype=bf16", "exp=libm fir_fma=1", (float)exp(-(double)0.3f), 1, 0);
    compare(ONE "data=exact dtype=f16", "exp=libm", 1, 0, 0);
}

/* Lanes and trees: rows 0, 2, ... and 1, 3, ... apart; and an f64 sum, rounded once. */
static void test_orders(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("lightning_decode b=1 h=1 d=5 e=1 slope=0 dtype=f32 data=heavy_tail");
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval lanes = model_of(p, "qk_lanes=2 qk_run=1 fir_fma=1"),
                        wide = model_of(p, "qk_unit=f64 fir_fma=1");
    float lane[2] = { 0, 0 };
    double sum = 0;
    for (int64_t i = 0; i < 5; i++) {
        const float x = (float)lanes.eval.value[AT_LIGHTNING_KV][i], q = (float)at_test_get(p, "q", i);
        lane[i % 2] = fmaf(q, x, lane[i % 2]);
        sum += (double)q * (double)x;
    }
    at_assert_same(lanes.eval.value[AT_LIGHTNING_O][0], (double)(lane[0] + lane[1]));
    at_assert_same(wide.eval.value[AT_LIGHTNING_O][0], (double)(float)sum);
    at_test_eval_release(&lanes);
    at_test_eval_release(&wide);
    at_drop_case(&built);
}

/* Steps in a row are steps one by one, with the state handed on. */
static void test_steps(void **state) {
    (void)state;
    struct at_built_case all =
        at_build_line("lightning_decode b=1 h=1 d=4 e=3 steps=3 slope=0.4 dtype=f16 outer=rounded");
    struct at_built_case one = at_build_line("lightning_decode b=1 h=1 d=4 e=3 slope=0.4 dtype=f16 outer=rounded");
    struct at_problem *p = &one.data.problem;
    static const char declared[] = "exp=ex2_approx fir_fma=1 qk_lanes=2 qk_run=1 qk_tree=butterfly";
    struct at_test_eval whole = model_of(&all.data.problem, declared);
    for (int64_t i = 0; i < 12; i++)
        at_test_set(p, "kv", i, at_test_get(&all.data.problem, "kv", i));
    for (int64_t step = 0; step < 3; step++) {
        for (int64_t i = 0; i < 4; i++) {
            at_test_set(p, "q", i, at_test_get(&all.data.problem, "q", step * 4 + i));
            at_test_set(p, "k", i, at_test_get(&all.data.problem, "k", step * 4 + i));
        }
        for (int64_t j = 0; j < 3; j++)
            at_test_set(p, "v", j, at_test_get(&all.data.problem, "v", step * 3 + j));
        struct at_test_eval part = model_of(p, declared);
        for (int64_t j = 0; j < 3; j++)
            at_assert_same(part.eval.value[AT_LIGHTNING_O][j], whole.eval.value[AT_LIGHTNING_O][step * 3 + j]);
        for (int64_t i = 0; i < 12; i++)
            at_test_set(p, "kv", i, part.eval.value[AT_LIGHTNING_KV][i]);
        at_test_eval_release(&part);
    }
    for (int64_t i = 0; i < 12; i++)
        at_assert_same(at_test_get(p, "kv", i), whole.eval.value[AT_LIGHTNING_KV][i]);
    at_test_eval_release(&whole);
    at_drop_case(&all);
    at_drop_case(&one);
}

/* The interval of a state that only decays holds what both neighbours of the correctly rounded decay leave, and no more. */
static void test_intervals(void **state) {
    (void)state;
    static const double slopes[] = { 0.3, 7, -5, 100, 0.6931471824645996 };
    struct at_built_case built = at_build_line("lightning_decode b=1 h=1 d=1 e=1 dtype=f32");
    struct at_problem *p = &built.data.problem;
    at_test_set_all(p, "k", 0);
    at_test_set_all(p, "kv", 1);
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) {
        at_test_set_all(p, "slope", slopes[i]);
        struct at_test_eval got = model_of(p, "fir_fma=1");
        const float near = (float)exp(-at_test_get(p, "slope", 0)), up = nextafterf(near, INFINITY),
                    down = nextafterf(near, 0);
        at_assert_same(got.eval.value[AT_LIGHTNING_KV][0], (double)near);
        at_assert_true(got.eval.limit[AT_LIGHTNING_KV][0] >= (double)(up - near) &&
                           got.eval.limit[AT_LIGHTNING_KV][0] >= (double)(near - down),
                       "slope %g: %g", slopes[i], got.eval.limit[AT_LIGHTNING_KV][0]);
        at_assert_true(got.eval.limit[AT_LIGHTNING_KV][0] <= (double)(up - near), "slope %g: %g", slopes[i],
                       got.eval.limit[AT_LIGHTNING_KV][0]);
        at_test_eval_release(&got);
    }
    static const double certain[] = { 0, 200, INFINITY, -INFINITY, NAN, -90 };
    for (size_t i = 0; i < sizeof certain / sizeof *certain; i++) {
        at_test_set_all(p, "slope", certain[i]);
        struct at_test_eval got = model_of(p, "fir_fma=1");
        at_assert_same(got.eval.limit[AT_LIGHTNING_KV][0], 0.0);
        at_test_eval_release(&got);
    }
    at_drop_case(&built);
}

/* Where a sum rounds the decay's last bits away, the interval is what either neighbour leaves: now the upper, now the lower. */
static void test_one_neighbour(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("lightning_decode b=1 h=1 d=1 e=1 dtype=f32");
    struct at_problem *p = &built.data.problem;
    int only_up = 0, only_down = 0;
    at_test_set_all(p, "v", 1);
    at_test_set_all(p, "k", 4);
    at_test_set_all(p, "kv", 1);
    for (int i = 0; i < 4000; i++) {
        at_test_set_all(p, "slope", 0.3 + 1e-5 * i);
        const float near = (float)exp(-at_test_get(p, "slope", 0)), mid = near + 4;
        const float above = nextafterf(near, 1) + 4 - mid, below = mid - (nextafterf(near, 0) + 4);
        struct at_test_eval got = model_of(p, "fir_fma=1");
        at_assert_same(got.eval.value[AT_LIGHTNING_KV][0], (double)mid);
        at_assert_same(got.eval.limit[AT_LIGHTNING_KV][0], (double)fmaxf(above, below));
        only_up += above > below;
        only_down += below > above;
        at_test_eval_release(&got);
    }
    at_assert_true(only_up > 10 && only_down > 10, "%d, %d", only_up, only_down);
    at_drop_case(&built);
}

/* Declarations that have no model. */
static void test_refusals(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("lightning_decode b=1 h=1 d=16 e=1 dtype=f16");
    const struct at_problem *p = &built.data.problem;
    static const char *const units[] = { "tc_f32", "tc_f16", "f16_fma" };
    struct at_test_eval eval;
    at_assert_ok(at_test_eval_init(p, 1, &eval));
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct at_numerics n;
        char text[32];
        snprintf(text, sizeof text, "qk_unit=%s", units[i]);
        at_assert_ok(at_numerics_parse(text, &n));
        at_assert_fails(p->op->model(p, &n, 0, 1, &eval.eval), AT_UNSUPPORTED, "another unit");
        at_assert_fails(p->op->evaluate(p, &n, 0, 1, &eval.eval), AT_UNSUPPORTED, "another unit");
    }
    struct at_numerics n = at_numerics_default();
    n.free_order = 1;
    at_assert_fails(p->op->model(p, &n, 0, 1, &eval.eval), AT_UNSUPPORTED, "free_order=1");
    at_assert_ok(p->op->evaluate(p, &n, 0, 1, &eval.eval));
    n = at_numerics_default();
    n.exp = AT_EXP_TANH_APPROX;
    at_assert_fails(p->op->model(p, &n, 0, 1, &eval.eval), AT_UNSUPPORTED, "exp=tanh_approx is silu_mul's");
    at_assert_fails(p->op->evaluate(p, &n, 0, 1, &eval.eval), AT_UNSUPPORTED, "exp=tanh_approx is silu_mul's");
    at_test_eval_release(&eval);
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_loops), cmocka_unit_test(test_orders),        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_intervals),   cmocka_unit_test(test_one_neighbour), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
