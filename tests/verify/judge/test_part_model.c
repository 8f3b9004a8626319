/* A declared order that is modelled on some rows: which, with what values, and who decides on the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/built_case.h"
#include "gemm/gemm.h"
#include "verify/judge/answer.h"
#include "verify/judge/compare.h"
#include "verify/judge/decoys.h"
#include "verify/judge/resolution.h"

enum { M = 96, N = 640, K = 768, D = AT_GEMM_D, ROWS = 5 }; /* 4.7e7 multiply-adds: above what is modelled whole */

struct scene {
    struct at_built_case built;
    struct at_answer answer;
    struct at_numerics numerics;
    struct at_judgement part;
};

static void open_scene(struct scene *s, int64_t rows, uint64_t seed) {
    memset(s, 0, sizeof *s);
    s->built = at_build_line("gemm m=96 n=640 k=768 dtype=bf16");
    s->numerics = at_numerics_default();
    s->numerics.qk_unit = AT_UNIT_F32_FMA;
    at_assert_ok(at_answer_open(&s->built.data.problem, 2, 1, &s->answer));
    at_assert_ok(at_judgement_open(&s->answer, &s->numerics, 2, rows, seed, &s->part));
}

static void close_scene(struct scene *s) {
    at_judgement_close(&s->part);
    at_answer_close(&s->answer);
    at_drop_case(&s->built);
}

/* Some rows whole, the last among them, others not at all; another seed draws others. */
static void test_rows(void **state) {
    (void)state;
    struct scene s, other;
    double want[N];
    int n = 0, same = 0;
    open_scene(&s, ROWS, 1);
    open_scene(&other, ROWS, 2);
    assert_int_equal(s.part.has_model, 1);
    assert_int_equal(s.part.model_is_part, 1);
    struct at_eval eval = { .value = { [D] = NULL } };
    double *whole = calloc((size_t)M * N, sizeof *whole);
    eval.value[D] = whole;
    for (int row = 0; row < M; row++) {
        const unsigned char *marks = s.part.modelled[D] + (int64_t)row * N;
        for (int i = 1; i < N; i++)
            assert_int_equal(marks[i], marks[0]);
        n += marks[0];
        same += marks[0] && other.part.modelled[D][(int64_t)row * N];
        if (!marks[0])
            continue;
        at_assert_ok(s.built.data.problem.op->model(&s.built.data.problem, &s.numerics, row, row + 1, &eval));
        memcpy(want, whole + (int64_t)row * N, sizeof want);
        assert_memory_equal(want, s.part.model[D] + (int64_t)row * N, sizeof want);
    }
    assert_int_equal(n, ROWS);
    assert_int_equal(s.part.modelled[D][(int64_t)M * N - 1], 1);
    assert_true(same < ROWS);
    free(whole);
    close_scene(&other);
    close_scene(&s);
}

/* All rows where so many are asked for, and where none are. */
static void test_whole(void **state) {
    (void)state;
    struct scene s;
    open_scene(&s, M, 1);
    assert_int_equal(s.part.model_is_part, 0);
    assert_null(s.part.modelled[D]);
    close_scene(&s);
}

static struct at_result compare(struct scene *s, uint16_t *codes, struct at_comparison *c) {
    static struct at_tensor got;
    struct at_result r;
    memset(&r, 0, sizeof r);
    got = s->built.data.problem.tensors[D];
    got.data = codes;
    *c = (struct at_comparison){ .got = &got,
                                 .want = s->answer.value[D],
                                 .limit = s->part.limit[D],
                                 .model = s->part.model[D],
                                 .interval = s->part.interval[D],
                                 .modelled = s->part.modelled[D],
                                 .count = s->answer.count[D] };
    at_assert_ok(at_compare(c, &r));
    return r;
}

/* What is right everywhere: the model where there is one, the exact value rounded elsewhere. */
static uint16_t *right(const struct scene *s) {
    uint16_t *codes = calloc((size_t)M * N, sizeof *codes);
    assert_non_null(codes);
    for (int64_t i = 0; i < (int64_t)M * N; i++)
        at_store(AT_BF16, codes, (size_t)i, s->part.modelled[D][i] ? s->part.model[D][i] : s->answer.value[D][i]);
    return codes;
}

/* A unit in the last place is off the model, and inside the limit where there is no model; twice the limit is beyond it anywhere. */
static void test_decides(void **state) {
    (void)state;
    struct scene s;
    struct at_comparison c;
    int64_t modelled = (int64_t)M * N - 1, plain = 0;
    open_scene(&s, ROWS, 1);
    while (s.part.modelled[D][plain])
        plain++;
    uint16_t *codes = right(&s), kept;
    struct at_result r = compare(&s, codes, &c);
    assert_int_equal(r.wrong, 0);
    assert_int_equal(r.model_compared, ROWS * N);
    assert_int_equal(r.model_equal, ROWS * N);
    assert_int_equal(r.model_exact, 0); /* of all elements nobody knows that */
    kept = codes[modelled];
    codes[modelled] ^= 1;
    r = compare(&s, codes, &c);
    assert_int_equal(r.wrong, 1);
    assert_int_equal(c.off_model, 1);
    assert_int_equal(r.model_exact, 0);
    codes[modelled] = kept;
    kept = codes[plain];
    at_store(AT_BF16, codes, (size_t)plain, s.answer.value[D][plain] + 4 * s.part.limit[D][plain]);
    r = compare(&s, codes, &c);
    assert_int_equal(r.wrong, 1);
    assert_int_equal(c.first_wrong, plain);
    assert_int_equal(c.off_model, 0);
    at_store(AT_BF16, codes, (size_t)plain, s.answer.value[D][plain] + 0.9 * s.part.limit[D][plain]);
    r = compare(&s, codes, &c);
    at_assert_true(c.off_model == 0, "an element without a modelled value is off the model");
    free(codes);
    close_scene(&s);
}

/* Decoys are rejected by the limit where there is no model; the resolution looks at limits there. */
static void test_decoys(void **state) {
    (void)state;
    struct scene s;
    struct at_decoy_report by_both, by_model;
    open_scene(&s, ROWS, 1);
    at_assert_ok(at_answer_decoys(&s.answer, &s.numerics, 2));
    int lost = 0; /* a row that is lost where there is no model is the limit's to see */
    while (strcmp(s.answer.decoys[lost].name, "row_zeroed") != 0)
        lost++;
    for (int64_t i = 0; i < s.answer.n_sample; i++)
        if (s.answer.decoys[lost].value[D][i * N] == 0)
            memset(s.part.modelled[D] + s.answer.sample[i] * N, 0, N);
    at_decoys_try(&s.answer, NULL, D, s.part.limit[D], s.part.model[D], s.part.interval[D], s.part.modelled[D],
                  &by_both);
    /* decoys are not rounded: intervals that let that be */
    at_decoys_try(&s.answer, NULL, D, NULL, s.part.model[D], s.part.limit[D], s.part.modelled[D], &by_model);
    assert_true(by_both.counted > 5);
    assert_int_equal(by_both.rejected, by_both.counted);
    assert_int_equal(by_both.passed, 0);
    assert_int_equal(by_both.fate[lost], AT_DECOY_REJECTED);
    assert_int_equal(by_model.fate[lost], AT_DECOY_PASSED);
    const double resolution = at_resolution(&s.answer, &s.part, D, (double)INFINITY);
    at_assert_true(resolution > 1e-6 && resolution < 0.02, "resolves %g", resolution);
    close_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_decides),
        cmocka_unit_test(test_decoys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
