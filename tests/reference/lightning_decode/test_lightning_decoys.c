/* Each decoy of lightning decode is the fault that its name says: it equals expectations computed in plain sight, counts there,
 * and is the right result to the bit where the fault cannot show.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/lightning_problem.h"

enum { B = 2, H = 2, D = 3, E = 2, STEPS = 2 };

/* Outputs of the decoy called so, NULL: of the right operator. */
static struct at_test_eval run(const struct at_problem *p, const char *decoy) {
    struct at_test_eval eval;
    int which = decoy ? 0 : -1;
    while (decoy && which < p->op->n_decoys && strcmp(p->op->decoys[which].name, decoy) != 0)
        which++;
    at_assert_true(which < p->op->n_decoys, "no decoy %s", decoy);
    at_assert_ok(at_test_eval_init(p, 0, &eval));
    for (int64_t row = p->op->rows(p); row-- > 0;) /* rows are independent */
        at_assert_ok(decoy ? p->op->decoy(p, NULL, which, row, row + 1, &eval.eval)
                           : p->op->evaluate(p, NULL, row, row + 1, &eval.eval));
    return eval;
}

/* Whole numbers; slopes of heads. */
static double q(int64_t row, int64_t s, int64_t i) { return (double)((3 * row + 5 * s + 2 * i) % 7 - 3); }
static double k(int64_t row, int64_t s, int64_t i) { return (double)((2 * row + 3 * s + 4 * i) % 9 - 4); }
static double v(int64_t row, int64_t s, int64_t j) { return (double)((5 * row + 2 * s + 3 * j) % 11 - 5); }
static double kv(int64_t row, int64_t i, int64_t j) { return (double)((7 * row + 3 * i + 5 * j) % 13 - 6); }
static double slope(int64_t head) { return head ? 1.5 : 0.5; }

static void make(struct at_built_case *built) {
    *built = at_build_line("lightning_decode b=2 h=2 d=3 e=2 steps=2 dtype=f32");
    struct at_problem *p = &built->data.problem;
    for (int64_t row = 0; row < B * H; row++) {
        for (int64_t s = 0; s < STEPS; s++) {
            for (int64_t i = 0; i < D; i++) {
                at_test_set(p, "q", (row * STEPS + s) * D + i, q(row, s, i));
                at_test_set(p, "k", (row * STEPS + s) * D + i, k(row, s, i));
            }
            for (int64_t j = 0; j < E; j++)
                at_test_set(p, "v", (row * STEPS + s) * E + j, v(row, s, j));
        }
        for (int64_t i = 0; i < D * E; i++)
            at_test_set(p, "kv", row * D * E + i, kv(row, i / E, i % E));
    }
    for (int64_t head = 0; head < H; head++)
        at_test_set(p, "slope", head, slope(head));
}

/* The state of a row after both steps, and the answer to the second, each in one formula of decay r, from state row `from`,
 * where what a step adds is multiplied by w. */
static double state_of(int64_t row, int64_t from, int64_t i, int64_t j, double r, double w) {
    return r * r * kv(from, i, j) + r * w * k(row, 0, i) * v(row, 0, j) + w * k(row, 1, i) * v(row, 1, j);
}
static double answer_of(int64_t row, int64_t from, int64_t j, int64_t d, double r, double w) {
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += q(row, 1, i) * state_of(row, from, i, j, r, w);
    return sum;
}

struct expected {
    double state, answer;
};

static struct expected both(int64_t row, int64_t from, int64_t i, int64_t j, double r, double w) {
    return (struct expected){ state_of(row, from, i, j, r, w), answer_of(row, from, j, D, r, w) };
}

/* What the decoy makes of element (i, j) of the state and of the second answer's element j. */
static struct expected expect(const char *name, int64_t row, int64_t i, int64_t j) {
    const double r = exp(-slope(row % H));
    struct expected x = both(row, row, i, j, r, 1);
    const int64_t last = D - 1;
    double sum = 0;
    if (strcmp(name, "no_decay") == 0)
        return both(row, row, i, j, 1, 1);
    if (strcmp(name, "grows") == 0)
        return both(row, row, i, j, 1 / r, 1);
    if (strcmp(name, "product_decayed") == 0)
        return both(row, row, i, j, r, r);
    if (strcmp(name, "next_head_slope") == 0)
        return both(row, row, i, j, exp(-slope((row + 1) % H)), 1);
    if (strcmp(name, "next_request_state") == 0)
        return both(row, (row + H) % (B * H), i, j, r, 1);
    if (strcmp(name, "old_state") == 0) {
        for (int64_t l = 0; l < D; l++)
            sum += q(row, 1, l) * (r * kv(row, l, j) + k(row, 0, l) * v(row, 0, j));
        x.answer = sum;
    } else if (strcmp(name, "not_updated") == 0) {
        x.state = kv(row, i, j);
    } else if (strcmp(name, "not_carried") == 0) {
        for (int64_t l = 0; l < D; l++)
            sum += q(row, 1, l) * (r * kv(row, l, j) + k(row, 1, l) * v(row, 1, j));
        x = (struct expected){ r * kv(row, i, j) + k(row, 1, i) * v(row, 1, j), sum };
    } else if (strcmp(name, "transposed") == 0) {
        for (int64_t l = 0; l < D; l++)
            sum += q(row, 1, l) *
                   (r * r * kv(row, l, j) + r * k(row, 0, j) * v(row, 0, l % E) + k(row, 1, j) * v(row, 1, l % E));
        x = (struct expected){
            r * r * kv(row, i, j) + r * k(row, 0, j) * v(row, 0, i % E) + k(row, 1, j) * v(row, 1, i % E), sum
        };
    } else if (strcmp(name, "q_scaled") == 0) {
        x.answer /= sqrt(D);
    } else if (strcmp(name, "last_d_unseen") == 0) {
        x.answer = answer_of(row, row, j, last, r, 1);
    } else if (strcmp(name, "last_column_lost") == 0) {
        x = j == E - 1 ? (struct expected){ kv(row, i, j), 0 } : x;
    } else {
        fail_msg("nothing is expected of %s", name);
    }
    return x;
}

static void test_decoys_are_what_they_say(void **state) {
    (void)state;
    struct at_built_case built;
    make(&built);
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval right = run(p, NULL);
    for (int which = 0; which < p->op->n_decoys; which++) {
        const char *name = p->op->decoys[which].name;
        struct at_test_eval wrong = run(p, name);
        int differs = 0;
        for (int64_t at = 0; at < B * H * D * E; at++) {
            const int64_t row = at / (D * E), i = at / E % D, j = at % E, o = (row * STEPS + 1) * E + j;
            const struct expected x = expect(name, row, i, j);
            at_assert_within(wrong.eval.value[AT_LIGHTNING_KV][at], x.state, 1e-12 * (fabs(x.state) + 1));
            at_assert_within(wrong.eval.value[AT_LIGHTNING_O][o], x.answer, 1e-12 * (fabs(x.answer) + 1));
            differs |= fabs(x.state - right.eval.value[AT_LIGHTNING_KV][at]) > 0.5;
            differs |= fabs(x.answer - right.eval.value[AT_LIGHTNING_O][o]) > 0.5;
        }
        at_assert_true(differs, "%s changes nothing", name);
        at_test_eval_release(&wrong);
    }
    at_test_eval_release(&right);
    at_drop_case(&built);
}

/* One head, one request, one step, one row: neighbours, sequences and scales that are not there. */
static void test_decoys_that_cannot_show(void **state) {
    (void)state;
    static const struct {
        const char *name, *line;
    } inert[] = {
        { "next_head_slope", "b=2 h=1 d=3 e=4" },
        { "next_request_state", "b=1 h=2 d=3 e=4" },
        { "not_carried", "b=2 h=2 d=3 e=4 steps=1" },
        { "transposed", "b=2 h=2 d=1 e=1 steps=3" },
        { "q_scaled", "b=2 h=2 d=1 e=4" },
        { "no_decay", "b=2 h=2 d=3 e=4 slope=0" },
        { "grows", "b=2 h=2 d=3 e=4 steps=2 slope=0" },
        { "product_decayed", "b=2 h=2 d=3 e=4 slope=0" },
    };
    for (size_t n = 0; n < sizeof inert / sizeof *inert; n++) {
        char line[160];
        snprintf(line, sizeof line, "lightning_decode dtype=bf16 outer=rounded %s", inert[n].line);
        struct at_built_case built = at_build_line(line);
        const struct at_problem *p = &built.data.problem;
        struct at_test_eval right = run(p, NULL), wrong = run(p, inert[n].name);
        for (int t = AT_LIGHTNING_KV; t <= AT_LIGHTNING_O; t++)
            for (int64_t i = 0; i < at_test_count(p, t); i++)
                at_assert_same(wrong.eval.value[t][i], right.eval.value[t][i]);
        at_test_eval_release(&right);
        at_test_eval_release(&wrong);
        at_drop_case(&built);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoys_are_what_they_say),
        cmocka_unit_test(test_decoys_that_cannot_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
