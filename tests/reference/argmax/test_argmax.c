/* The largest of a row of logits: the reference against rows written by hand, against a count of what is larger, decoys against
 * the fault their names say, problems that are none, and the data families that make ties and specials.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "argmax/argmax.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "verify/judge/batch.h"

enum { MAX_ROWS = 64, COLUMNS = 6 };

/* decoy -1: the right result. */
static void evaluate(const struct at_problem *p, int decoy, double *index) {
    struct at_eval eval = { 0 };
    double limit[MAX_ROWS];
    eval.value[AT_ARGMAX_INDEX] = index;
    eval.limit[AT_ARGMAX_INDEX] = decoy < 0 ? limit : NULL;
    at_assert_ok(p->op->check(p));
    assert_true(p->op->rows(p) <= MAX_ROWS);
    for (int64_t row = 0; row < p->op->rows(p); row++) {
        at_assert_ok(decoy < 0 ? p->op->evaluate(p, NULL, row, row + 1, &eval)
                               : p->op->decoy(p, NULL, decoy, row, row + 1, &eval));
        if (decoy < 0)
            at_assert_same(limit[row], 0.0);
    }
}

static void put_row(struct at_problem *p, int64_t row, const double *logits) {
    for (int64_t c = 0; c < COLUMNS; c++)
        ((float *)p->tensors[AT_ARGMAX_LOGITS].data)[row * COLUMNS + c] = (float)logits[c];
}

static void test_by_hand(void **state) {
    (void)state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    const struct {
        double logits[COLUMNS];
        double index, last_of_ties, smallest, magnitude, no_nan, last_unseen;
    } rows[] = {
        { { 1, 3, 2, 3, -4, 0 }, 1, 3, 4, 4, 1, 1 },
        { { -0.0, 0, 0, -0.0, 0, -0.0 }, 0, 5, 0, 0, 0, 0 },
        { { -inf, -inf, -inf, -inf, -inf, -inf }, 0, 5, 0, 0, 0, 0 },
        { { 1, nan, inf, nan, 5, 9 }, 1, 3, 1, 1, 2, 1 },
        { { nan, nan, nan, nan, nan, nan }, 0, 5, 0, 0, 0, 0 },
        { { -inf, -inf, -7, -inf, -inf, -6 }, 5, 5, 0, 0, 5, 2 },
        { { -inf, 1, 2, inf, inf, 3 }, 3, 4, 0, 0, 3, 3 },
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    struct at_built_case built = at_build_line("argmax tokens=7 vocabulary=6 dtype=f32");
    struct at_problem *p = &built.data.problem;
    double index[MAX_ROWS];
    for (int r = 0; r < ROWS; r++)
        put_row(p, r, rows[r].logits);
    evaluate(p, -1, index);
    for (int r = 0; r < ROWS; r++)
        at_assert_same(index[r], rows[r].index);
    const size_t field[] = { offsetof(__typeof__(rows[0]), last_of_ties), offsetof(__typeof__(rows[0]), smallest),
                             offsetof(__typeof__(rows[0]), magnitude), offsetof(__typeof__(rows[0]), no_nan),
                             offsetof(__typeof__(rows[0]), last_unseen) };
    static const char *const names[] = { "last_of_ties", "smallest", "largest_magnitude", "nan_ignored",
                                         "last_unseen" };
    for (int d = 0; d < 5; d++) {
        assert_string_equal(p->op->decoys[d].name, names[d]);
        evaluate(p, d, index);
        for (int r = 0; r < ROWS; r++)
            at_assert_same(index[r], *(const double *)((const char *)&rows[r] + field[d]));
    }
    evaluate(p, AT_ARGMAX_NEXT_ROW, index);
    at_assert_same(index[0], rows[1].index);
    at_assert_same(index[ROWS - 1], rows[0].index);
    evaluate(p, AT_ARGMAX_ONE_BASED, index);
    at_assert_same(index[0], 2.0);
    at_drop_case(&built);
    built = at_build_line("argmax tokens=8 vocabulary=3001 data=peaks dtype=bf16");
    double right[MAX_ROWS];
    evaluate(&built.data.problem, -1, right);
    evaluate(&built.data.problem, AT_ARGMAX_FIRST_THOUSAND, index);
    at_assert_same(right[1], 3000.0); /* peaks: the last place of row 1 */
    assert_true(index[1] < 1024);
    at_drop_case(&built);
}

/* Of no element a larger one, and none of those before it as large: said of every data family that suits, another way. */
static void test_by_counting(void **state) {
    (void)state;
    static const char *const data[] = { "normal", "exact", "ties",     "nonfinite",
                                        "level",  "peaks", "specials", "random_bits" };
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        char line[120];
        double index[MAX_ROWS];
        snprintf(line, sizeof line, "argmax tokens=17 vocabulary=201 dtype=f16 data=%s seed=%zu", data[i], i + 1);
        struct at_built_case built = at_build_line(line);
        const struct at_problem *p = &built.data.problem;
        evaluate(p, -1, index);
        for (int64_t row = 0; row < 17; row++) {
            const double best = at_tensor_get(&p->tensors[AT_ARGMAX_LOGITS], row * 201 + (int64_t)index[row]);
            for (int64_t c = 0; c < 201; c++) {
                const double x = at_tensor_get(&p->tensors[AT_ARGMAX_LOGITS], row * 201 + c);
                at_assert_true(isnan(best) || x <= best, "%s: row %d has a larger one at %d", data[i], (int)row,
                               (int)c);
                at_assert_true((double)c >= index[row] || (isnan(best) ? !isnan(x) : x < best),
                               "%s: row %d has one as large before, at %d", data[i], (int)row, (int)c);
            }
        }
        at_drop_case(&built);
    }
}

/* Rows in turn, as their heads say; one column too. */
static void test_families(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("argmax tokens=16 vocabulary=200 dtype=bf16 data=level");
    const struct at_tensor *x = &built.data.problem.tensors[AT_ARGMAX_LOGITS];
    for (int64_t c = 0; c < 200; c++) {
        assert_true(at_tensor_get(x, c) == 0 && !signbit(at_tensor_get(x, c)));
        assert_true(at_tensor_get(x, 200 + c) == 0 && (signbit(at_tensor_get(x, 200 + c)) != 0) == (c % 3 == 0));
        assert_true(at_tensor_get(x, 400 + c) == (double)-INFINITY);
        assert_true(isnan(at_tensor_get(x, 600 + c)) && at_tensor_get(x, 800 + c) == (double)INFINITY);
        assert_true(at_tensor_get(x, 1000 + c) == -at_format_info(AT_BF16)->max);
    }
    at_drop_case(&built);
    double index[MAX_ROWS];
    built = at_build_line("argmax tokens=12 vocabulary=200 dtype=bf16 data=peaks");
    evaluate(&built.data.problem, -1, index);
    x = &built.data.problem.tensors[AT_ARGMAX_LOGITS];
    at_assert_same(index[0], 0.0);
    at_assert_same(index[1], 199.0);
    at_assert_same(index[5], 198.0);
    int64_t near = 0, many = 0;
    for (int64_t c = 0; c < 200; c++) {
        near += at_tensor_get(x, 600 + c) == 8 - at_ulp(AT_BF16, 8) / 2;
        many += at_tensor_get(x, 800 + c) == 8;
    }
    assert_true(near == 1 && many >= 6);
    at_drop_case(&built);
    for (int i = 0; i < 3; i++) {
        static const char *const data[] = { "level", "peaks", "specials" };
        char line[120];
        snprintf(line, sizeof line, "argmax tokens=9 vocabulary=1 data=%s", data[i]);
        built = at_build_line(line);
        evaluate(&built.data.problem, -1, index);
        for (int r = 0; r < 9; r++)
            at_assert_same(index[r], 0.0);
        at_drop_case(&built);
    }
}

static void refused(struct at_problem *p, const char *text) { at_assert_fails(p->op->check(p), AT_USAGE, text); }

static void test_refused(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("argmax tokens=3 vocabulary=6 dtype=f32");
    struct at_problem *p = &built.data.problem, whole = *p;
    struct at_argmax_own own = at_argmax_own_of(p);
    own.vocabulary = 0;
    at_argmax_own_set(p, &own);
    refused(p, "tokens and vocabulary are 3 and 0");
    own.vocabulary = 7;
    at_argmax_own_set(p, &own);
    refused(p, "tensor logits has 18 elements of f32, wanted 21");
    *p = whole;
    p->tensors[AT_ARGMAX_LOGITS].data = NULL;
    refused(p, "with data");
    *p = whole;
    p->sizes.tokens = -1;
    refused(p, "tokens and vocabulary are -1");
    *p = whole;
    at_drop_case(&built);
    struct at_case_list list = { 0 };
    at_assert_fails(at_case_parse("argmax vocabulary=0", "t", "here", &list), AT_USAGE, "vocabulary");
    at_assert_fails(at_case_parse("argmax data=stall", "t", "here", &list), AT_USAGE, "wanted a family for choices");
    at_assert_fails(at_case_parse("rms_norm data=level", "t", "here", &list), AT_USAGE, "wanted a family for norms");
    at_case_list_release(&list);
}

static void test_parts(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("argmax tokens=9 vocabulary=70 data=peaks");
    const int64_t units[] = { 7, 0, 3 };
    double whole[MAX_ROWS], some[MAX_ROWS];
    struct at_batch_part part;
    evaluate(&built.data.problem, -1, whole);
    at_assert_ok(at_batch_gather(&built.data.problem, units, 3, &part));
    evaluate(&part.problem, -1, some);
    for (int i = 0; i < 3; i++)
        at_assert_same(some[i], whole[units[i]]);
    at_batch_release(&part);
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_by_counting), cmocka_unit_test(test_families),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
