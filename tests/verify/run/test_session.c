/* A run over several runners: jobs of one case side by side, the same results however many, none after a failure.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --serve, this program is itself a runner of kernels that misbehave. */
#include "tests/at_test.h"

#include "tests/support/launch_kernels.h"
#include "verify/run/session.h"

#include <dirent.h>
#include <unistd.h>

static char spec[4200];

/* Kernels that do the same in every process, whichever jobs it has had. */
static const enum at_launch_kernel steady[] = { AT_LK_ZEROS,     AT_LK_UNWRITTEN,   AT_LK_PAST,     AT_LK_CHANGES_INPUT,
                                                AT_LK_FOLLOWS_V, AT_LK_BY_BATCH,    AT_LK_BY_PLACE, AT_LK_FAILS,
                                                AT_LK_DECLINES,  AT_LK_ABORTS_ALONE };
enum { STEADY = sizeof steady / sizeof *steady };

enum until { ALL, FIRST_OF_ALL, FIRST_OF_EACH, ENOUGH }; /* which failure ends what */

/* Whether a result has the state that is looked for. */
static int has_state(const struct at_result *r, const void *state) { return r->state == *(const enum at_state *)state; }

static void run(const enum at_launch_kernel *kernels, int n, const char *line, int jobs, enum until until,
                struct at_run_record *record) {
    char names[STEADY][64];
    const char *globs[STEADY];
    for (int i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "asynct_prefill/%s", at_launch_name(kernels[i]));
        globs[i] = names[i];
    }
    struct at_session_options o = at_session_defaults();
    o.selection = (struct at_selection){ .globs = globs, .n_globs = n, .case_line = line, .shards = 1 };
    o.runner = spec;
    o.jobs = jobs;
    o.quiet = 1;
    o.fail_fast = until == FIRST_OF_ALL;
    o.first_failure = until == FIRST_OF_EACH;
    static const enum at_state broken = AT_STATE_ERROR;
    o.is_enough = until == ENOUGH ? has_state : NULL;
    o.looked_for = &broken;
    at_assert_ok(at_session_run(&o, record));
}

/* Either kernel comes back only when the other runs at the same time: one after the other they would fail. */
static void jobs_of_one_case_run_side_by_side(void **state) {
    (void)state;
    static const enum at_launch_kernel both[] = { AT_LK_MEETS, AT_LK_MEETS_TOO };
    char folder[] = "/tmp/at-test-session-XXXXXX", path[512];
    struct at_run_record record;
    assert_non_null(mkdtemp(folder));
    setenv("AT_TEST_MEETING", folder, 1);
    run(both, 2, AT_LAUNCH_LINE, 2, ALL, &record);
    unsetenv("AT_TEST_MEETING");
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
            unlink(path);
    if (dir)
        closedir(dir);
    rmdir(folder);
    assert_int_equal(record.n, 2);
    for (int i = 0; i < 2; i++)
        at_assert_true(record.results[i].state == AT_STATE_PASS, "job %d: %s", i, record.results[i].cause);
    at_run_record_release(&record);
}

static void results_do_not_depend_on_the_number_of_jobs(void **state) {
    (void)state;
    static const int jobs[] = { 1, 2, 5, 64 };
    struct at_run_record first, other;
    run(steady, STEADY, AT_LAUNCH_LINE, jobs[0], ALL, &first);
    assert_int_equal(first.n, STEADY);
    for (size_t k = 1; k < sizeof jobs / sizeof *jobs; k++) {
        run(steady, STEADY, AT_LAUNCH_LINE, jobs[k], ALL, &other);
        assert_int_equal(other.n, first.n);
        for (int64_t i = 0; i < first.n; i++) {
            first.results[i].seconds = other.results[i].seconds = 0;
            char *one, *many;
            at_assert_ok(at_result_to_json(&first.results[i], &one));
            at_assert_ok(at_result_to_json(&other.results[i], &many));
            at_assert_true(strcmp(one, many) == 0,
                           "%d jobs: result %lld of %s is %s, \"%s\"; with one job it is %s, \"%s\"", jobs[k],
                           (long long)i, other.results[i].variant, at_state_name(other.results[i].state),
                           other.results[i].cause, at_state_name(first.results[i].state), first.results[i].cause);
            free(one);
            free(many);
        }
        at_run_record_release(&other);
    }
    at_run_record_release(&first);
}

static void a_failure_can_be_the_last(void **state) {
    (void)state;
    struct at_run_record record;
    run(steady, STEADY, AT_LAUNCH_LINE, 1, FIRST_OF_ALL, &record);
    assert_int_equal(record.n, 2); /* what passes, and what fails first */
    assert_int_equal(record.results[1].state, AT_STATE_DIRTY);
    at_run_record_release(&record);
}

/* What is right is judged on every case; what is wrong once, and on the smallest, which is neither the first nor the last
 * of the plan. */
static void a_variant_can_be_judged_up_to_its_first_failure(void **state) {
    (void)state;
    static const enum at_launch_kernel kernels[] = { AT_LK_PAST, AT_LK_ZEROS, AT_LK_UNWRITTEN, AT_LK_FAILS };
    static const char line[] =
        "asynct_prefill b=3 h=2 hk=1 sq=2/0/3 sk=5/0/9 d=16,8,24 page=4 dtype=f32 data=all_masked gamma=0";
    static const int jobs[] = { 1, 5 };
    struct at_run_record record;
    run(kernels, 4, line, 1, ALL, &record);
    assert_int_equal(record.n, 12);
    at_run_record_release(&record);
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        int right = 0, wrong = 0;
        run(kernels, 4, line, jobs[k], FIRST_OF_EACH, &record);
        for (int64_t i = 0; i < record.n; i++) {
            const struct at_result *r = &record.results[i];
            const int fails = at_state_fails(r->state, r->expect, 0);
            right += !fails;
            wrong += fails;
            at_assert_true(jobs[k] > 1 || !fails || strstr(r->case_id, " d=8 "), "%s failed on %s", r->variant,
                           r->case_id);
        }
        assert_int_equal(right, 3);
        /* several workers may have begun the next case of a variant before it failed */
        at_assert_true(jobs[k] == 1 ? wrong == 3 : wrong >= 3 && wrong <= 9, "%d jobs: %d failures", jobs[k], wrong);
        at_run_record_release(&record);
    }
}

/* The smallest case comes first, and a kernel that fails otherwise ends nothing. */
static void a_run_ends_with_what_it_looked_for(void **state) {
    (void)state;
    static const enum at_launch_kernel kernels[] = { AT_LK_ZEROS, AT_LK_UNWRITTEN, AT_LK_FAILS };
    static const char line[] =
        "asynct_prefill b=3 h=2 hk=1 sq=2/0/3 sk=5/0/9 d=16,8,24 page=4 dtype=f32 data=all_masked gamma=0";
    struct at_run_record record;
    run(kernels, 3, line, 1, ENOUGH, &record);
    assert_int_equal(record.n, 3);
    for (int64_t i = 0; i < record.n; i++)
        at_assert_true(strstr(record.results[i].case_id, " d=8 ") != NULL, "judged %s", record.results[i].case_id);
    assert_int_equal(record.results[2].state, AT_STATE_ERROR);
    at_run_record_release(&record);
}

int main(int argc, char **argv) {
    char self[4096];
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return at_launch_serve();
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return 70;
    self[n] = 0;
    snprintf(spec, sizeof spec, "exec '%s' --serve", self);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_one_case_run_side_by_side),
        cmocka_unit_test(results_do_not_depend_on_the_number_of_jobs),
        cmocka_unit_test(a_failure_can_be_the_last),
        cmocka_unit_test(a_variant_can_be_judged_up_to_its_first_failure),
        cmocka_unit_test(a_run_ends_with_what_it_looked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
