/* The run in double against the same layer written here in long double, and what does not depend on threads.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two layers of asynct_35 with sizes of a few elements. Inputs, weights, parameters and page tables are those of the stack; what is
 * computed from them is written out here, from the definitions. Each output's rms in double must be that of this. */
#include "tests/at_test.h"

#include "attest/attention.h"
#include "verify/stack/stack_report.h"

enum { LAYERS = 2, B = 2, KEYS = 5, HIDDEN = 12, H = 2, HK = 1, D = 6, INTER = 10, SLOTS = (2 * 2 + 3) * 4 };
typedef long double real;

static struct at_runner *runner;

static int open_runner(void **state) {
    (void)state;
    return at_runner_open(AT_BUILD_DIR "/attest-cpu", &runner) == AT_OK ? 0 : -1;
}

static int close_runner(void **state) {
    (void)state;
    at_runner_close(runner);
    return 0;
}

/* ---- the stack ---- */

static void make(struct at_stack *s, struct at_stack_plan *p) {
    static const char *const settings[] = { "layers=2",  "b=2", "keys=5", "page=4", "pages=2", "spare=3",
                                            "hidden=12", "h=2", "hk=1",   "d=6",    "inter=10" };
    at_assert_ok(at_stack_load("asynct_35", s));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        at_assert_ok(at_stack_set(s, settings[i], "--set"));
    *p = (struct at_stack_plan){ .stack = s, .runner = { runner }, .n_runners = 1, .use = "*=00_*", .seed = 11 };
    at_assert_ok(at_stack_plan_make(p));
}

static void run(const struct at_stack_plan *p, int threads, struct at_stack_outcome *o) {
    const struct at_stack_options options = { .runner_spec = { "test" }, .repro = "", .quiet = 1, .threads = threads };
    at_assert_ok(at_stack_run(p, &options, o));
}

/* ---- the same in long double ---- */

struct scene {
    const struct at_stack_plan *plan;
    struct at_stack_value *values; /* inputs as they are stored */
    struct at_case_list list;
    struct at_case_data data; /* of the step that is being computed */
    int step;
};

static void open_step(struct scene *w, const char *name, int64_t layer) {
    for (w->step = 0; strcmp(w->plan->steps[w->step].text->name, name) != 0;)
        w->step++;
    at_assert_ok(at_stack_case(w->plan, w->step, layer, &w->list));
    at_assert_ok(at_case_build_around(&w->list.items[0], w->plan->steps[w->step].given, &w->data));
}

static void close_step(struct scene *w) {
    at_case_data_release(&w->data);
    at_case_list_release(&w->list);
}

static real parameter(const struct scene *w, const char *name, int64_t i) {
    const int t = at_op_tensor_index(w->data.problem.op, name);
    assert_true(t >= 0);
    return (real)at_tensor_get(&w->data.problem.tensors[t], i);
}

static real drawn(const struct scene *w, const char *flow, int64_t i) {
    const int f = at_stack_flow_find(w->plan, flow);
    return (real)at_load(w->plan->flows[f].shape.format, w->values[f].stored, (size_t)i);
}

static real clamp(real x, real lo, real hi) { return x < lo ? lo : x > hi ? hi : x; }

static real uclip(const struct scene *w, real x, const char *of, int64_t channel, int64_t gamma) {
    char alpha_name[32], gamma_name[32];
    snprintf(alpha_name, sizeof alpha_name, "alpha%s", of);
    snprintf(gamma_name, sizeof gamma_name, "gamma%s", of);
    return parameter(w, gamma_name, gamma) * clamp(parameter(w, alpha_name, channel) * x, -1, 1);
}

/* y = x w^T, rows of B. */
static void product(const struct scene *w, const real *x, const char *weight, int n, int k, real *y) {
    for (int i = 0; i < B * n; i++) {
        y[i] = 0;
        for (int l = 0; l < k; l++)
            y[i] += x[i / n * k + l] * drawn(w, weight, i % n * k + l);
    }
}

static void rotate(const struct scene *w, real *x, int heads) {
    for (int token = 0; token < B; token++)
        for (int i = 0; i < heads * D / 2; i++) {
            real *head = x + token * heads * D + i / (D / 2) * D;
            const int pair = i % (D / 2);
            const real c = parameter(w, "cos_sin", (KEYS - 1) * D + pair),
                       s = parameter(w, "cos_sin", (KEYS - 1) * D + D / 2 + pair), a = head[pair],
                       b = head[pair + D / 2];
            head[pair] = a * c - b * s;
            head[pair + D / 2] = b * c + a * s;
        }
}

static void attend(const struct scene *w, const real *q, const real *kc, const real *vc, real *o) {
    const struct at_problem *p = &w->data.problem;
    for (int row = 0; row < B * H; row++) {
        real r[KEYS + 2] = { 0 }, *o_row = o + row * D;
        memset(o_row, 0, D * sizeof *o_row);
        for (int t = 0; t < KEYS; t++) {
            const int64_t at = at_attn_slot(p, row / H, t) * D;
            for (int c = 0; c < D; c++)
                r[t + 2] += q[row * D + c] * kc[at + c];
            r[t + 2] *= (real)p->params.scale;
            r[t + 2] = r[t + 2] < 0 ? 0 : r[t + 2];
            const real z = r[t + 2] - (r[t + 2] + r[t + 1] + r[t]) / 3;
            for (int c = 0; c < D; c++)
                o_row[c] += clamp(z, 0, 1) * vc[at + c];
        }
    }
}

/* ---- comparing ---- */

static const struct at_stack_row *next_row(const struct at_stack_outcome *o, const char *tensor) {
    static int64_t at;
    if (!tensor) {
        at = 0;
        return NULL;
    }
    assert_true(at < o->n_rows);
    assert_string_equal(o->rows[at].tensor, tensor);
    return &o->rows[at++];
}

static void expect(const struct at_stack_outcome *o, const char *tensor, const real *x, int n) {
    const struct at_stack_row *row = next_row(o, tensor);
    real sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    const double want = (double)sqrtl(sum / n);
    assert_int_equal(row->error.elements, n);
    assert_int_equal(row->state, AT_STATE_PASS);
    at_assert_within(row->error.rms, want, 1e-13 * want);
    /* The kernels round to bf16; what they are off by is of that size, and not nothing. */
    at_assert_true(row->error.error_rms > 0 && row->error.error_rms < 0.1 * want, "%s is off by %g of %g", tensor,
                   row->error.error_rms, want);
}

struct state {
    real x[B * HIDDEN], res[B * HIDDEN], n[B * HIDDEN], q[B * H * D], k[B * HK * D], v[B * HK * D], kc[SLOTS * HK * D],
        vc[SLOTS * HK * D], a[B * H * D], o[B * HIDDEN], gu[B * 2 * INTER], act[B * INTER];
};

static void add_norm(struct scene *w, struct state *s, const char *step, int64_t layer,
                     const struct at_stack_outcome *o) {
    open_step(w, step, layer);
    for (int i = 0; i < B * HIDDEN; i++) {
        s->res[i] += s->x[i];
        s->n[i] = uclip(w, s->res[i], "", i % HIDDEN, i % HIDDEN) + parameter(w, "beta", i % HIDDEN);
    }
    close_step(w);
    expect(o, "res_out", s->res, B * HIDDEN);
    expect(o, "y", s->n, B * HIDDEN);
}

static void heads(struct scene *w, struct state *s, int64_t layer, const struct at_stack_outcome *o) {
    product(w, s->n, "w_q", H * D, HIDDEN, s->q);
    expect(o, "d", s->q, B * H * D);
    product(w, s->n, "w_k", HK * D, HIDDEN, s->k);
    expect(o, "d", s->k, B * HK * D);
    product(w, s->n, "w_v", HK * D, HIDDEN, s->v);
    expect(o, "d", s->v, B * HK * D);
    open_step(w, "qk_norm", layer);
    for (int i = 0; i < B * H * D; i++)
        s->q[i] = uclip(w, s->q[i], "_q", i % D, 0);
    for (int i = 0; i < B * HK * D; i++)
        s->k[i] = uclip(w, s->k[i], "_k", i % D, 0);
    close_step(w);
    expect(o, "q_out", s->q, B * H * D);
    expect(o, "k_out", s->k, B * HK * D);
    open_step(w, "rope", layer);
    rotate(w, s->q, H);
    rotate(w, s->k, HK);
    close_step(w);
    expect(o, "q_out", s->q, B * H * D);
    expect(o, "k_out", s->k, B * HK * D);
}

static void attention(struct scene *w, struct state *s, int64_t layer, const struct at_stack_outcome *o) {
    int64_t slot[B];
    for (int i = 0; i < SLOTS * HK * D; i++) {
        s->kc[i] = drawn(w, "k_cache", i);
        s->vc[i] = drawn(w, "v_cache", i);
    }
    open_step(w, "kv_write", layer);
    for (int r = 0; r < B; r++) {
        slot[r] = (int64_t)parameter(w, "slot_mapping", r);
        memcpy(s->kc + slot[r] * HK * D, s->k + r * HK * D, HK * D * sizeof(real));
        memcpy(s->vc + slot[r] * HK * D, s->v + r * HK * D, HK * D * sizeof(real));
    }
    close_step(w);
    expect(o, "k", s->kc, SLOTS * HK * D);
    expect(o, "v", s->vc, SLOTS * HK * D);
    open_step(w, "attention", layer);
    for (int r = 0; r < B; r++) /* what is written is what is attended to */
        assert_int_equal(slot[r], at_attn_slot(&w->data.problem, r, KEYS - 1));
    attend(w, s->q, s->kc, s->vc, s->a);
    close_step(w);
    expect(o, "o", s->a, B * H * D);
}

static void mlp(struct scene *w, struct state *s, int64_t layer, const struct at_stack_outcome *o) {
    product(w, s->a, "w_o", HIDDEN, H * D, s->o);
    expect(o, "d", s->o, B * HIDDEN);
    open_step(w, "peri", layer);
    for (int i = 0; i < B * HIDDEN; i++) {
        const int c = i % HIDDEN;
        s->res[i] += uclip(w, s->o[i], "_post", c, c) + parameter(w, "beta_post", c);
        s->n[i] = uclip(w, s->res[i], "_pre", c, c) + parameter(w, "beta_pre", c);
    }
    close_step(w);
    expect(o, "res_out", s->res, B * HIDDEN);
    expect(o, "y", s->n, B * HIDDEN);
    product(w, s->n, "w_gate_up", 2 * INTER, HIDDEN, s->gu);
    expect(o, "d", s->gu, B * 2 * INTER);
    for (int i = 0; i < B * INTER; i++) {
        const real *row = s->gu + i / INTER * 2 * INTER, gate = row[i % INTER];
        s->act[i] = (gate > 0 ? gate : 0) * row[INTER + i % INTER];
    }
    expect(o, "y", s->act, B * INTER);
    product(w, s->act, "w_down", HIDDEN, INTER, s->x);
    expect(o, "d", s->x, B * HIDDEN);
}

static void test_long_double(void **unused) {
    (void)unused;
    static struct state s;
    struct at_stack stack;
    struct at_stack_plan plan;
    struct at_stack_outcome o;
    make(&stack, &plan);
    run(&plan, 1, &o);
    struct scene w = { .plan = &plan, .values = calloc((size_t)plan.n_flows, sizeof *w.values) };
    assert_non_null(w.values);
    at_assert_ok(at_stack_draw(&plan, AT_STACK_BEFORE, -1, w.values));
    for (int i = 0; i < B * HIDDEN; i++) {
        s.x[i] = drawn(&w, "x", i);
        s.res[i] = drawn(&w, "res", i);
    }
    next_row(&o, NULL);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        at_assert_ok(at_stack_draw(&plan, AT_STACK_LAYERS, layer, w.values));
        add_norm(&w, &s, "add_norm", layer, &o);
        heads(&w, &s, layer, &o);
        attention(&w, &s, layer, &o);
        mlp(&w, &s, layer, &o);
    }
    add_norm(&w, &s, "final", -1, &o);
    at_stack_values_release(&plan, w.values);
    at_stack_outcome_release(&o);
    at_stack_plan_release(&plan);
    at_stack_release(&stack);
}

/* Weights are those of their name and layer: normal, of std 1/sqrt(fan-in), other ones in each layer. */
static void test_weights(void **unused) {
    (void)unused;
    struct at_stack stack;
    struct at_stack_plan plan;
    double sum[2] = { 0 }, cross = 0;
    at_assert_ok(at_stack_load("asynct_3", &stack));
    plan = (struct at_stack_plan){ .stack = &stack, .runner = { runner }, .n_runners = 1, .seed = 3 };
    at_assert_ok(at_stack_plan_make(&plan));
    const int f = at_stack_flow_find(&plan, "w_gate_up");
    const int64_t n = at_tensor_count(&plan.flows[f].shape);
    struct at_stack_value *values = calloc((size_t)plan.n_flows, sizeof *values);
    double *first = calloc((size_t)n, sizeof *first);
    for (int layer = 0; layer < 2; layer++) {
        at_assert_ok(at_stack_draw(&plan, AT_STACK_LAYERS, layer, values));
        for (int64_t i = 0; i < n; i++) {
            const double x = values[f].exact[i];
            at_assert_same(x, at_load(AT_BF16, values[f].stored, (size_t)i));
            sum[layer] += x * x;
            cross += layer ? x * first[i] : 0;
            first[i] = layer ? first[i] : x;
        }
        at_assert_within(sum[layer] / (double)n, 1.0 / 128, 5 * sqrt(2 / (double)n) / 128); /* 5 sigma */
    }
    at_assert_within(cross / (double)n, 0, 5 / sqrt((double)n) / 128);
    free(first);
    at_stack_values_release(&plan, values);
    at_stack_plan_release(&plan);
    at_stack_release(&stack);
}

static void test_threads(void **unused) {
    (void)unused;
    struct at_stack stack;
    struct at_stack_plan plan;
    struct at_stack_outcome one, four;
    make(&stack, &plan);
    run(&plan, 1, &one);
    run(&plan, 4, &four);
    assert_int_equal(one.n_rows, four.n_rows);
    for (int64_t i = 0; i < one.n_rows; i++)
        assert_memory_equal(&one.rows[i].error, &four.rows[i].error, sizeof one.rows[i].error);
    at_stack_outcome_release(&one);
    at_stack_outcome_release(&four);
    at_stack_plan_release(&plan);
    at_stack_release(&stack);
}

/* By hand: three elements, one of them infinite. */
static void test_measure(void **unused) {
    (void)unused;
    uint16_t codes[3];
    const double here[3] = { 1.5, -2, 70000 }, exact[3] = { 1, -2, 70000 };
    struct at_stack_error e;
    at_store(AT_F16, codes, 0, 2);
    at_store(AT_F16, codes, 1, -2);
    at_store(AT_F16, codes, 2, (double)INFINITY);
    const struct at_tensor t = { codes, AT_F16, 1, { 3 } };
    at_stack_measure(&t, here, exact, &e);
    assert_int_equal(e.elements, 3);
    assert_int_equal(e.infinities, 1);
    assert_int_equal(e.nans, 0);
    assert_int_equal(e.beyond, 1);
    at_assert_same(e.largest, INFINITY);
    at_assert_within(e.rms, sqrt((1 + 4 + 4.9e9) / 3), 1e-9);
    at_assert_same(e.entered_rms, INFINITY); /* of an element without a number no error is small */
    at_assert_same(e.entered_max, INFINITY);
    at_assert_within(e.inherited_rms, sqrt(0.25 / 3), 1e-15);
    at_assert_same(e.error_rms, INFINITY);
    at_assert_same(e.error_max, INFINITY);
    at_store(AT_F16, codes, 2, 65504);
    at_stack_measure(&t, here, exact, &e);
    at_assert_same(e.largest, 65504);
    at_assert_within(e.entered_rms, sqrt((0.25 + 4496.0 * 4496) / 3), 1e-12);
    at_assert_within(e.error_rms, sqrt((1 + 4496.0 * 4496) / 3), 1e-12);
    at_assert_same(e.error_max, 4496);
    at_assert_same(at_stack_headroom(65504.0 / 8), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_double),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_measure),
    };
    return cmocka_run_group_tests(tests, open_runner, close_runner);
}
