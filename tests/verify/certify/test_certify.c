/* Certificates: bits beside bits, trials that hold the rows they say they hold, and what several cases say together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <math.h>
#include <string.h>

#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "verify/certify/certify_measure.h"

/* ---- bits ---- */

static struct at_bits compare(enum at_format format, const void *a, const void *b, int64_t n) {
    const struct at_tensor x = { .data = (void *)a, .format = format, .rank = 1, .shape = { n } };
    const struct at_tensor y = { .data = (void *)b, .format = format, .rank = 1, .shape = { n } };
    struct at_bits bits = { 0 };
    at_bits_compare(&x, 0, &y, 0, n, &bits);
    return bits;
}

static void bits_differ(void **state) {
    (void)state;
    const float one[] = { 1.0f, 0.0f, -0.0f, 2.0f }, same[] = { 1.0f, 0.0f, -0.0f, 2.0f };
    const float next[] = { 0x1.000006p0f, 0.0f, -0.0f, 2.0f }, zero[] = { 1.0f, -0.0f, -0.0f, 2.0f };
    struct at_bits bits = compare(AT_F32, one, same, 4);
    assert_int_equal(bits.compared, 4);
    assert_int_equal(bits.different, 0);
    assert_int_equal(bits.not_zero, 2);
    assert_int_equal(bits.worst_ulp, 0);
    bits = compare(AT_F32, one, next, 4);
    assert_int_equal(bits.different, 1);
    assert_int_equal(bits.worst_ulp, 3);
    bits = compare(AT_F32, one, zero, 4); /* the sign of a zero is a bit, and no distance */
    assert_int_equal(bits.different, 1);
    assert_int_equal(bits.worst_ulp, 0);
}

static void bits_of_nans(void **state) {
    (void)state;
    const uint16_t quiet[] = { 0x7fc0, 0x3f80 }, other[] = { 0x7fc1, 0x3f80 }, number[] = { 0x3f80, 0x3f80 };
    assert_int_equal(compare(AT_BF16, quiet, quiet, 2).different, 0);
    assert_int_equal(compare(AT_BF16, quiet, other, 2).different, 1);
    const struct at_bits bits = compare(AT_BF16, quiet, number, 2);
    assert_int_equal(bits.different, 1);
    assert_true(bits.worst_ulp == UINT64_MAX);
}

static void bits_at_an_offset(void **state) {
    (void)state;
    const float a[] = { 9, 1, 2, 3 }, b[] = { 1, 2, 4 };
    const struct at_tensor x = { .data = (void *)a, .format = AT_F32, .rank = 1, .shape = { 4 } };
    const struct at_tensor y = { .data = (void *)b, .format = AT_F32, .rank = 1, .shape = { 3 } };
    struct at_bits bits = { 0 };
    at_bits_compare(&x, 1, &y, 0, 2, &bits);
    assert_int_equal(bits.different, 0);
    at_bits_compare(&x, 3, &y, 2, 1, &bits);
    assert_int_equal(bits.different, 1);
    assert_int_equal(bits.compared, 3);
}

/* ---- trials ---- */

/* Row for row the exact values of the problem. */
static void assert_rows(const struct at_problem *whole, struct at_trial *trial) {
    struct at_test_eval all, some;
    at_assert_ok(trial->problem.op->check(&trial->problem));
    at_assert_ok(at_test_eval_init(whole, 0, &all));
    at_assert_ok(at_test_eval_init(&trial->problem, 0, &some));
    at_assert_ok(whole->op->evaluate(whole, NULL, 0, whole->op->rows(whole), &all.eval));
    at_assert_ok(whole->op->evaluate(&trial->problem, NULL, 0, whole->op->rows(&trial->problem), &some.eval));
    for (int64_t i = 0; i < trial->n; i++)
        for (int t = 0; t < whole->op->n_tensors; t++) {
            int64_t from, count, to, other;
            if (whole->op->tensors[t].role == AT_IN)
                continue;
            whole->op->row_span(whole, t, trial->base[i], &from, &count);
            whole->op->row_span(&trial->problem, t, trial->other[i], &to, &other);
            assert_int_equal(count, other);
            for (int64_t k = 0; k < count; k++)
                at_assert_same(some.eval.value[t][to + k], all.eval.value[t][from + k]);
        }
    at_test_eval_release(&all);
    at_test_eval_release(&some);
    at_trial_release(trial);
}

static const char *const prompts[] = {
    "asynct_prefill b=3 h=2 hk=1 sq=5/0/3 prefix=4/3/1 d=8 page=4 causal=1 dtype=bf16",
    "softmax_prefill b=3 h=4 hk=2 sq=5/1/3 prefix=4/3/1 d=8 causal=1 dtype=f16 alibi=1",
};
enum { PROMPTS = sizeof prompts / sizeof *prompts };

static void layouts_hold_the_rows(void **state) {
    (void)state;
    for (int i = 0; i < PROMPTS; i++) {
        struct at_built_case built = at_build_line(prompts[i]);
        const struct at_problem *p = &built.data.problem;
        for (int64_t page = 0; page <= 6; page += 2)
            for (uint64_t shuffled = 0; shuffled < 3; shuffled++) {
                const struct at_trial_layout layout = { .page = page, .capacity = 37, .shuffled = shuffled };
                const struct at_piece pieces[] = { at_trial_request(p, 2), at_trial_padding(1), at_trial_request(p, 0),
                                                   at_trial_padding(0), at_trial_request(p, 1) };
                struct at_trial trial;
                at_assert_ok(at_trial_pieces(p, pieces, 5, &layout, &trial));
                assert_int_equal(trial.n, p->op->rows(p));
                assert_int_equal(trial.problem.sizes.page, page);
                assert_int_equal(trial.problem.sizes.capacity, page ? (37 + page - 1) / page * page : 37);
                assert_int_equal(trial.problem.sizes.tokens, p->sizes.tokens + 1);
                assert_rows(p, &trial);
            }
        at_drop_case(&built);
    }
}

static void shuffled_pages_lie_elsewhere(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_decode b=2 h=1 hk=1 sk=40/31 d=8 page=4 dtype=bf16");
    const struct at_problem *p = &built.data.problem;
    const struct at_piece pieces[] = { at_trial_request(p, 0), at_trial_request(p, 1) };
    struct at_trial_layout layout = at_trial_layout_of(p);
    struct at_trial plain, shuffled;
    int64_t moved = 0;
    at_assert_ok(at_trial_pieces(p, pieces, 2, &layout, &plain));
    layout.shuffled = 1;
    at_assert_ok(at_trial_pieces(p, pieces, 2, &layout, &shuffled));
    for (int64_t t = 0; t < 40; t++)
        moved += at_attn_slot(&plain.problem, 0, t) != at_attn_slot(&shuffled.problem, 0, t);
    assert_true(moved > 20);
    assert_rows(p, &plain);
    assert_rows(p, &shuffled);
    at_drop_case(&built);
}

/* A piece of a prompt and the keys its last query sees; and a row behind copies of its first query. */
static void pieces_hold_the_rows(void **state) {
    (void)state;
    for (int i = 0; i < PROMPTS; i++) {
        struct at_built_case built = at_build_line(prompts[i]);
        const struct at_problem *p = &built.data.problem;
        const struct at_trial_layout layout = at_trial_layout_of(p);
        const struct at_piece first = { .request = 0, .first = 0, .queries = 2, .keys = 6 };
        const struct at_piece middle = { .request = 0, .first = 2, .queries = 1, .keys = 7 };
        const struct at_piece last = { .request = 2, .first = 2, .queries = 1, .keys = 4, .lead = 3 };
        const struct at_piece pieces[] = { middle, first, last };
        struct at_trial trial;
        at_assert_ok(at_trial_pieces(p, pieces, 3, &layout, &trial));
        assert_int_equal(trial.n, 4 * p->sizes.h);
        assert_int_equal(trial.problem.sizes.tokens, 7);
        assert_rows(p, &trial);
        at_drop_case(&built);
    }
}

static void units_hold_the_rows(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("rms_norm tokens=4 channels=8 dtype=bf16");
    const int64_t units[] = { 3, 1, 1, 0 };
    struct at_trial trial;
    at_assert_ok(at_trial_units(&built.data.problem, units, 4, 3, &trial));
    assert_int_equal(trial.n, 3);
    assert_int_equal(trial.base[0], 3);
    assert_int_equal(trial.other[2], 2);
    assert_rows(&built.data.problem, &trial);
    at_drop_case(&built);
}

static void refused_batches(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("score_counts h=2 hk=1 sq=3 sk=5 d=8 causal=1 dtype=f16");
    const int64_t twice[] = { 0, 0 };
    struct at_trial trial;
    assert_int_equal(at_trial_units(&built.data.problem, twice, 2, 2, &trial), AT_USAGE); /* it takes one request */
    assert_null(trial.base);
    assert_false(at_trial_is_cut(&built.data.problem)); /* counts belong to no query */
    at_drop_case(&built);
}

/* ---- what a declaration says ---- */

static void declared_orders(void **state) {
    (void)state;
    struct at_built_case built =
        at_build_line("asynct_prefill b=1 h=2 hk=1 sq=8 prefix=120 d=64 page=16 causal=1 dtype=f16 data=normal");
    const struct at_problem *p = &built.data.problem;
    const struct at_piece whole = at_trial_request(p, 0);
    const struct at_trial_layout wide = { .page = 64, .capacity = 128 };
    struct at_numerics n = at_numerics_default();
    enum at_declared_order order;
    struct at_trial trial;
    at_assert_ok(at_trial_pieces(p, &whole, 1, &wide, &trial));
    n.qk_unit = n.pv_unit = AT_UNIT_TC_F32;
    n.p = AT_F16;
    n.pv_chunk = 16;
    at_assert_ok(at_declared_compare(p, &n, 0, &trial.problem, &n, 0, &order));
    assert_int_equal(order, AT_DECLARED_SAME);
    n.pv_spread = 64; /* in pages of 64 alone */
    int64_t others = 0;
    for (int64_t row = 0; row < p->op->rows(p); row++) {
        at_assert_ok(at_declared_compare(p, &n, row, &trial.problem, &n, row, &order));
        assert_true(order != AT_DECLARED_NOTHING);
        others += order == AT_DECLARED_OTHER;
    }
    assert_true(others > 0);
    n.free_order = 1;
    at_assert_ok(at_declared_compare(p, &n, 0, &trial.problem, &n, 0, &order));
    assert_int_equal(order, AT_DECLARED_NOTHING);
    at_trial_release(&trial);
    at_drop_case(&built);
}

/* ---- cases together ---- */

static struct at_certificate found(enum at_certified value, int64_t size, int64_t different, const char *reason) {
    struct at_certificate row = { .settings = 2, .compared = 10, .different = different, .from_size = size };
    at_certificate_set(&row, value);
    snprintf(row.reason, sizeof row.reason, "%s", reason);
    if (different)
        snprintf(row.from, sizeof row.from, "setting %d", (int)size);
    return row;
}

static void cases_together(void **state) {
    (void)state;
    struct at_certificate sum = { .value = "n/a" };
    struct at_certificate one = found(AT_CERTIFIED_NA, 0, 0, AT_CERTIFY_DECLINES ": no");
    at_certificate_add(&sum, &one);
    one = found(AT_CERTIFIED_NA, 0, 0, "one way");
    at_certificate_add(&sum, &one); /* of a case that was taken, which says more */
    assert_string_equal(sum.reason, "one way");
    assert_int_equal(sum.cases, 0);
    one = found(AT_CERTIFIED_YES, 0, 0, "");
    at_certificate_add(&sum, &one);
    assert_string_equal(sum.value, "yes");
    assert_string_equal(sum.reason, "");
    assert_int_equal(sum.compared, 10);
    one = found(AT_CERTIFIED_NO, 8, 3, "");
    at_certificate_add(&sum, &one);
    one = found(AT_CERTIFIED_NO, 4, 1, "");
    at_certificate_add(&sum, &one);
    one = found(AT_CERTIFIED_YES, 0, 0, "");
    at_certificate_add(&sum, &one);
    assert_string_equal(sum.value, "no");
    assert_string_equal(sum.from, "setting 4");
    assert_int_equal(sum.different, 4);
    assert_int_equal(sum.cases, 4);
    assert_int_equal(sum.disagrees, 0);
    one.disagrees = 1;
    snprintf(one.claim, sizeof one.claim, "batch_invariant=1");
    at_certificate_add(&sum, &one);
    assert_int_equal(sum.disagrees, 1);
    assert_string_equal(sum.claim, "batch_invariant=1");
    one = found(AT_CERTIFIED_FAILED, 0, 0, "died");
    at_certificate_add(&sum, &one);
    assert_string_equal(sum.value, "failed");
    assert_string_equal(sum.reason, "died");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_differ),
        cmocka_unit_test(bits_of_nans),
        cmocka_unit_test(bits_at_an_offset),
        cmocka_unit_test(layouts_hold_the_rows),
        cmocka_unit_test(shuffled_pages_lie_elsewhere),
        cmocka_unit_test(pieces_hold_the_rows),
        cmocka_unit_test(units_hold_the_rows),
        cmocka_unit_test(refused_batches),
        cmocka_unit_test(declared_orders),
        cmocka_unit_test(cases_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
