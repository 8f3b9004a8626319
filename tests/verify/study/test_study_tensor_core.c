/* The table of instructions, the patterns that tell its rules apart, and the device's golden vectors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "verify/study/tensor_core/study_tensor_core.h"

enum { MAX_ROWS = 1024 };

static double *values;

static int allocate(void **state) {
    (void)state;
    values = malloc(((size_t)1 << 21) * sizeof *values);
    return values ? 0 : -1;
}

static int release(void **state) {
    (void)state;
    free(values);
    return 0;
}

/* Each neighbour of each instruction's rule gives other bits on at least 1 % of the stratum that is meant for it. */
static void test_neighbours_are_told(void **state) {
    (void)state;
    for (int i = 0; i < at_tc_instruction_count(); i++) {
        double best[AT_TC_NEIGHBOURS];
        for (int k = 0; k < AT_TC_NEIGHBOURS; k++)
            best[k] = -1;
        for (int s = 0; s < AT_TC_STRATA; s++) {
            struct at_tc_study_row row = { at_tc_instruction_at(i), (enum at_tc_stratum)s, 1,
                                           .patterns = 400 * at_test_effort(2) };
            at_assert_ok(at_tc_study_model(&row, 1, 2, values));
            for (int k = 0; k < AT_TC_NEIGHBOURS; k++)
                if (row.neighbour[k] >= 0)
                    best[k] = fmax(best[k], (double)row.neighbour[k] / (double)row.patterns);
        }
        print_message("%-32s", at_tc_instruction_at(i)->name);
        for (int k = 0; k < AT_TC_NEIGHBOURS; k++) {
            print_message(" %s %.1f %%", at_tc_neighbour_name((enum at_tc_neighbour)k), 100 * best[k]);
            at_assert_true(best[k] < 0 || best[k] >= 0.01, "%s and its neighbour %s agree too often",
                           at_tc_instruction_at(i)->name, at_tc_neighbour_name((enum at_tc_neighbour)k));
        }
        print_message("\n");
    }
}

/* The model's results do not depend on the number of threads; the seed and the stratum matter. */
static void test_patterns_repeat(void **state) {
    (void)state;
    struct at_tc_study_row one = { at_tc_instruction_find("hopper_mma_k16_f16_f32"), AT_TC_ordinary, 1,
                                   .patterns = 5000 };
    struct at_tc_study_row two = one, other = one;
    other.seed = 2;
    at_assert_ok(at_tc_study_model(&one, 1, 1, values));
    at_tc_study_digest(values, one.patterns, &one);
    at_assert_ok(at_tc_study_model(&two, 1, 3, values));
    at_tc_study_digest(values, two.patterns, &two);
    at_assert_ok(at_tc_study_model(&other, 1, 1, values));
    at_tc_study_digest(values, other.patterns, &other);
    assert_true(one.hash == two.hash && one.hash != other.hash);
    assert_memory_equal(one.neighbour, two.neighbour, sizeof one.neighbour);
}

/* What the hardware gave: the model makes it again, to the bit. */
static void test_golden_vectors(void **state) {
    (void)state;
    static struct at_tc_study_row rows[MAX_ROWS];
    int n;
    at_assert_ok(at_tc_golden_read(AT_SOURCE_DIR "/datasets/measurements/h200_tensor_core.txt", rows, MAX_ROWS, &n));
    assert_true(n >= 100);
    for (int i = 0; i < n; i++) {
        struct at_tc_study_row made = rows[i];
        assert_int_equal(made.mismatches, 0);
        if (at_test_effort(2) == 1 && i % 17) /* at fast effort one in 17: every stratum */
            continue;
        assert_true(made.patterns <= 1 << 21);
        at_assert_ok(at_tc_study_model(&made, 0, 2, values));
        at_tc_study_digest(values, made.patterns, &made);
        at_assert_true(made.hash == rows[i].hash && !memcmp(made.first, rows[i].first, sizeof made.first),
                       "%s, %s: not what the device gave", made.instruction->name, at_tc_stratum_name(made.stratum));
    }
}

static void bad_line(const char *line, const char *says) {
    struct at_tc_study_row rows[2];
    int n;
    char path[] = "/tmp/at_golden_XXXXXX";
    FILE *f = fdopen(mkstemp(path), "w");
    assert_non_null(f);
    fputs(line, f);
    fclose(f);
    at_assert_fails(at_tc_golden_read(path, rows, 2, &n), AT_USAGE, says);
    remove(path);
}

static void test_bad_files(void **state) {
    (void)state;
    struct at_tc_study_row rows[1];
    int n;
    at_assert_fails(at_tc_golden_read("/nowhere/at_all", rows, 1, &n), AT_IO, "cannot be opened");
    bad_line("# fine\nhopper_mma_k16_f16_f32 ordinary 1 100 0 12\n", ":2: found 6 fields, wanted 14");
    bad_line("volta_none ordinary 1 100 0 12 0 0 0 0 0 0 0 0\n", "no instruction volta_none");
    bad_line("hopper_mma_k16_f16_f32 strange 1 100 0 12 0 0 0 0 0 0 0 0\n", "stratum strange");
    bad_line("hopper_mma_k16_f16_f32 ordinary 1 -5 0 12 0 0 0 0 0 0 0 0\n", "-5 patterns");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_are_told),
        cmocka_unit_test(test_patterns_repeat),
        cmocka_unit_test(test_golden_vectors),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, allocate, release);
}
