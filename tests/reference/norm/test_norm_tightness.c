/* Norm limits are needed: for each rounding of each stage an input whose error, with everything else exact, reaches
 * more than half of what that rounding allows; so halving any of them is found.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "norm/norm.h"
#include "tests/support/norm_problem.h"

struct attack {
    const char *name, *op, *output;
    enum at_norm_stage stage;
    int underflow; /* eta of the stage is under test, not u */
    enum at_format dtype;
    int channels, element; /* of the one row; the element of the output that is judged */
    int off; /* not 0: judged is the f32 kernel whose rsqrt is off in this direction, as far as the unit */
    /* Sets the declaration and everything of the inputs that is not 0, 1 or the default. */
    void (*set)(struct at_problem *problem, struct at_numerics *numerics, struct at_test_random *random);
    double beside; /* errors of other stages that cannot be avoided, as a share of the limit */
};

#define SET(name) static void name(struct at_problem *p, struct at_numerics *n, struct at_test_random *random)
#define UNUSED (void)p, (void)n, (void)random

/* 1 + a little: a value near the lower end of its binade, where relative roundings are largest. */
static double near_one(struct at_test_random *random) { return 1 + 0x1p-7 * at_test_uniform(random); }
/* Just under half of an f32 ulp of 1: lost in a sum. */
static const double lost = 0x1p-24 * (1 - 0x1p-20);
static const double least = 0x1p-149;

/* ---- UClip ---- */

SET(slope) {
    UNUSED;
    at_test_set(p, "x", 0, near_one(random));
    at_test_set(p, "alpha", 0, near_one(random));
}

SET(slope_underflows) {
    UNUSED;
    at_test_set(p, "x", 0, 3 * least);
    at_test_set(p, "alpha", 0, 0.5);
}

SET(factor) {
    UNUSED;
    at_test_set(p, "x", 0, near_one(random));
    at_test_set(p, "gamma", 0, near_one(random));
}

SET(factor_underflows) {
    UNUSED;
    at_test_set(p, "x", 0, 3 * least);
    at_test_set(p, "gamma", 0, 0.5);
}

SET(shift) {
    UNUSED;
    at_test_set(p, "x", 0, 1);
    at_test_set(p, "beta", 0, lost);
}

SET(shift_fused) {
    factor(p, n, random);
    n->fir_fma = 1;
    at_test_set(p, "beta", 0, 0x1p-9 * near_one(random));
}

SET(shift_fused_underflows) {
    factor_underflows(p, n, random);
    n->fir_fma = 1;
    at_test_set(p, "beta", 0, least);
}

SET(q_slope) {
    UNUSED;
    at_test_set(p, "q", 0, near_one(random));
    at_test_set(p, "alpha_q", 0, near_one(random));
}

SET(k_factor) {
    UNUSED;
    at_test_set(p, "k", 0, near_one(random));
    at_test_set(p, "gamma_k", 0, near_one(random));
}

SET(pre_slope) {
    UNUSED;
    at_test_set(p, "res", 0, near_one(random));
    at_test_set(p, "alpha_pre", 0, near_one(random));
}

/* alpha * x lies beside a tie of bf16 and f32 rounds it into the tie: what the sum gets is one bf16 unit off. */
SET(slope_into_tie) {
    UNUSED;
    const double x = 1 + 0x1p-7 * at_test_below(random, 127), tie = 1 + 0x1p-8 * (1 + 2 * at_test_below(random, 100));
    at_test_set(p, "a", 0, x);
    at_test_set(p, "alpha_post", 0, (tie + 0x1p-24 * (2 * at_test_uniform(random) - 1)) / x);
}

/* ---- the sum of two activations ---- */

SET(add) {
    UNUSED;
    p->params.from = AT_FROM_EXACT;
    at_test_set(p, "x", 0, 1);
    at_test_set(p, "res", 0, 0x1p-24 * (1 - 0x1p-8));
}

SET(add_peri) {
    UNUSED;
    p->params.from = AT_FROM_EXACT;
    at_test_set(p, "a", 0, 1);
    at_test_set(p, "res", 0, 0x1p-24 * (1 - 0x1p-8));
}

SET(sum_stored) {
    UNUSED;
    at_test_set(p, "x", 0, 1);
    at_test_set(p, "res", 0, at_format_info(p->dtype)->u * (1 - 0x1p-7));
}

/* ---- RMS ---- */

static void swamped_squares(struct at_problem *p, struct at_numerics *n, int unit) {
    n->qk_unit = unit;
    p->params.eps = 0;
    for (int64_t i = 0; i < p->sizes.channels; i++)
        at_test_set(p, "x", i, i ? sqrt(lost) : 1);
}

SET(squares) {
    UNUSED;
    swamped_squares(p, n, AT_UNIT_F32);
}

SET(squares_fma) {
    UNUSED;
    swamped_squares(p, n, AT_UNIT_F32_FMA);
}

/* A square of 64 to 256 times the least number, and half of it. */
SET(squares_underflow) {
    UNUSED;
    p->params.eps = 0;
    at_test_set(p, "x", 0, 0x1p-71 * (1 + at_test_uniform(random)));
}

/* a^2 / 3 rounds; eps makes it up to 1, so that nothing else does. */
SET(mean) {
    UNUSED;
    const double a = floor(1024 * (1.23 + 0.2 * at_test_uniform(random))) / 1024;
    at_test_set(p, "x", 0, a);
    p->params.eps = 1 - (float)a * (float)a / 3;
}

SET(mean_underflows) {
    UNUSED;
    p->params.eps = 0;
    at_test_set(p, "x", 0, 0x1p-74 * (63 + 2 * at_test_below(random, 20)));
}

SET(eps) {
    UNUSED;
    at_test_set(p, "x", 0, 1);
    p->params.eps = (float)lost;
}

/* The root of a little less than 1, seen through a channel that is 1. */
SET(root) {
    UNUSED;
    p->params.eps = 0;
    at_test_set(p, "x", 0, floor(2048 * (1 - 0.01 * at_test_uniform(random))) / 2048);
    at_test_set(p, "x", 1, 1);
}

SET(root_of_unit) {
    root(p, n, random);
    n->rsqrt = AT_RSQRT_APPROX;
}

SET(root_of_unit_ftz) {
    root(p, n, random);
    n->rsqrt = AT_RSQRT_APPROX_FTZ;
}

/* x * r for an r that two roundings happen to get nearly right. */
SET(scaled) {
    UNUSED;
    double r, got;
    p->params.eps = 0;
    do {
        const double a = floor(2048 * (1 + 0.01 * at_test_uniform(random))) / 2048,
                     b = floor(2048 * (1 - 0.02 * at_test_uniform(random))) / 2048, m = (a * a + b * b) / 2;
        r = 1 / sqrt(m);
        got = (double)(1 / (float)sqrt(m));
        at_test_set(p, "x", 0, a);
        at_test_set(p, "x", 1, b);
    } while (fabs(got - r) > 0.02 * 0x1p-24);
}

SET(scaled_underflows) {
    UNUSED;
    p->params.eps = 4;
    at_test_set(p, "x", 0, 3 * least);
}

/* a^2 + eps is 1, so x * r is a. */
SET(weight) {
    UNUSED;
    const double a = floor(2048 * (1 - 0x1p-8 * at_test_uniform(random)) - 1) / 2048;
    at_test_set(p, "x", 0, a);
    p->params.eps = (float)(1 - a * a);
    at_test_set(p, "gamma", 0, near_one(random) / a);
}

SET(weight_underflows) {
    UNUSED;
    p->params.eps = 1;
    at_test_set(p, "x", 0, 3 * least);
    at_test_set(p, "gamma", 0, 0.5);
}

/* ---- the store ---- */

SET(store) {
    UNUSED;
    at_test_set(p, "x", 0, 1);
    at_test_set(p, "gamma", 0, near_one(random));
}

SET(store_double) {
    factor(p, n, random);
    n->qk_unit = AT_UNIT_F64;
}

SET(store_underflows) {
    UNUSED;
    at_test_set(p, "x", 0, 1);
    at_test_set(p, "gamma", 0, at_format_info(p->dtype)->eta * (1 - 0x1p-8));
}

#define PERI "post_attn_pre_mlp_uclip"
static const struct attack attacks[] = {
    { "alpha * x", "uclip_norm", "y", AT_NORM_SLOPE, 0, AT_F32, 1, 0, 0, slope },
    { "alpha * x, underflow", "uclip_norm", "y", AT_NORM_SLOPE, 1, AT_F32, 1, 0, 0, slope_underflows },
    { "alpha * x, of a sum", "add_uclip_norm", "y", AT_NORM_SLOPE, 0, AT_F32, 1, 0, 0, slope },
    { "alpha * x, of q", "qk_uclip_norm", "q_out", AT_NORM_SLOPE, 0, AT_F32, 1, 0, 0, q_slope },
    { "alpha * x, before the MLP", PERI, "y", AT_NORM_SLOPE, 0, AT_F32, 1, 0, 0, pre_slope },
    { "alpha * x, into a tie", PERI, "res_out", AT_NORM_SLOPE, 0, AT_BF16, 1, 0, 0, slope_into_tie },
    { "gamma * c", "uclip_norm", "y", AT_NORM_FACTOR, 0, AT_F32, 1, 0, 0, factor },
    { "gamma * c, underflow", "uclip_norm", "y", AT_NORM_FACTOR, 1, AT_F32, 1, 0, 0, factor_underflows },
    { "gamma * c, of k", "qk_uclip_norm", "k_out", AT_NORM_FACTOR, 0, AT_F32, 1, 0, 0, k_factor },
    { "+ beta", "uclip_norm", "y", AT_NORM_SHIFT, 0, AT_F32, 1, 0, 0, shift },
    { "gamma * c + beta", "uclip_norm", "y", AT_NORM_SHIFT, 0, AT_F32, 1, 0, 0, shift_fused },
    { "gamma * c + beta, underflow", "uclip_norm", "y", AT_NORM_SHIFT, 1, AT_F32, 1, 0, 0, shift_fused_underflows },
    { "x + res", "add_uclip_norm", "y", AT_NORM_ADD, 0, AT_BF16, 1, 0, 0, add },
    { "u + res", PERI, "y", AT_NORM_ADD, 0, AT_BF16, 1, 0, 0, add_peri },
    { "squares in f32", "rms_norm", "y", AT_NORM_SUM, 0, AT_F32, 16, 0, 0, squares },
    { "squares by f32 fma", "rms_norm", "y", AT_NORM_SUM, 0, AT_F32, 16, 0, 0, squares_fma },
    { "squares of a sum", "add_rms_norm", "y", AT_NORM_SUM, 0, AT_F32, 64, 0, 0, squares_fma },
    { "squares, underflow", "rms_norm", "y", AT_NORM_SUM, 1, AT_F32, 1, 0, 0, squares_underflow, 0.01 },
    { "S / n", "rms_norm", "y", AT_NORM_MEAN, 0, AT_F32, 3, 0, 0, mean },
    { "S / n, underflow", "rms_norm", "y", AT_NORM_MEAN, 1, AT_F32, 4, 0, 0, mean_underflows, 0.01 },
    { "m + eps", "rms_norm", "y", AT_NORM_EPS, 0, AT_F32, 1, 0, 0, eps },
    { "1 / sqrt(m)", "rms_norm", "y", AT_NORM_ROOT, 0, AT_F32, 2, 1, 0, root },
    { "rsqrt.approx(m)", "rms_norm", "y", AT_NORM_ROOT, 0, AT_F32, 2, 1, 0, root_of_unit },
    { "rsqrt.approx.ftz(m)", "add_rms_norm", "y", AT_NORM_ROOT, 0, AT_F32, 2, 1, 0, root_of_unit_ftz },
    { "rsqrt as far off, up", "rms_norm", "y", AT_NORM_ROOT, 0, AT_F32, 2, 1, 1, root_of_unit },
    { "rsqrt as far off, down", "rms_norm", "y", AT_NORM_ROOT, 0, AT_F32, 2, 1, -1, root_of_unit },
    { "x * r", "rms_norm", "y", AT_NORM_SCALED, 0, AT_F32, 2, 0, 0, scaled, 0.05 },
    { "x * r, underflow", "rms_norm", "y", AT_NORM_SCALED, 1, AT_F32, 1, 0, 0, scaled_underflows },
    { "gamma * (x * r)", "rms_norm", "y", AT_NORM_WEIGHT, 0, AT_F32, 1, 0, 0, weight },
    { "gamma * (x * r), underflow", "rms_norm", "y", AT_NORM_WEIGHT, 1, AT_F32, 1, 0, 0, weight_underflows },
    { "y in f16", "uclip_norm", "y", AT_NORM_STORE, 0, AT_F16, 1, 0, 0, store },
    { "y in bf16", "uclip_norm", "y", AT_NORM_STORE, 0, AT_BF16, 1, 0, 0, store },
    { "f64 y in f32", "uclip_norm", "y", AT_NORM_STORE, 0, AT_F32, 1, 0, 0, store_double },
    { "y of RMS in bf16", "rms_norm", "y", AT_NORM_STORE, 0, AT_BF16, 1, 0, 0, weight },
    { "y in f16, underflow", "uclip_norm", "y", AT_NORM_STORE, 1, AT_F16, 1, 0, 0, store_underflows },
    { "y in bf16, underflow", "uclip_norm", "y", AT_NORM_STORE, 1, AT_BF16, 1, 0, 0, store_underflows },
    { "res_out in f32", "add_uclip_norm", "res_out", AT_NORM_STORE, 0, AT_F32, 1, 0, 0, sum_stored },
    { "res_out in f16", "add_rms_norm", "res_out", AT_NORM_STORE, 0, AT_F16, 1, 0, 0, sum_stored },
    { "res_out in bf16", "add_uclip_norm", "res_out", AT_NORM_STORE, 0, AT_BF16, 1, 0, 0, sum_stored },
};
enum { ATTACKS = sizeof attacks / sizeof *attacks };

static double limit_of(const struct at_problem *p, const struct at_numerics *numerics, const struct attack *attack,
                       double factor, double *value) {
    const struct at_norm_scales right = at_norm_test_scales;
    const int out = at_op_tensor_index(p->op, attack->output);
    struct at_test_eval exact;
    at_norm_test_scales = (struct at_norm_scales){ 0 };
    (attack->underflow ? at_norm_test_scales.eta : at_norm_test_scales.u)[attack->stage] = factor;
    at_assert_ok(at_test_eval_init(p, 1, &exact));
    at_assert_ok(p->op->evaluate(p, numerics, 0, 1, &exact.eval));
    at_norm_test_scales = right;
    double limit = exact.eval.limit[out][attack->element];
    *value = exact.eval.value[out][attack->element];
    at_test_eval_release(&exact);
    return limit;
}

static double judged(const struct at_problem *p, const struct at_numerics *numerics, const struct attack *attack) {
    const int out = at_op_tensor_index(p->op, attack->output);
    struct at_test_eval model;
    float y[64];
    if (attack->off) {
        at_test_rms_kernel(p->sizes.channels, p->tensors[0].data, p->tensors[1].data, p->params.eps, attack->off, y);
        return (double)y[attack->element];
    }
    at_assert_ok(at_test_eval_init(p, 0, &model));
    at_assert_ok(p->op->model(p, numerics, 0, 1, &model.eval));
    double got = model.eval.value[out][attack->element];
    at_test_eval_release(&model);
    return got;
}

/* One try: the error, and what the isolated limit and its half allow. */
struct outcome {
    double error, limit, halved;
};

static struct outcome attempt(const struct attack *attack, struct at_test_random *random) {
    struct at_test_norm_shape shape = { .tokens = 1, .channels = attack->channels, .dtype = attack->dtype };
    struct at_numerics numerics = at_numerics_default();
    struct at_test_problem made;
    double value;
    at_test_norm_problem(at_op_find(attack->op), &shape, &made);
    struct at_problem *p = &made.problem;
    p->params.lo = -4;
    p->params.hi = 4;
    attack->set(p, &numerics, random);
    at_assert_ok(p->op->check(p));
    struct outcome out = { .limit = limit_of(p, &numerics, attack, 1, &value),
                           .halved = limit_of(p, &numerics, attack, 0.5, &value) };
    out.error = fabs(judged(p, &numerics, attack) - value);
    at_test_problem_release(&made);
    return out;
}

static void test_each_rounding_is_needed(void **state) {
    (void)state;
    const long tries = 500 * at_test_effort(8);
    for (int i = 0; i < ATTACKS; i++) {
        const struct attack *attack = &attacks[i];
        struct at_test_random random = { (uint64_t)i };
        double worst = 0;
        int found = 0;
        for (long k = 0; k < tries; k++) {
            struct outcome seen = attempt(attack, &random);
            at_assert_true(seen.error <= seen.limit * (1 + attack->beside), "%s: error %g beyond its isolated limit %g",
                           attack->name, seen.error, seen.limit);
            assert_true(isfinite(seen.limit) && seen.limit >= 0);
            if (seen.error > 0)
                worst = fmax(worst, seen.error / seen.limit);
            found |= !(seen.error <= seen.halved * (1 + attack->beside));
        }
        print_message("%-28s %.3f of its limit\n", attack->name, worst);
        at_assert_true(worst >= 0.5, "%s", attack->name);
        at_assert_true(found, "%s: half of its constant would do", attack->name);
    }
}

/* Every stage's u, and its eta where it has one, is attacked: a stage that is added needs an attack too. */
static void test_every_stage_is_attacked(void **state) {
    (void)state;
    int u[AT_NORM_STAGES] = { 0 }, eta[AT_NORM_STAGES] = { 0 };
    for (int i = 0; i < ATTACKS; i++)
        (attacks[i].underflow ? eta : u)[attacks[i].stage]++;
    for (int stage = 0; stage < AT_NORM_STAGES; stage++) {
        const int exact_below = stage == AT_NORM_ADD || stage == AT_NORM_EPS || stage == AT_NORM_ROOT;
        at_assert_true(u[stage] > 0, "u of stage %d", stage);
        at_assert_true((eta[stage] > 0) == !exact_below, "eta of stage %d", stage);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rounding_is_needed),
        cmocka_unit_test(test_every_stage_is_attacked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
