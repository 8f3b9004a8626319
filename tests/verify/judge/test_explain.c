/* Likely causes in words: where the wrong elements lie, and which known mistake they look like.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/verdict_scene.h"

static const char *explain(struct at_scene *s) {
    static char text[384];
    at_explain_wrong(&s->evidence, text, sizeof text);
    return text;
}

static void wrong_elements_are_placed(void **state) {
    (void)state;
    static struct at_scene s;
    for (int mode = 0; mode < AT_SCENE_MODES; mode++) {
        at_scene_set_up(&s, (enum at_scene_mode)mode);
        for (int i = 0; i < AT_SCENE_N; i++)
            s.data[i] = -100;
        assert_string_equal(explain(&s), "16 of 16 elements wrong");
        at_scene_set_up(&s, (enum at_scene_mode)mode);
        s.data[9] = s.data[10] = s.data[14] = -100; /* token 1; channels 1, 2 and 2 */
        assert_string_equal(explain(&s), "3 of 16 elements wrong; only token 1; only channels 1..2");
        at_scene_set_up(&s, (enum at_scene_mode)mode);
        s.data[3] = s.data[11] = -100;
        assert_string_equal(explain(&s), "2 of 16 elements wrong; only head 0; only channel 3");
        at_scene_set_up(&s, (enum at_scene_mode)mode);
        s.data[0] += 0.5f; /* within the limit; off the model */
        assert_string_equal(explain(&s), mode == AT_WITH_MODEL
                                             ? "1 of 16 elements wrong; only token 0; only head 0; only channel 0"
                                             : "0 of 16 elements wrong");
    }
}

/* The count is that of the comparison, whatever decides: a class, the sign of a zero, a limit that is infinite. */
static void counts_as_the_comparison_does(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_CLASSES);
    s.limit[4] = s.limit[5] = INFINITY;
    s.model[4] = INFINITY; /* the class of every order; the kernel gave a number */
    at_assert_ok(at_compare(&s.comparison, &s.result));
    assert_int_equal(s.result.wrong, 1);
    at_scene_expect(&s, AT_STATE_WRONG, "1 of 16 elements wrong; only token 0; only head 1; only channel 0");
    at_scene_set_up(&s, AT_WITH_MODEL);
    s.data[7] = 0;
    s.model[7] = -0.0;
    s.want[7] = 0;
    at_assert_ok(at_compare(&s.comparison, &s.result));
    assert_int_equal(s.result.wrong, 1);
    at_scene_expect(&s, AT_STATE_WRONG, "1 of 16 elements wrong; only token 0; only head 1; only channel 3");
}

static void looks_like_a_decoy(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_LIMIT);
    for (int i = 0; i < AT_SCENE_N; i++)
        s.data[i] = (float)s.decoy[1][i] + (i % 2 ? 1.0f : -1.0f); /* a wrong kernel rounds as well: twice the limit */
    assert_string_equal(explain(&s), "16 of 16 elements wrong; looks like beta: a fault");
    s.decoys.fate[1] = AT_DECOY_PASSED;
    assert_string_equal(explain(&s), "16 of 16 elements wrong; looks like beta: a fault");
    s.decoys.fate[1] = AT_DECOY_INERT; /* it is the right result, or nearly */
    assert_string_equal(explain(&s), "16 of 16 elements wrong");
    s.decoys.fate[1] = AT_DECOY_REJECTED;
    s.data[8] -= 0.001f; /* one element disagrees */
    assert_string_equal(explain(&s), "16 of 16 elements wrong");
    s.answer.n_sample = 2; /* it is in a row without decoys */
    assert_string_equal(explain(&s), "16 of 16 elements wrong; looks like beta: a fault");
    s.answer.n_sample = 0; /* nothing to agree on */
    assert_string_equal(explain(&s), "16 of 16 elements wrong");
    /* an infinite limit excuses nothing: then it is four units in the last place */
    at_scene_set_up(&s, AT_WITH_LIMIT);
    for (int i = 0; i < AT_SCENE_N; i++) {
        s.limit[i] = i ? 0.5 : INFINITY;
        s.data[i] = (float)s.decoy[2][i];
    }
    s.data[0] += 4 * 0x1p-19f; /* at 31 */
    assert_string_equal(explain(&s) + strlen("15 of 16 elements wrong"), "; looks like gamma: a fault");
    s.data[0] += 0x1p-19f;
    assert_null(strstr(explain(&s), "looks"));
    s.decoy[2][0] = NAN;
    assert_null(strstr(explain(&s), "looks"));
    s.data[0] = NAN;
    assert_non_null(strstr(explain(&s), "looks like gamma"));
}

/* A fault of some rows is named where all of these are the decoy's; a decoy that is no nearer than the right value is no cause. */
static void looks_like_a_decoy_in_part(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_LIMIT);
    for (int i = 4; i < 8; i++) /* row 1 of 4 */
        s.data[i] = (float)s.decoy[1][i];
    assert_string_equal(explain(&s),
                        "4 of 16 elements wrong; only token 0; only head 1; looks like beta in these rows: a fault");
    s.data[9] = -100; /* another row, wrong in another way */
    assert_null(strstr(explain(&s), "looks"));
    at_scene_set_up(&s, AT_WITH_LIMIT);
    for (int i = 0; i < AT_SCENE_N; i++) {
        s.decoy[0][i] = s.want[i] + 0.3; /* within twice the limit of what is got, and no nearer than the right value */
        s.data[i] = (float)(s.want[i] - 0.6);
    }
    assert_string_equal(explain(&s), "16 of 16 elements wrong");
    for (int i = 0; i < AT_SCENE_N; i++)
        s.data[i] = (float)(s.want[i] + 0.6);
    assert_string_equal(explain(&s), "16 of 16 elements wrong; looks like alpha: a fault");
}

static double no_work_in_row_0(const struct at_problem *p, int64_t row) {
    (void)p;
    return row == 0 ? 0 : 1;
}

/* Small results that became 0, and rows that sum nothing. */
static void shared_traits(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_LIMIT);
    for (int i = 0; i < AT_SCENE_N; i++)
        s.limit[i] = 0;
    s.want[5] = 0x1p-130;
    s.data[5] = 0;
    assert_non_null(strstr(explain(&s), "; each is 0 where a subnormal number is due: small results are flushed"));
    s.want[5] = 0x1p-126; /* normal */
    assert_null(strstr(explain(&s), "flushed"));
    at_scene_set_up(&s, AT_WITH_LIMIT);
    struct at_op op = *s.problem.op;
    op.row_work = no_work_in_row_0;
    op.kind = AT_KIND_ATTENTION;
    s.problem.op = &op;
    s.data[1] = NAN;
    assert_non_null(strstr(explain(&s), "; all in rows that have nothing to sum, of queries that see no key"));
    s.data[4] = NAN;
    assert_null(strstr(explain(&s), "nothing to sum"));
    s.data[4] = s.data[5];
    op.kind = AT_KIND_PRODUCT; /* which has no queries */
    assert_null(strstr(explain(&s), "nothing to sum"));
}

static void not_a_number(void **state) {
    (void)state;
    static struct at_scene s;
    at_scene_set_up(&s, AT_WITH_LIMIT);
    s.data[12] = s.data[13] = NAN;
    s.want[1] = NAN;
    s.data[1] = NAN; /* due */
    assert_string_equal(explain(&s), "2 of 16 elements wrong; only token 1; only head 1; only channels 0..1; 2 NaN "
                                     "where a number is due");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_elements_are_placed),
        cmocka_unit_test(counts_as_the_comparison_does),
        cmocka_unit_test(looks_like_a_decoy),
        cmocka_unit_test(looks_like_a_decoy_in_part),
        cmocka_unit_test(shared_traits),
        cmocka_unit_test(not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
