/* The declared-order AsyncT model against plain float code written from its description, and its ledger.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/asynct_parameters.h"

enum { KEYS = 37, D = 24, TAPS = 3 };

/* One row as a simple f32 kernel computes it. */
struct kernel {
    float q[D], k[KEYS][D], v[KEYS][D], w[TAPS];
    float scale, sigma, gamma;
    const struct at_numerics *n;
    int shrink;
    enum at_format dtype;
};

static float f(double x) { return (float)x; }

static float score(const struct kernel *x, int t) {
    const struct at_numerics *n = x->n;
    float lane[8] = { 0 };
    int run = n->qk_run ? n->qk_run : (D + n->qk_lanes - 1) / n->qk_lanes;
    for (int i = 0; i < D; i++) {
        float *acc = &lane[i / run % n->qk_lanes], q = x->q[i];
        if (n->scale_on == AT_SCALE_ON_Q || n->scale_on == AT_SCALE_ON_Q_ROUNDED)
            q = q * x->scale;
        if (n->scale_on == AT_SCALE_ON_Q_ROUNDED)
            q = f(at_round(x->dtype, (double)q));
        float product = q * x->k[t][i];
        *acc = n->qk_unit == AT_UNIT_F32_FMA ? fmaf(q, x->k[t][i], *acc) : *acc + product;
    }
    float sum = lane[0];
    for (int i = 1; n->qk_tree == AT_TREE_SEQUENTIAL && i < n->qk_lanes; i++)
        sum = sum + lane[i];
    for (int mask = n->qk_lanes / 2; n->qk_tree == AT_TREE_BUTTERFLY && mask >= 1; mask /= 2) {
        for (int i = 0; i < mask; i++)
            lane[i] = lane[i] + lane[i + mask];
        sum = lane[0];
    }
    return n->scale_on == AT_SCALE_ON_SCORE ? sum * x->scale : sum;
}

static float filtered(const struct kernel *x, const float *r, int t) {
    const int have = t + 1 < TAPS ? t + 1 : TAPS;
    const float share = x->sigma / (float)(x->shrink ? have : TAPS);
    float taps[TAPS] = { x->w[0], x->w[1], x->w[2] };
    if (x->shrink && have < TAPS) {
        taps[0] = 1 - share;
        taps[1] = -share;
    }
    for (int j = 0; x->n->scale_on == AT_SCALE_ON_TAPS && j < TAPS; j++)
        taps[j] = x->scale * taps[j];
    if (x->n->fir_order == AT_FIR_ORDER_TAPS) {
        float z = taps[0] * r[t];
        for (int j = 1; j < have; j++) {
            float product = taps[j] * r[t - j];
            z = x->n->fir_fma ? fmaf(taps[j], r[t - j], z) : z + product;
        }
        return z;
    }
    float sum = r[t];
    for (int j = 1; j < have; j++)
        sum = sum + r[t - j];
    float part = share * sum;
    return x->n->fir_fma ? fmaf(-share, sum, r[t]) : r[t] - part;
}

static float operand(const struct kernel *x, float z) {
    float p = fminf(fmaxf(z, 0), 1);
    if (x->n->gamma_on == AT_GAMMA_ON_P)
        p = x->gamma * p;
    p = f(at_round((enum at_format)x->n->p, (double)p));
    return x->n->gamma_on == AT_GAMMA_AFTER_P ? x->gamma * p : p;
}

static float output(const struct kernel *x, const float *p, int c) {
    const int range = (int)at_partial_keys(x->n->split, x->n->splits, KEYS), split = range ? range : KEYS;
    float o = 0;
    for (int first = 0; first < KEYS; first += split) {
        float part = 0;
        for (int t = first; t < KEYS && t < first + split; t++) {
            float product = p[t] * x->v[t][c];
            part = x->n->pv_unit == AT_UNIT_F32_FMA ? fmaf(p[t], x->v[t][c], part) : part + product;
        }
        o = first ? o + part : part;
    }
    return x->n->gamma_on == AT_GAMMA_ON_OUTPUT ? x->gamma * o : o;
}

static void load(const struct at_problem *problem, struct kernel *x) {
    for (int i = 0; i < D; i++)
        x->q[i] = f(at_test_get(problem, "q", i));
    for (int t = 0; t < KEYS; t++)
        for (int i = 0; i < D; i++) {
            x->k[t][i] = f(at_test_get(problem, "k", t * D + i));
            x->v[t][i] = f(at_test_get(problem, "v", t * D + i));
        }
    for (int j = 0; j < TAPS; j++)
        x->w[j] = f(at_test_get(problem, "taps", j));
    x->sigma = f(at_test_get(problem, "sigma", 0));
    x->gamma = f(at_test_get(problem, "gamma", 0));
    x->scale = problem->params.scale;
    x->shrink = problem->params.edge == AT_EDGE_SHRINK;
}

static void make(struct at_test_problem *made, enum at_format dtype, uint64_t seed) {
    static const int one[] = { 1 }, keys[] = { KEYS };
    struct at_test_shape shape = { .b = 1, .d = D, .sq = one, .sk = keys, .taps = TAPS, .dtype = dtype };
    at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, seed, made));
    at_test_asynct_sigma(&made->problem, 0.7);
    at_test_set_all(&made->problem, "gamma", 1.3);
}

static int is_f32(int unit) { return unit == AT_UNIT_F32 || unit == AT_UNIT_F32_FMA; }

static void test_bits_of_a_plain_kernel(void **state) {
    (void)state;
    const int want = 200 * (int)at_test_effort(5);
    int seen = 0;
    for (uint64_t seed = 0; seen < want; seed++) {
        struct at_test_random random = { seed };
        struct at_test_problem made;
        struct at_test_eval eval;
        struct kernel x;
        x.dtype = seed % 2 ? AT_BF16 : AT_F32; /* f32 shows every bit of the sums */
        make(&made, x.dtype, seed);
        made.problem.params.edge = at_test_below(&random, 2);
        struct at_numerics n = at_test_asynct_numerics(&random, &made.problem);
        at_assert_ok(at_test_eval_init(&made.problem, 0, &eval));
        load(&made.problem, &x);
        x.n = &n;
        if (is_f32(n.qk_unit) && is_f32(n.pv_unit)) {
            float r[KEYS], p[KEYS];
            at_assert_ok(at_asynct_model(&made.problem, &n, 0, 1, &eval.eval));
            for (int t = 0; t < KEYS; t++) {
                r[t] = fmaxf(score(&x, t), 0);
                p[t] = operand(&x, filtered(&x, r, t));
            }
            for (int c = 0; c < D; c++)
                at_assert_same(eval.eval.value[AT_ASYNCT_O][c], at_round(x.dtype, (double)output(&x, p, c)));
            seen++;
        }
        at_test_eval_release(&eval);
        at_test_problem_release(&made);
    }
}

/* An f16 accumulator that overflows at key 5: with fminmax the NaN of inf - inf becomes p = 0 and is counted
 * as laundered at keys 5, 6 and 7; with propagate it reaches the output. */
static void test_laundering_is_counted(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_test_eval eval;
    struct at_ledger ledger;
    struct at_numerics n = at_numerics_default();
    make(&made, AT_F16, 3);
    for (int i = 0; i < D; i++) {
        at_test_set(&made.problem, "q", i, 100);
        at_test_set(&made.problem, "k", 5 * D + i, 100);
    }
    n.qk_unit = AT_UNIT_TC_F16;
    n.fir_order = AT_FIR_ORDER_POOLED;
    at_assert_ok(at_test_eval_init(&made.problem, 1, &eval));
    eval.eval.ledger = &ledger;
    for (int clamp = 0; clamp < 2; clamp++) {
        n.clamp = clamp ? AT_CLAMP_PROPAGATE : AT_CLAMP_FMINMAX;
        at_ledger_init(&ledger);
        at_assert_ok(at_asynct_model(&made.problem, &n, 0, 1, &eval.eval));
        assert_true(isnan(eval.eval.value[AT_ASYNCT_O][0]) == clamp);
        /* key 5: inf - inf; keys 6, 7: r - inf = -inf, which every clamp takes for 0 */
        assert_int_equal(ledger.laundered, clamp ? 2 : 3);
        assert_int_equal(ledger.first_laundered.k, clamp ? 6 : 5);
        assert_int_equal(ledger.stage[AT_STAGE_score].inf, 1);
        assert_int_equal(ledger.stage[AT_STAGE_gate_in].nan, 1);
        assert_int_equal(ledger.stage[AT_STAGE_gate_in].inf, 2);
        assert_true(ledger.inf_made >= 1);
        at_assert_same(eval.eval.limit[AT_ASYNCT_O][0], 0.0);
    }
    at_ledger_init(&ledger);
    at_assert_ok(at_asynct_evaluate(&made.problem, &n, 0, 1, &eval.eval));
    assert_int_equal(ledger.laundered + ledger.inf_made, 0);
    assert_true(ledger.stage[AT_STAGE_score].max_abs == 100.0 * 100 * D);
    assert_true(ledger.stage[AT_STAGE_score].to_inf == 1 && ledger.clamped_high >= 1 && ledger.clamped_low >= 2);
    assert_int_equal(ledger.stage[AT_STAGE_p].count, KEYS);
    assert_true(isinf(eval.eval.limit[AT_ASYNCT_O][0])); /* class RANGE */
    at_test_eval_release(&eval);
    at_test_problem_release(&made);
}

/* Overflow after the accumulators: P, partial sums and the output. */
static void test_later_overflow_is_counted(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_test_eval eval;
    struct at_ledger ledger;
    struct at_numerics n = at_numerics_default();
    make(&made, AT_F16, 3);
    at_assert_ok(at_test_eval_init(&made.problem, 0, &eval));
    eval.eval.ledger = &ledger;
    at_test_set_all(&made.problem, "gamma", 0x1p17);
    at_ledger_init(&ledger);
    at_assert_ok(at_asynct_model(&made.problem, &n, 0, 1, &eval.eval));
    const uint64_t outputs = ledger.inf_made;
    assert_true(outputs > 0 && outputs <= D && isinf(eval.eval.value[AT_ASYNCT_O][0]));
    assert_true(ledger.stage[AT_STAGE_out].inf == 0 && ledger.stage[AT_STAGE_out].to_inf == outputs);
    n.p = AT_F16;
    at_ledger_init(&ledger);
    at_assert_ok(at_asynct_model(&made.problem, &n, 0, 1, &eval.eval));
    assert_true(ledger.inf_made > 0 && ledger.stage[AT_STAGE_out].inf + ledger.stage[AT_STAGE_out].nan > 0);
    at_test_eval_release(&eval);
    at_test_problem_release(&made);
}

/* Declarations that cannot be, each with its reason. */
/* Of 64 keys the first step of P V has keys 16 q to 16 q + 3. Products that a step adds at once lose what is far below the
 * largest of them: with 2^26 at key 0, -2^26 at key 16 and ones elsewhere, ones of their step alone are lost. */
static void test_spread_keys(void **state) {
    (void)state;
    enum { MANY = 70 };
    static const int one[] = { 1 }, keys[] = { MANY };
    static const struct {
        int spread;
        int64_t page;
        double want;
    } tries[] = { { 64, 0, 70 - 16 }, { 64, 64, 70 - 16 }, { 64, 16, 70 - 32 }, { 0, 0, 70 - 32 }, { 32, 0, 70 - 16 } };
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        struct at_test_shape shape = {
            .b = 1, .d = 16, .sq = one, .sk = keys, .taps = 1, .dtype = AT_BF16, .page = tries[i].page
        };
        struct at_test_problem made;
        struct at_test_eval eval;
        struct at_numerics n = at_numerics_default();
        at_assert_ok(at_test_attention_problem(&at_op_asynct_attention, &shape, 1, &made));
        at_test_asynct_sigma(&made.problem, 0);
        at_test_set_all(&made.problem, "gamma", 1);
        at_test_set_all(&made.problem, "q", 1);
        at_test_set_all(&made.problem, "k", 1);
        at_test_set_all(&made.problem, "v", 1);
        made.problem.params.scale = 1;
        n.qk_unit = n.pv_unit = AT_UNIT_TC_F32;
        n.pv_chunk = 16;
        n.p = AT_BF16;
        n.pv_spread = tries[i].spread;
        for (int c = 0; c < 16; c++) {
            at_test_set(&made.problem, "v", at_attn_slot(&made.problem, 0, 0) * 16 + c, 0x1p26);
            at_test_set(&made.problem, "v", at_attn_slot(&made.problem, 0, tries[i].spread == 32 ? 8 : 16) * 16 + c,
                        -0x1p26);
        }
        at_assert_ok(at_test_eval_init(&made.problem, 0, &eval));
        at_assert_ok(at_asynct_model(&made.problem, &n, 0, 1, &eval.eval));
        at_assert_true(eval.eval.value[AT_ASYNCT_O][0] == tries[i].want, "try %zu: %g, wanted %g", i,
                       eval.eval.value[AT_ASYNCT_O][0], tries[i].want);
        at_test_eval_release(&eval);
        at_test_problem_release(&made);
    }
}

static void test_refused_declarations(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_eval eval = { 0 };
    make(&made, AT_BF16, 1);
    struct at_numerics n = at_numerics_default();
    n.free_order = 1;
    at_assert_fails(at_asynct_model(&made.problem, &n, 0, 1, &eval), AT_UNSUPPORTED, "free_order");
    n = at_numerics_default();
    n.qk_unit = AT_UNIT_TC_F16;
    at_assert_fails(at_asynct_model(&made.problem, &n, 0, 1, &eval), AT_UNSUPPORTED, "qk_unit");
    n.qk_unit = AT_UNIT_TC_F32;
    n.scale_on = AT_SCALE_ON_Q;
    at_assert_fails(at_asynct_model(&made.problem, &n, 0, 1, &eval), AT_UNSUPPORTED, "qk_unit");
    n = at_numerics_default();
    n.pv_unit = AT_UNIT_TC_F32;
    n.pv_chunk = 16;
    at_assert_fails(at_asynct_model(&made.problem, &n, 0, 1, &eval), AT_UNSUPPORTED, "pv_unit");
    n = at_numerics_default();
    n.fir_order = AT_FIR_ORDER_POOLED;
    made.problem.params.fir_form = AT_FIR_TAPS;
    at_assert_fails(at_asynct_model(&made.problem, &n, 0, 1, &eval), AT_UNSUPPORTED, "fir_order");
    n.qk_lanes = 0;
    at_assert_fails(at_asynct_model(&made.problem, &n, 0, 1, &eval), AT_USAGE, "qk_lanes");
    at_test_problem_release(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_a_plain_kernel),    cmocka_unit_test(test_laundering_is_counted),
        cmocka_unit_test(test_later_overflow_is_counted), cmocka_unit_test(test_spread_keys),
        cmocka_unit_test(test_refused_declarations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
