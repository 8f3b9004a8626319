/* Wrong gated products are wrong where their fault is and right elsewhere; what is no problem, or no arithmetic, is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "reglu/reglu.h"
#include "silu_mul/silu_mul.h"
#include "tests/support/gated_problem.h"

enum { ROWS = 3, CHANNELS = 5, N = ROWS * CHANNELS };

struct element {
    double gate, up;
};

/* Distinct quarters of both signs, no zeros. */
static struct element element(int64_t row, int64_t channel) {
    const int64_t i = row * CHANNELS + channel;
    return (struct element){ (i % 2 ? -0.25 : 0.25) * (double)(i + 1), (i % 3 ? 0.25 : -0.25) * (double)(2 * i + 1) };
}

static double silu(double g) { return g * (0.5 + 0.5 * tanh(g / 2)); }
static double relu(double g) { return g > 0 ? g : 0; }

/* What the flat place `at` of a row of gate_up holds. */
static double laid(int64_t row, int64_t at) {
    return at < CHANNELS ? element(row, at).gate : element(row, at - CHANNELS).up;
}

static double wanted(int is_silu, int fault, enum at_halves halves, int64_t row, int64_t c) {
    struct element x = element(row, c);
    double (*f)(double) = is_silu ? silu : relu;
    switch (fault) {
    case AT_GATED_SWAPPED:
        return f(x.up) * x.gate;
    case AT_GATED_NEXT_ROW:
        return f(x.gate) * element((row + 1) % ROWS, c).up;
    case AT_GATED_NEXT_CHANNEL:
        return f(x.gate) * element(row, (c + 1) % CHANNELS).up;
    case AT_GATED_INTERLEAVED:
        return halves == AT_HALVES_APART ? f(x.gate) * x.up : f(laid(row, 2 * c)) * laid(row, 2 * c + 1);
    default:
        break;
    }
    if (!is_silu)
        return fault == AT_REGLU_NOT_RECTIFIED  ? x.gate * x.up
               : fault == AT_REGLU_UP_RECTIFIED ? x.gate * relu(x.up)
               : fault == AT_REGLU_GATE_AS_MASK ? (x.gate > 0 ? x.up : 0)
                                                : fabs(x.gate) * x.up;
    const double cubic = sqrt(2 / acos(-1.0)) * (x.gate + 0.044715 * x.gate * x.gate * x.gate);
    return fault == AT_SILU_NO_SIGMOID      ? x.gate * x.up
           : fault == AT_SILU_SIGMOID_ALONE ? silu(x.gate) / x.gate * x.up
           : fault == AT_SILU_EXP_OF_GATE   ? x.gate * (0.5 - 0.5 * tanh(x.gate / 2)) * x.up
           : fault == AT_SILU_UP_RECTIFIED  ? silu(x.gate) * relu(x.up)
           : fault == AT_SILU_TANH_OF_GATE  ? silu(2 * x.gate) / 2 * x.up
                                            : x.gate * (0.5 + 0.5 * tanh(cubic)) * x.up;
}

static void try_decoys(const char *name, enum at_halves halves) {
    struct at_test_problem made;
    struct at_test_eval right, wrong;
    at_test_gated_problem(name, halves, AT_F32, ROWS, CHANNELS, &made);
    const struct at_problem *p = &made.problem;
    for (int64_t i = 0; i < N; i++)
        at_test_gated_set(&made.problem, i, element(i / CHANNELS, i % CHANNELS).gate,
                          element(i / CHANNELS, i % CHANNELS).up);
    at_assert_ok(p->op->check(p));
    at_assert_ok(at_test_eval_init(p, 0, &right));
    at_assert_ok(p->op->evaluate(p, NULL, 0, ROWS, &right.eval));
    for (int d = 0; d < p->op->n_decoys; d++) {
        int differ = 0;
        at_assert_ok(at_test_eval_init(p, 0, &wrong));
        at_assert_ok(p->op->decoy(p, NULL, d, 0, ROWS, &wrong.eval));
        for (int64_t i = 0; i < N; i++) {
            const double got = wrong.eval.value[AT_GATED_Y][i],
                         want = wanted(name[0] == 's', d, halves, i / CHANNELS, i % CHANNELS);
            at_assert_true(fabs(got - want) <= 1e-13 * (1 + fabs(want)), "%s %s [%lld]: %.17g, wanted %.17g", name,
                           p->op->decoys[d].name, (long long)i, got, want);
            differ += fabs(got - right.eval.value[AT_GATED_Y][i]) > 0.01;
        }
        const int inert = d == AT_GATED_INTERLEAVED && halves == AT_HALVES_APART;
        at_assert_true(inert ? differ == 0 : differ >= 4, "%s %s: %d elements differ", name, p->op->decoys[d].name,
                       differ);
        at_test_eval_release(&wrong);
    }
    at_test_eval_release(&right);
    at_test_problem_release(&made);
}

static void test_decoys(void **state) {
    (void)state;
    try_decoys("silu_mul", AT_HALVES_APART);
    try_decoys("silu_mul", AT_HALVES_TOGETHER);
    try_decoys("reglu", AT_HALVES_APART);
    try_decoys("reglu", AT_HALVES_TOGETHER);
}

static void test_refused(void **state) {
    (void)state;
    struct at_test_problem made;
    struct at_test_eval got;
    at_test_gated_problem("reglu", AT_HALVES_TOGETHER, AT_BF16, 2, 3, &made);
    struct at_problem *p = &made.problem;
    const struct at_gated_own right = at_gated_own_of(p);
    struct at_gated_own own = right;
    at_assert_ok(p->op->check(p));
    own.halves = 2;
    at_gated_own_set(p, &own);
    at_assert_fails(p->op->check(p), AT_USAGE, "halves is 2");
    own.halves = AT_HALVES_APART;
    at_gated_own_set(p, &own);
    at_assert_fails(p->op->check(p), AT_USAGE, "apart and together are 0 and 6, wanted 3 and 0 for 3 channels apart");
    at_gated_own_set(p, &right);
    p->sizes.channels = 0;
    at_assert_fails(p->op->check(p), AT_USAGE, "channels are 2 and 0");
    p->sizes.channels = 3;
    p->tensors[AT_GATED_GATE_UP].shape[1] = 5;
    at_assert_fails(p->op->check(p), AT_USAGE, "gate_up has 10 elements of bf16, wanted 12");
    p->tensors[AT_GATED_GATE_UP].shape[1] = 6;
    p->tensors[AT_GATED_GATE_UP].format = AT_F16;
    at_assert_fails(p->op->check(p), AT_USAGE, "of f16, wanted 12 of bf16");
    p->tensors[AT_GATED_GATE_UP].format = AT_BF16;
    at_assert_ok(p->op->check(p));
    struct at_numerics numerics = at_numerics_default();
    numerics.free_order = 1;
    at_assert_ok(at_test_eval_init(p, 1, &got));
    at_assert_fails(p->op->model(p, &numerics, 0, 2, &got.eval), AT_UNSUPPORTED, "no arithmetic is declared");
    at_test_eval_release(&got);
    at_test_problem_release(&made);
}

/* f16: what is beyond its range, what becomes 0 there, and zeros, before y is rounded; the model's and the exact value's. */
static void test_ledger(void **state) {
    (void)state;
    static const struct element x[] = { { 300, 300 }, { 256, 255.875 }, { -4, 3 }, { 0x1p-14, 0x1p-12 }, { 5, 0 } };
    const struct at_numerics numerics = at_numerics_default();
    for (int model = 0; model < 2; model++) {
        struct at_test_problem made;
        struct at_test_eval got;
        struct at_ledger ledger;
        at_test_gated_problem("reglu", AT_HALVES_TOGETHER, AT_F16, 1, 5, &made);
        const struct at_problem *p = &made.problem;
        for (int i = 0; i < 5; i++)
            at_test_gated_set(&made.problem, i, x[i].gate, x[i].up);
        at_ledger_init(&ledger);
        at_assert_ok(at_test_eval_init(p, 0, &got));
        got.eval.ledger = &ledger;
        at_assert_ok((model ? p->op->model : p->op->evaluate)(p, &numerics, 0, 1, &got.eval));
        const struct at_ledger_row *out = &ledger.stage[AT_STAGE_out];
        assert_true(out->count == 5 && out->zero == 2 && out->to_inf == 1 && out->above_65504 == 1);
        assert_true(out->flushed == 1 && out->max_abs == 90000 && out->has_first && out->first.k == 0);
        at_test_eval_release(&got);
        at_test_problem_release(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
