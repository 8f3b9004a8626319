/* score_counts: slots against the bins of archives, decoys against what their names say, problems that are none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "score_counts/score_counts.h"
#include "tests/at_test.h"
#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "verify/archive/distributions.h"

/* The case language, the operator and the archive count the same quantities in the same order. */
static void test_quantities(void **state) {
    (void)state;
    const struct at_scalar *what = at_op_scalar(&at_op_score_counts, "what");
    for (int i = 0; i < AT_DIST_COUNT; i++) {
        assert_string_equal(what->text(i), at_dist_name((enum at_dist_what)i));
        assert_int_equal(AT_COUNTS_KV_BITS >> i & 1, at_dist_is_kv((enum at_dist_what)i));
    }
    assert_null(what->text(AT_DIST_COUNT));
    assert_int_equal(at_counts_plane(0x1fff, AT_COUNTS_OF_RAW), 1); /* behind q; k and v have planes of their own */
    assert_int_equal(at_counts_plane(0x1fff, AT_COUNTS_OF_V), 1);
    assert_int_equal(at_counts_plane(1 << AT_COUNTS_OF_P, AT_COUNTS_OF_P), 0);
    assert_int_equal(at_counts_plane(1 << AT_COUNTS_OF_P, AT_COUNTS_OF_OUT), -1);
}

static void test_slots(void **state) {
    (void)state;
    static const enum at_format formats[] = { AT_F16, AT_BF16 };
    for (int f = 0; f < 2; f++) {
        const int64_t bins = at_dist_bins(formats[f]);
        const double max = at_format_info(formats[f])->max;
        for (int64_t bin = 0; bin < bins; bin++)
            assert_int_equal(at_counts_slot(formats[f], AT_COUNTS_RIGHT, at_dist_value_of(formats[f], bin)), bin);
        assert_int_equal(at_counts_slot(formats[f], AT_COUNTS_RIGHT, (double)NAN), bins);
        assert_int_equal(at_counts_slot(formats[f], AT_COUNTS_RIGHT, 2 * max), bins + 1);
        assert_int_equal(at_counts_slot(formats[f], AT_COUNTS_RIGHT, -2 * max), bins + 2);
        assert_int_equal(at_counts_slot(formats[f], AT_COUNTS_RIGHT, max * (1 + 0x1p-20)), bins - 2);
    }
}

/* ---- decoys ---- */

/* All slots of a quantity over all heads, or one of them. */
static double sum_of(const struct at_problem *p, const struct at_test_eval *eval, int quantity, int slot) {
    const int plane = at_counts_plane(at_counts_own_of(p).what, quantity);
    double sum = 0;
    for (int64_t h = 0; h < p->sizes.h; h++)
        for (int64_t i = 0; i < AT_CODE_SLOTS; i++)
            if (slot < 0 || i == slot)
                sum += eval->eval
                           .value[AT_COUNTS_COUNTS][(h * at_counts_own_of(p).quantities + plane) * AT_CODE_SLOTS + i];
    return sum;
}

/* Row by row: heads are independent. */
static struct at_test_eval evaluate(const struct at_problem *p, int decoy) {
    struct at_test_eval eval;
    at_assert_ok(at_test_eval_init(p, 1, &eval));
    for (int64_t row = 0; row < p->op->rows(p); row++)
        at_assert_ok(decoy < 0 ? p->op->evaluate(p, NULL, row, row + 1, &eval.eval)
                               : p->op->decoy(p, NULL, decoy, row, row + 1, &eval.eval));
    return eval;
}

/* How much more of a quantity (in one slot, or -1: in all) the decoy counts than there is. */
static double excess(const char *line, int decoy, int quantity, int slot) {
    struct at_built_case built = at_build_line(line);
    const struct at_problem *p = &built.data.problem;
    struct at_test_eval right = evaluate(p, -1), wrong = evaluate(p, decoy);
    const double more = sum_of(p, &wrong, quantity, slot) - sum_of(p, &right, quantity, slot);
    at_test_eval_release(&right);
    at_test_eval_release(&wrong);
    at_drop_case(&built);
    return more;
}

static void test_decoys(void **state) {
    (void)state;
    static const char causal[] = "score_counts h=2 hk=1 sq=10 sk=20 d=8 causal=1 dtype=f16 data=normal what=raw:p:out";
    static const char nan[] = "score_counts h=1 sq=9 sk=20 d=8 dtype=f16 data=nonfinite seed=5 what=p";
    static const char negative[] = "score_counts h=1 sq=8 sk=30 d=4 scale=-0.25 dtype=bf16 data=exact what=scaled";
    const int infinity = 31 << 10, nan_slot = 2 * infinity + 2;
    assert_true(excess(causal, AT_COUNTS_LAST_KEY_DROPPED, AT_COUNTS_OF_RAW, -1) == -20);
    assert_true(excess(causal, AT_COUNTS_HIDDEN_KEY_ADDED, AT_COUNTS_OF_RAW, -1) == 18); /* the last query sees all */
    const double zeros = excess(causal, AT_COUNTS_ZEROS_TWICE, AT_COUNTS_OF_P, infinity + 1);
    assert_true(zeros > 0 && zeros == excess(causal, AT_COUNTS_ZEROS_TWICE, AT_COUNTS_OF_P, -1));
    const double nans = excess(nan, AT_COUNTS_NAN_LOST, AT_COUNTS_OF_P, nan_slot);
    assert_true(nans < 0 && nans == excess(nan, AT_COUNTS_NAN_LOST, AT_COUNTS_OF_P, -1));
    const double lost = excess(negative, AT_COUNTS_NEGATIVE_ZERO_LOST, AT_COUNTS_OF_SCALED, 255 << 7);
    assert_true(lost < 0 &&
                excess(negative, AT_COUNTS_NEGATIVE_ZERO_LOST, AT_COUNTS_OF_SCALED, (255 << 7) + 1) == -lost);
    assert_true(excess(negative, AT_COUNTS_NEGATIVE_ZERO_LOST, AT_COUNTS_OF_SCALED, -1) == 0);
}

/* ---- problems that are none ---- */

#define REFUSED(change, part) \
    do { \
        struct at_built_case built = at_build_line(line); \
        struct at_problem *p = &built.data.problem; \
        struct at_counts_own own = at_counts_own_of(p); \
        change; \
        at_counts_own_set(p, &own); \
        at_assert_fails(p->op->check(p), AT_USAGE, part); \
        at_drop_case(&built); \
    } while (0)

static void test_refused(void **state) {
    (void)state;
    static const char line[] = "score_counts h=2 hk=1 sq=3 sk=5 d=8 dtype=f16 what=raw:p:k";
    REFUSED(own.bins = AT_F32, "wanted f16 or bf16");
    REFUSED(own.what = 1 << 13, "wanted bits of");
    REFUSED((own.softmax = 1, own.what |= 1 << AT_COUNTS_OF_FIR), "softmax has none");
    REFUSED(own.what |= 1 << AT_COUNTS_OF_OUT, "as what says");
    REFUSED(own.behind = -1, "behind is -1");
    REFUSED(p->params.clip_max = 1e30f, "mass below");
    REFUSED(p->params.clip_max = (float)INFINITY, "finite ends");
    REFUSED(p->sizes.taps = 17, "taps is 17");
    REFUSED(p->tensors[AT_COUNTS_GAMMA].data = NULL, "tensor gamma");
    REFUSED(((float *)p->tensors[AT_COUNTS_TAPS].data)[1] = (float)NAN, "tensor taps");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
