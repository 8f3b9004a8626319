/* Draws from the k largest: rows written by hand, ranks and sums against MPFR, which places are right where a draw is close, the
 * declared arithmetic within its limits, decoys, problems that are none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <mpfr.h>
#include <string.h>

#include "tests/support/attention_problem.h"
#include "tests/support/built_case.h"
#include "top_k/top_k_draw.h"
#include "verify/judge/batch.h"
#include "verify/judge/compare.h"

enum { MAX_VALUES = 4096 };

struct answer {
    double index[MAX_VALUES], index_limit[MAX_VALUES], sums[MAX_VALUES], sums_limit[MAX_VALUES];
};

enum how { EXACT, MODEL, DECOY };

static struct answer answer_of(const struct at_problem *p, const struct at_numerics *n, enum how how, int decoy) {
    static struct answer a; /* large */
    struct at_eval eval = { 0 };
    memset(&a, 0, sizeof a);
    at_assert_ok(p->op->check(p));
    assert_true(at_tensor_count(&p->tensors[AT_TOP_K_CUMULATIVE]) <= MAX_VALUES && p->sizes.tokens <= MAX_VALUES);
    eval.value[AT_TOP_K_INDEX] = a.index;
    eval.value[AT_TOP_K_CUMULATIVE] = a.sums;
    eval.limit[AT_TOP_K_INDEX] = how == DECOY ? NULL : a.index_limit;
    eval.limit[AT_TOP_K_CUMULATIVE] = how == DECOY ? NULL : a.sums_limit;
    for (int64_t row = 0; row < p->op->rows(p); row++)
        at_assert_ok(how == DECOY   ? p->op->decoy(p, n, decoy, row, row + 1, &eval)
                     : how == MODEL ? p->op->model(p, n, row, row + 1, &eval)
                                    : p->op->evaluate(p, n, row, row + 1, &eval));
    return a;
}

static void put(struct at_problem *p, int64_t row, const float *logits, float u) {
    const size_t n = (size_t)at_top_k_own_of(p).vocabulary;
    memcpy((float *)p->tensors[AT_TOP_K_LOGITS].data + (size_t)row * n, logits, n * sizeof *logits);
    ((float *)p->tensors[AT_TOP_K_U].data)[row] = u;
}

static struct at_numerics declared(enum at_exp exp) {
    struct at_numerics n = at_numerics_default();
    n.exp = exp;
    return n;
}

/* Weights of ln 2 are halves: T = 1, logits 0, -ln 2, ... are not exact, equal ones are. */
static void test_by_hand(void **state) {
    (void)state;
    const float inf = INFINITY, nan = NAN;
    const struct {
        float logits[5], u;
        double index, sums[3];
    } rows[] = {
        { { 1, 3, 3, 0, 3 }, 0, 1, { 1, 2, 3 } },
        { { 1, 3, 3, 0, 3 }, 0.5f, 2, { 1, 2, 3 } },
        { { 1, 3, 3, 0, 3 }, 0.75f, 4, { 1, 2, 3 } },
        { { 3, 3, 3, 3, 3 }, 0.75f, 2, { 1, 2, 3 } }, /* the other two are not kept */
        { { -inf, -inf, -inf, -inf, -inf }, 0.5f, 1, { 1, 2, 3 } },
        { { 0, inf, 2, inf, 5 }, 0.75f, 3, { 1, 2, 2 } },
        { { 0, inf, 2, nan, nan }, 0.75f, 3, { NAN, NAN, NAN } },
        { { -inf, -inf, 7, -inf, -inf }, 0.75f, 2, { 1, 1, 1 } }, /* others have no weight */
        { { -0.0f, 0, -0.0f, -5, 0 }, 0.25f, 0, { 1, 2, 3 } },
        { { 0, 200, -200, -300, 0 }, 0.9375f, 1, { 1, 1, 1 } },
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    struct at_built_case built = at_build_line("top_k tokens=10 vocabulary=5 k=3 dtype=f32");
    struct at_problem *p = &built.data.problem;
    assert_int_equal(p->sizes.tokens, ROWS);
    for (int r = 0; r < ROWS; r++)
        put(p, r, rows[r].logits, rows[r].u);
    const struct at_numerics ex2 = declared(AT_EXP_EX2_APPROX), libm = declared(AT_EXP_LIBM);
    for (int turn = 0; turn < 4; turn++) {
        const struct answer a = answer_of(p, turn == 3 ? &libm : turn ? &ex2 : NULL, turn < 2 ? EXACT : MODEL, 0);
        for (int r = 0; r < ROWS; r++) {
            at_assert_same(a.index[r], rows[r].index);
            at_assert_same(a.index_limit[r], 0.0);
            for (int j = 0; j < 3; j++)
                assert_true(isnan(rows[r].sums[j]) ? isnan(a.sums[3 * r + j])
                                                   : fabs(a.sums[3 * r + j] - rows[r].sums[j]) < 1e-6);
        }
    }
    at_drop_case(&built);
}

/* ---- against MPFR ---- */

/* Rank after rank by looking at all logits again. */
static int64_t next_place(const struct at_problem *p, int64_t row, const char *taken) {
    const int64_t n = at_top_k_own_of(p).vocabulary;
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        const double x = at_tensor_get(&p->tensors[AT_TOP_K_LOGITS], row * n + i);
        const double most = best < 0 ? 0 : at_tensor_get(&p->tensors[AT_TOP_K_LOGITS], row * n + best);
        if (!taken[i] && (best < 0 || (isnan(x) && !isnan(most)) || x > most))
            best = i;
    }
    return best;
}

static void check_row(const struct at_problem *p, int64_t row, const struct answer *a) {
    const struct at_top_k_own z = at_top_k_own_of(p);
    const struct at_tensor *x = &p->tensors[AT_TOP_K_LOGITS];
    char taken[2048] = { 0 };
    int64_t place[512];
    mpfr_t c[512], w, threshold;
    mpfr_inits2(200, w, threshold, (mpfr_ptr)0);
    for (int64_t j = 0; j < z.kept; j++) {
        place[j] = next_place(p, row, taken);
        taken[place[j]] = 1;
        const double top = at_tensor_get(x, row * z.vocabulary + place[0]),
                     logit = at_tensor_get(x, row * z.vocabulary + place[j]);
        mpfr_set_d(w, logit, MPFR_RNDN);
        mpfr_sub_d(w, w, top, MPFR_RNDN);
        mpfr_div_d(w, w, (double)z.temperature, MPFR_RNDN);
        mpfr_exp(w, w, MPFR_RNDN);
        if (logit == top)
            mpfr_set_ui(w, 1, MPFR_RNDN);
        mpfr_init2(c[j], 200);
        if (j > 0)
            mpfr_add(c[j], c[j - 1], w, MPFR_RNDN);
        else
            mpfr_set(c[j], w, MPFR_RNDN);
        const double sum = mpfr_get_d(c[j], MPFR_RNDN), got = a->sums[row * z.kept + j];
        assert_true(isnan(sum) ? isnan(got) : fabs(got - sum) <= a->sums_limit[row * z.kept + j] + 0x1p-52 * sum);
    }
    mpfr_mul_d(threshold, c[z.kept - 1], at_tensor_get(&p->tensors[AT_TOP_K_U], row), MPFR_RNDN);
    int64_t j = 0;
    while (!mpfr_nan_p(c[0]) && j + 1 < z.kept && mpfr_lessequal_p(c[j], threshold))
        j++;
    if (a->index_limit[row] == 0)
        at_assert_same(a->index[row], (double)place[j]);
    for (int64_t i = 0; i < z.kept; i++)
        mpfr_clear(c[i]);
    mpfr_clears(w, threshold, (mpfr_ptr)0);
}

static void test_against_mpfr(void **state) {
    (void)state;
    static const char *const keys[] = {
        "vocabulary=300 k=20 data=normal",      "vocabulary=300 k=64 temperature=0.05 data=normal dtype=f32",
        "vocabulary=257 k=257 data=exact",      "vocabulary=2048 k=31 temperature=0.7 data=random_bits dtype=f16",
        "vocabulary=100 k=200 data=heavy_tail", "vocabulary=65 k=9 data=specials",
        "vocabulary=65 k=9 data=nonfinite",     "vocabulary=33 k=5 temperature=20 data=peaks",
    };
    const enum at_exp exps[] = { AT_EXP_LIBM, AT_EXP_EX2_APPROX, AT_EXP_EX2_APPROX_FTZ };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char line[160];
        snprintf(line, sizeof line, "top_k tokens=11 %s seed=%zu", keys[i], i + 1);
        struct at_built_case built = at_build_line(line);
        const struct at_problem *p = &built.data.problem;
        struct answer a = answer_of(p, NULL, EXACT, 0);
        for (int64_t row = 0; row < 11; row++)
            check_row(p, row, &a);
        for (int e = 0; e < 3; e++) { /* modelled values lie within their limits of exact ones, and those hold MPFR's */
            const struct at_numerics n = declared(exps[e]);
            const struct answer exact = answer_of(p, &n, EXACT, 0), model = answer_of(p, &n, MODEL, 0);
            for (int64_t row = 0; row < 11; row++)
                check_row(p, row, &exact);
            for (int64_t k = 0; k < at_tensor_count(&p->tensors[AT_TOP_K_CUMULATIVE]); k++)
                assert_true(isnan(exact.sums[k]) ? isnan(model.sums[k])
                                                 : fabs(exact.sums[k] - model.sums[k]) <= exact.sums_limit[k]);
            for (int64_t row = 0; row < 11; row++)
                assert_true(model.index[row] == exact.index[row] ||
                            at_top_k_admits(p, &n, 0, AT_TOP_K_INDEX, row, model.index[row]));
        }
        at_drop_case(&built);
    }
}

/* ---- draws that are close ---- */

/* Ranks at places 1, 6 and 3; weights 1, w, 1/4 of w or so. u is the float nearest to where rank 0 ends. */
static void test_close(void **state) {
    (void)state;
    const float logits[8] = { -9, 2, -9, 0.5f, -9, -9, 1.25f, -9 };
    struct at_built_case built = at_build_line("top_k tokens=2 vocabulary=8 k=3 dtype=f32");
    struct at_problem *p = &built.data.problem;
    const float u = (float)(1 / (1 + exp(-0.75) + exp(-1.5)));
    put(p, 0, logits, u);
    put(p, 1, logits, u + 1e-5f);
    const struct at_numerics n = declared(AT_EXP_EX2_APPROX);
    const struct answer a = answer_of(p, &n, EXACT, 0), own = answer_of(p, NULL, EXACT, 0);
    assert_true(a.index[0] == 1 || a.index[0] == 6);
    at_assert_same(a.index_limit[0], 5.0);
    at_assert_same(a.index_limit[1], 0.0);
    at_assert_same(own.index_limit[0], 0.0); /* the reference itself knows which */
    static const int right[8] = { [1] = 1, [6] = 1 };
    for (int place = 0; place < 8; place++) {
        assert_int_equal(at_top_k_admits(p, &n, 0, AT_TOP_K_INDEX, 0, place), right[place]);
        assert_int_equal(at_top_k_admits(p, &n, 0, AT_TOP_K_INDEX, 1, place), place == 6);
        /* the comparator asks: of the places within the limit those between are wrong */
        int32_t got[2] = { place, 6 };
        struct at_tensor tensor = p->tensors[AT_TOP_K_INDEX];
        tensor.data = got;
        const struct at_comparison c = { .got = &tensor,
                                         .want = a.index,
                                         .limit = a.index_limit,
                                         .problem = p,
                                         .numerics = &n,
                                         .tensor = AT_TOP_K_INDEX,
                                         .count = 2 };
        assert_int_equal(at_compare_rejects(&c, 0), !right[place]);
        assert_int_equal(at_compare_rejects(&c, 1), 0);
    }
    /* a fault that draws one of the right places is none there */
    const struct answer greedy = answer_of(p, &n, DECOY, AT_TOP_K_GREEDY);
    at_assert_same(greedy.index[0], a.index[0]);
    at_assert_same(a.index[1], 6.0);
    at_assert_same(greedy.index[1], 1.0);
    const struct answer last = answer_of(p, &n, DECOY, AT_TOP_K_RANK_FOR_PLACE);
    at_assert_same(last.index[0],
                   a.index[0] == 1 ? 0.0 : a.index[0]); /* rank 0 is no place of these; rank 1 is place 1 */
    /* with the order declared one place is right; what libm's exponentials leave open is an interval again */
    const struct answer model = answer_of(p, &n, MODEL, 0);
    at_assert_same(model.index_limit[0], 0.0);
    int admitted = 0;
    for (int place = 0; place < 8; place++)
        admitted += at_top_k_admits(p, &n, 1, AT_TOP_K_INDEX, 0, place);
    assert_int_equal(admitted, 1);
    at_drop_case(&built);
    /* two ranks, the second's weight in [1/2, 1): one unit more of it rounds the sum to another one */
    built = at_build_line("top_k tokens=1 vocabulary=8 k=2 dtype=f32");
    p = &built.data.problem;
    const float pair[8] = { -9, 2, -9, -9, -9, -9, 1.75f, -9 };
    const struct at_numerics libm = declared(AT_EXP_LIBM);
    int open = 0;
    for (int step = -32; step <= 32; step++) {
        put(p, 0, pair, (float)(1 / (1 + exp(-0.25))) + (float)step * 0x1p-24f);
        const struct answer by_libm = answer_of(p, &libm, MODEL, 0);
        assert_true(by_libm.index_limit[0] == 0 || by_libm.index_limit[0] == 5);
        open += by_libm.index_limit[0] == 5;
    }
    assert_true(open > 0 && open < 32);
    at_drop_case(&built);
}

/* ---- decoys ---- */

static void test_decoys(void **state) {
    (void)state;
    const float spread[6] = { 1, 3, 2, 3, 0, 3 }, equal[6] = { 1, 1, 1, 1, 1, 1 };
    struct at_built_case built = at_build_line("top_k tokens=2 vocabulary=6 k=4 temperature=2 dtype=f32");
    struct at_problem *p = &built.data.problem;
    const struct {
        const char *name;
        double index[2]; /* of the two rows below */
    } want[AT_TOP_K_FAULTS] = {
        { "greedy", { 1, 0 } },         { "no_temperature", { 5, 2 } }, { "one_more", { 2, 2 } },
        { "one_less", { 5, 1 } },       { "ascending", { 1, 1 } },      { "u_of_next_row", { 3, 3 } },
        { "rank_for_place", { 3, 2 } }, { "not_normalised", { 1, 0 } }, { "first_not_below", { 2, 1 } },
        { "last_of_ties", { 2, 3 } },   { "maximum_kept", { 2, 2 } },
    };
    put(p, 0, spread, 0.875f); /* weights 1 1 1 .61: 0.875 of 3.61 is 3.16; of the last rank, place 2 */
    put(p, 1, equal, 0.5f);    /* 2 of 4: the third, place 2 */
    const struct answer right = answer_of(p, NULL, EXACT, 0);
    at_assert_same(right.index[0], 2.0);
    at_assert_same(right.index[1], 2.0);
    for (int d = 0; d < AT_TOP_K_FAULTS; d++) {
        const struct answer a = answer_of(p, NULL, DECOY, d);
        assert_string_equal(p->op->decoys[d].name, want[d].name);
        for (int row = 0; row < 2; row++)
            at_assert_true(a.index[row] == want[d].index[row], "%s: row %d has %g, wanted %g", want[d].name, row,
                           a.index[row], want[d].index[row]);
    }
    const struct answer kept = answer_of(p, NULL, DECOY, AT_TOP_K_MAXIMUM_KEPT);
    assert_true(fabs(kept.sums[0] - exp(1.5)) < 1e-12);
    at_drop_case(&built);
}

static void refused(struct at_problem *p, const char *text) { at_assert_fails(p->op->check(p), AT_USAGE, text); }

static void test_refused(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("top_k tokens=3 vocabulary=6 k=2 dtype=f32");
    struct at_problem *p = &built.data.problem, whole = *p;
    struct at_top_k_own own = at_top_k_own_of(p), other = own;
    float *u = p->tensors[AT_TOP_K_U].data;
    u[1] = 1;
    refused(p, "u[1] is 1, wanted 0 or more and less than 1");
    u[1] = NAN;
    refused(p, "u[1] is nan");
    u[1] = 0;
    other.kept = 3;
    at_top_k_own_set(p, &other);
    refused(p, "kept is 3, wanted 2 of k=2 and 6 logits");
    other = own;
    other.temperature = 0;
    at_top_k_own_set(p, &other);
    refused(p, "temperature is 0, wanted 1/128 to 100");
    other = own;
    other.k = 0;
    at_top_k_own_set(p, &other);
    refused(p, "tokens, vocabulary, k are 3, 6, 0");
    *p = whole;
    p->tensors[AT_TOP_K_U].data = NULL;
    refused(p, "tensor u has 3 elements of f32, wanted 3 of f32 with data");
    *p = whole;
    struct at_numerics n = declared(AT_EXP_TANH_APPROX);
    struct at_eval eval = { 0 };
    at_assert_fails(p->op->model(p, &n, 0, 1, &eval), AT_UNSUPPORTED, "silu_mul");
    n = declared(AT_EXP_LIBM);
    n.free_order = 1;
    at_assert_fails(p->op->model(p, &n, 0, 1, &eval), AT_UNSUPPORTED, "no order of sums");
    at_drop_case(&built);
}

static void test_parts(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("top_k tokens=9 vocabulary=70 k=10 data=normal");
    const int64_t units[] = { 7, 0, 3 };
    struct at_batch_part part;
    const struct answer whole = answer_of(&built.data.problem, NULL, EXACT, 0);
    at_assert_ok(at_batch_gather(&built.data.problem, units, 3, &part));
    const struct answer some = answer_of(&part.problem, NULL, EXACT, 0);
    for (int i = 0; i < 3; i++)
        at_assert_same(some.index[i], whole.index[units[i]]);
    at_batch_release(&part);
    at_drop_case(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_against_mpfr), cmocka_unit_test(test_close),
        cmocka_unit_test(test_decoys),  cmocka_unit_test(test_refused),      cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
