/* AsyncT limits are needed: for each constant of the limit an input whose error, with everything else exact,
 * reaches more than half of what that constant allows; so halving any of them is found.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/asynct_parameters.h"

/* Keys, head size and taps of the one row that an attack works on. */
struct shape {
    int keys, d, taps;
};

struct attack {
    const char *name;
    size_t field; /* the member of struct at_asynct_limit under test */
    struct shape shape;
    enum at_format dtype;
    /* Sets the declaration and everything of the inputs that is not 0, 1 or the default. */
    void (*set)(struct at_problem *problem, struct at_numerics *numerics, struct at_test_random *random);
};

/* 1 + a little: a value near the lower end of its binade, where relative roundings are largest. */
static double near_one(struct at_test_random *random) { return 1 + 0x1p-7 * at_test_uniform(random); }

/* ---- q.k: the first product is 1, the others just too small to be seen ---- */

static void swamp_qk(struct at_problem *problem, double tiny) {
    at_test_set(problem, "k", 0, 1);
    for (int64_t i = 1; i < problem->sizes.d; i++)
        at_test_set(problem, "k", i, tiny);
}

static void qk_f32(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->qk_unit = AT_UNIT_F32;
    swamp_qk(problem, 0x1p-24 * (1 - 0x1p-20));
}

static void qk_f32_fma(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->qk_unit = AT_UNIT_F32_FMA;
    swamp_qk(problem, 0x1p-24 * (1 - 0x1p-20));
}

static void qk_f16_fma(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->qk_unit = AT_UNIT_F16_FMA;
    swamp_qk(problem, 0x1p-11 * (1 - 0x1p-10));
}

/* One block: what is below 2^-25 of the largest term is cut, then what is below 2^-23 of the sum. */
static void qk_tc_f32(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->qk_unit = AT_UNIT_TC_F32;
    swamp_qk(problem, 0x1p-19 * (1 - 0x1p-5));
    at_test_set(problem, "k", 1, 3 * 0x1p-19);
    for (int64_t i = 1; i < problem->sizes.d; i++)
        at_test_set(problem, "q", i, 0x1p-6);
}

static void qk_tc_f16(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->qk_unit = AT_UNIT_TC_F16;
    swamp_qk(problem, 0);
    at_test_set(problem, "k", 1, 0x1p-11 * (1 - 0x1p-10));
}

static void stored(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->qk_unit = AT_UNIT_F64;
    swamp_qk(problem, 0x1p-24 * (1 - 0x1p-20));
}

/* ---- scale ---- */

static void scale_score(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)n;
    problem->params.scale = (float)near_one(random);
    at_test_set(problem, "k", 0, near_one(random));
}

static void scale_taps(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->scale_on = AT_SCALE_ON_TAPS;
    n->fir_order = AT_FIR_ORDER_TAPS;
    problem->params.scale = (float)near_one(random);
    at_test_set_all(problem, "taps", near_one(random));
    at_test_set(problem, "k", 0, near_one(random));
}

static void scale_q(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->scale_on = AT_SCALE_ON_Q;
    problem->params.scale = (float)near_one(random);
    at_test_set(problem, "q", 0, near_one(random));
}

static void scale_q_rounded(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->scale_on = AT_SCALE_ON_Q_ROUNDED;
    problem->params.scale = (float)near_one(random);
    at_test_set(problem, "q", 0, near_one(random));
}

static void scale_q_underflows(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->scale_on = AT_SCALE_ON_Q_ROUNDED;
    problem->params.scale = 0x1p-5f;
    at_test_set(problem, "q", 0, 0x1p-20);
    at_test_set(problem, "k", 0, 1024);
}

/* ---- FIR: judged at the last key, the scores before it too small to be seen beside its own ---- */

static void last_key_only(struct at_problem *problem) {
    at_test_set_all(problem, "v", 0);
    at_test_set(problem, "v", problem->sizes.slots - 1, 1);
}

static void fir_taps(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->fir_order = AT_FIR_ORDER_TAPS;
    at_test_set_all(problem, "taps", 1);
    at_test_set(problem, "taps", 0, near_one(random));
    at_test_set_all(problem, "k", 0x1p-24 * (1 - 0x1p-20));
    at_test_set(problem, "k", problem->sizes.slots - 1, near_one(random));
    last_key_only(problem);
}

static void pooled(struct at_problem *problem, struct at_test_random *random) {
    problem->params.fir_form = AT_FIR_POOLED;
    problem->params.clip_max = 1000;
    at_test_asynct_sigma(problem, -(double)problem->sizes.taps * 64 * near_one(random));
    at_test_set_all(problem, "k", 0x1p-24 * (1 - 0x1p-20));
    at_test_set(problem, "k", problem->sizes.slots - 1, near_one(random));
    last_key_only(problem);
}

static void fir_pooled(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->fir_order = AT_FIR_ORDER_POOLED;
    pooled(problem, random);
}

static void fir_pooled_taps(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->fir_order = AT_FIR_ORDER_TAPS;
    pooled(problem, random);
}

/* Score, scale, tap and p*v one after the other, each 1.5 units of the smallest subnormal rounded to 2. */
static void step_underflows(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->fir_order = AT_FIR_ORDER_TAPS;
    problem->params.scale = 0.75f;
    at_test_set_all(problem, "taps", 0.75);
    at_test_set(problem, "q", 0, 0.5);
    at_test_set(problem, "k", 0, 3 * 0x1p-149);
    at_test_set(problem, "v", 0, 0.75);
}

/* ---- gamma and P ---- */

static void gamma_on_p(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->gamma_on = AT_GAMMA_ON_P;
    at_test_set_all(problem, "gamma", near_one(random));
    at_test_set(problem, "k", 0, near_one(random));
}

static void gamma_after_p(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    gamma_on_p(problem, n, random);
    n->gamma_on = AT_GAMMA_AFTER_P;
}

static void gamma_on_output(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    gamma_on_p(problem, n, random);
    n->gamma_on = AT_GAMMA_ON_OUTPUT;
}

static void p_bf16(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->p = AT_BF16;
    at_test_set(problem, "k", 0, near_one(random));
}

static void p_f16(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    n->p = AT_F16;
    at_test_set(problem, "k", 0, near_one(random));
}

static void p_underflows(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->p = AT_F16;
    at_test_set(problem, "k", 0, 0x1p-25);
}

/* ---- p*v: p = 1, and the first row of V is 1 ---- */

static void swamp_pv(struct at_problem *problem, double tiny) {
    for (int64_t t = 1; t < problem->sizes.slots; t++)
        at_test_set(problem, "v", t, tiny);
}

static void pv_f32(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->pv_unit = AT_UNIT_F32;
    swamp_pv(problem, 0x1p-24 * (1 - 0x1p-20));
}

static void pv_f32_fma(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->pv_unit = AT_UNIT_F32_FMA;
    swamp_pv(problem, 0x1p-24 * (1 - 0x1p-20));
}

static void pv_f16_fma(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->p = AT_F16;
    n->pv_unit = AT_UNIT_F16_FMA;
    swamp_pv(problem, 0x1p-11 * (1 - 0x1p-10));
}

static void pv_tc_f32(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->p = AT_BF16;
    n->pv_unit = AT_UNIT_TC_F32;
    n->pv_chunk = 16;
    swamp_pv(problem, 0x1p-25 * (1 - 0x1p-8));
    at_test_set(problem, "v", 1, 3 * 0x1p-25);
}

static void pv_tc_f16(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->p = AT_F16;
    n->pv_unit = AT_UNIT_TC_F16;
    n->pv_chunk = 16;
    swamp_pv(problem, 0);
    at_test_set(problem, "v", 1, 0x1p-11 * (1 - 0x1p-10));
}

static void split(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)random;
    n->split = 1;
    swamp_pv(problem, 0x1p-24 * (1 - 0x1p-20));
}

/* ---- output ---- */

static void output_rounds(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)n;
    at_test_set(problem, "k", 0, 1 + 0.25 * at_test_uniform(random));
    at_test_set(problem, "v", 0, 1 + 0.25 * at_test_uniform(random));
}

static void output_underflows(struct at_problem *problem, struct at_numerics *n, struct at_test_random *random) {
    (void)n;
    (void)random;
    at_test_set(problem, "k", 0, 0x1p-13);
    at_test_set(problem, "v", 0, 0x1p-12);
}

#define FIELD(name) offsetof(struct at_asynct_limit, name)

static const struct attack attacks[] = {
    { "q.k in f32", FIELD(e_qk), { 1, 16, 1 }, AT_F32, qk_f32 },
    { "q.k by f32 fma", FIELD(e_qk), { 1, 16, 1 }, AT_F32, qk_f32_fma },
    { "q.k by f16 fma", FIELD(e_qk), { 1, 16, 1 }, AT_F16, qk_f16_fma },
    { "q.k on tensor cores, f32", FIELD(e_qk), { 1, 16, 1 }, AT_F16, qk_tc_f32 },
    { "q.k on tensor cores, f16", FIELD(e_qk), { 1, 16, 1 }, AT_F16, qk_tc_f16 },
    { "f64 score stored as f32", FIELD(u_store), { 1, 2, 1 }, AT_F32, stored },
    { "scale on the score", FIELD(u_scale), { 1, 1, 1 }, AT_F32, scale_score },
    { "scale on q", FIELD(u_q), { 1, 1, 1 }, AT_F32, scale_q },
    { "scale on q, f16", FIELD(u_q), { 1, 1, 1 }, AT_F16, scale_q_rounded },
    { "scale on q, bf16", FIELD(u_q), { 1, 1, 1 }, AT_BF16, scale_q_rounded },
    { "scale on q, underflow", FIELD(eta_q), { 1, 1, 1 }, AT_F16, scale_q_underflows },
    { "scale on a tap", FIELD(fir), { 1, 1, 1 }, AT_F32, scale_taps },
    { "FIR, given taps", FIELD(fir), { 3, 1, 3 }, AT_F32, fir_taps },
    { "FIR, five given taps", FIELD(fir), { 5, 1, 5 }, AT_F32, fir_taps },
    { "FIR, pooled", FIELD(fir), { 3, 1, 3 }, AT_F32, fir_pooled },
    { "FIR, pooled by taps", FIELD(fir), { 3, 1, 3 }, AT_F32, fir_pooled_taps },
    { "f32 steps, underflow", FIELD(eta_step), { 1, 1, 1 }, AT_F32, step_underflows },
    { "gamma on p", FIELD(u_step), { 1, 1, 1 }, AT_F32, gamma_on_p },
    { "gamma after p", FIELD(u_step), { 1, 1, 1 }, AT_F32, gamma_after_p },
    { "gamma on the output", FIELD(u_split), { 1, 1, 1 }, AT_F32, gamma_on_output },
    { "P in bf16", FIELD(u_p), { 1, 1, 1 }, AT_F32, p_bf16 },
    { "P in f16", FIELD(u_p), { 1, 1, 1 }, AT_F32, p_f16 },
    { "P in f16, underflow", FIELD(eta_p), { 1, 1, 1 }, AT_F32, p_underflows },
    { "p*v in f32", FIELD(pv_share), { 16, 1, 1 }, AT_F32, pv_f32 },
    { "p*v by f32 fma", FIELD(pv_share), { 16, 1, 1 }, AT_F32, pv_f32_fma },
    { "p*v by f16 fma", FIELD(pv_share), { 16, 1, 1 }, AT_F16, pv_f16_fma },
    { "p*v on tensor cores, f32", FIELD(pv_share), { 16, 1, 1 }, AT_BF16, pv_tc_f32 },
    { "p*v on tensor cores, f16", FIELD(pv_share), { 16, 1, 1 }, AT_F16, pv_tc_f16 },
    { "sum of splits", FIELD(u_split), { 16, 1, 1 }, AT_F32, split },
    { "output in f16", FIELD(u_out), { 1, 1, 1 }, AT_F16, output_rounds },
    { "output in bf16", FIELD(u_out), { 1, 1, 1 }, AT_BF16, output_rounds },
    { "output in f16, underflow", FIELD(eta_out), { 1, 1, 1 }, AT_F16, output_underflows },
};

/* The limit with every constant but one at 0: an attack makes errors in one place only. */
static struct at_asynct_limit isolated(const struct at_asynct_limit *limit, size_t field) {
    static const size_t fields[] = { FIELD(u_q),      FIELD(eta_q),   FIELD(e_qk),  FIELD(u_store), FIELD(u_step),
                                     FIELD(eta_step), FIELD(u_scale), FIELD(fir),   FIELD(u_p),     FIELD(eta_p),
                                     FIELD(pv_share), FIELD(u_split), FIELD(u_out), FIELD(eta_out) };
    struct at_asynct_limit out = *limit;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i] != field)
            memset((char *)&out + fields[i], 0, sizeof(double));
    return out;
}

/* One try: the error of the model, and what the limit and its half allow. */
struct outcome {
    double error, limit, halved;
};

static struct outcome attempt(const struct attack *attack, struct at_test_random *random) {
    const int sq[] = { 1 }, sk[] = { attack->shape.keys };
    struct at_test_shape shape = {
        .b = 1, .d = attack->shape.d, .taps = attack->shape.taps, .sq = sq, .sk = sk, .dtype = attack->dtype
    };
    struct at_test_problem made;
    struct at_test_eval exact, model;
    struct at_numerics numerics = at_numerics_default();
    struct at_asynct_limit limit;
    struct outcome out;
    at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, 1, &made));
    struct at_problem *problem = &made.problem;
    problem->params.scale = 1;
    problem->params.fir_form = AT_FIR_TAPS;
    problem->params.clip_max = 4;
    for (int i = 0; i < 3; i++)
        at_test_set_all(problem, (const char *[]){ "q", "k", "v" }[i], 1);
    at_test_set_all(problem, "taps", 0);
    at_test_set(problem, "taps", 0, 1);
    attack->set(problem, &numerics, random);
    at_assert_ok(problem->op->check(problem));
    at_assert_ok(at_asynct_limit_init(problem, &numerics, &limit));
    limit = isolated(&limit, attack->field);
    at_assert_ok(at_test_eval_init(problem, 1, &exact));
    at_assert_ok(at_test_eval_init(problem, 0, &model));
    at_assert_ok(at_asynct_evaluate_with(problem, &limit, 0, 1, &exact.eval));
    at_assert_ok(at_asynct_model(problem, &numerics, 0, 1, &model.eval));
    out.error = fabs(model.eval.value[AT_ASYNCT_O][0] - exact.eval.value[AT_ASYNCT_O][0]);
    out.limit = exact.eval.limit[AT_ASYNCT_O][0];
    double constant;
    memcpy(&constant, (char *)&limit + attack->field, sizeof constant);
    constant /= 2;
    memcpy((char *)&limit + attack->field, &constant, sizeof constant);
    at_assert_ok(at_asynct_evaluate_with(problem, &limit, 0, 1, &exact.eval));
    out.halved = exact.eval.limit[AT_ASYNCT_O][0];
    at_test_eval_release(&exact);
    at_test_eval_release(&model);
    at_test_problem_release(&made);
    return out;
}

static void test_each_constant_is_needed(void **state) {
    (void)state;
    const long tries = 500 * at_test_effort(8);
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        struct at_test_random random = { i };
        double worst = 0;
        int found = 0;
        for (long k = 0; k < tries; k++) {
            struct outcome seen = attempt(&attacks[i], &random);
            at_assert_true(seen.error <= seen.limit, "%s: error %g beyond its isolated limit %g", attacks[i].name,
                           seen.error, seen.limit);
            assert_true(isfinite(seen.limit) && seen.limit > 0);
            worst = fmax(worst, seen.error / seen.limit);
            found |= !(seen.error <= seen.halved);
        }
        print_message("%-26s %.3f of its limit\n", attacks[i].name, worst);
        at_assert_true(worst >= 0.5, "%s", attacks[i].name);
        at_assert_true(found, "%s: half of its constant would do", attacks[i].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_each_constant_is_needed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
