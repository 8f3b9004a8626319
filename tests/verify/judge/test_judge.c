/* Judging a job: reruns, other batches, calls that fail, on a case whose right answer is all zeros.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --serve, this program is itself a runner of kernels that misbehave. What kernels compute and how they
 * are judged by it is the business of the mutants (tests/mutants). */
#include "tests/at_test.h"

#include "attest/attention.h"
#include "tests/support/launch_kernels.h"
#include "verify/judge/judge.h"

static struct at_runner *runner;

static int open_runner(void **state) {
    (void)state;
    return at_rig_open_self(&runner) == AT_OK ? 0 : -1;
}

static int close_runner(void **state) {
    (void)state;
    at_runner_close(runner);
    return 0;
}

struct seen {
    struct at_result results[32];
    int n, jobs;
};

static at_status emit(void *context, const struct at_result *results, int n) {
    struct seen *seen = context;
    for (int i = 0; i < n; i++)
        seen->results[seen->n++] = results[i];
    seen->jobs++;
    return AT_OK;
}

static int64_t judge_again = 1; /* of the judge's options */

/* Judges kernels on a case through a plan, as a run does. */
static struct seen *judge(const char *line, const enum at_launch_kernel *kernels, int n, double timeout) {
    static struct seen seen;
    char names[8][64];
    const char *globs[8];
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "asynct_prefill/%s", at_launch_name(kernels[i]));
        globs[i] = names[i];
    }
    struct at_selection selection = { .globs = globs, .n_globs = n, .case_line = line, .shards = 1 };
    struct at_judge_options options = { .timeout = timeout,
                                        .threads = 1,
                                        .again = judge_again,
                                        .limit_factor = 1,
                                        .runner_spec = "test",
                                        .emit = emit,
                                        .context = &seen };
    struct at_plan plan;
    at_assert_ok(at_plan_make(&selection, runner, &plan));
    assert_int_equal(plan.n_items, 1);
    assert_int_equal(plan.n_jobs, n);
    struct at_case_context *context;
    at_assert_ok(at_case_context_create(&plan.items[0], &options, &context));
    for (int i = 0; i < n; i++)
        at_assert_ok(at_judge_job(context, runner, NULL, i));
    at_case_context_destroy(context);
    at_plan_release(&plan);
    return &seen;
}

/* The one result of a kernel on a case; its state and what its cause says. */
static const struct at_result *expect(const char *line, enum at_launch_kernel kernel, enum at_state state,
                                      const char *says) {
    struct seen *seen = judge(line, &kernel, 1, 0);
    assert_int_equal(seen->n, 1);
    const struct at_result *r = &seen->results[0];
    at_assert_true(r->state == state && strstr(r->cause, says), "%s: %s \"%s\", wanted %s \"%s\"",
                   at_launch_name(kernel), at_state_name(r->state), r->cause, at_state_name(state), says);
    return r;
}

#define CONTIGUOUS "asynct_prefill b=3 h=2 hk=1 sq=2/0/3 sk=5/0/9 d=8 dtype=f32 data=all_masked gamma=0"
#define ONE "asynct_prefill b=1 h=2 hk=1 sq=5 sk=9 d=8 page=4 dtype=f32 data=all_masked gamma=0"

static void a_right_kernel_passes_and_is_counted(void **state) {
    (void)state;
    const struct at_result *r = expect(AT_LAUNCH_LINE, AT_LK_ZEROS, AT_STATE_PASS, "");
    assert_string_equal(r->tensor, "o");
    assert_string_equal(r->format, "f32");
    assert_int_equal(r->compared, AT_LAUNCH_ELEMENTS);
    assert_int_equal(r->rerun_compared, AT_LAUNCH_ELEMENTS);
    assert_int_equal(r->rerun_different, 0);
    /* requests 0, 1 and 2 alone, and all of them backwards */
    assert_int_equal(r->batch_compared, 2 * AT_LAUNCH_ELEMENTS);
    assert_int_equal(r->batch_different, 0);
    assert_int_equal(r->judged_by_limit, 1);
    assert_true(r->has_ledger && r->seconds >= 0);
    at_assert_true(strstr(r->repro, "attest replay 'asynct_prefill/00_plain asynct_prefill b=3") &&
                       strstr(r->repro, "--runner 'test'"),
                   "%s", r->repro);
    r = expect(ONE, AT_LK_ZEROS, AT_STATE_PASS, "");
    assert_int_equal(r->batch_compared, 0); /* there is no other batch of one request */
}

/* With --again N a job in N is launched again, drawn by kernel and case: a kernel that changes its bits shows on those, and
 * on those alone. */
static void one_job_in_n_is_launched_again(void **state) {
    (void)state;
    char drawn[2][2][64], line[256];
    const enum at_launch_kernel kernels[] = { AT_LK_ALTERNATES, AT_LK_UNSTEADY };
    judge_again = 3;
    for (int round = 0; round < 2; round++)
        for (int k = 0; k < 2; k++) {
            int n = 0;
            for (int seed = 0; seed < 60; seed++) {
                snprintf(line, sizeof line, CONTIGUOUS " seed=%d", seed);
                const struct at_result *r = &judge(line, &kernels[k], 1, 0)->results[0];
                assert_true((r->rerun_different > 0) == (r->rerun_compared > 0));
                assert_true((r->batch_compared > 0) == (r->rerun_compared > 0));
                n += r->rerun_compared > 0;
                drawn[round][k][seed] = r->rerun_compared > 0 ? '1' : '0';
            }
            drawn[round][k][60] = 0;
            at_assert_true(8 <= n && n <= 35, "%d of 60 were launched again", n);
        }
    judge_again = 1;
    assert_string_equal(drawn[0][0], drawn[1][0]);
    assert_string_equal(drawn[0][1], drawn[1][1]);
    assert_string_not_equal(drawn[0][0], drawn[0][1]);
}

/* Bits that follow the poison are no race: the same poison gives the same bits, however often. */
static void poison_is_told_from_a_race(void **state) {
    (void)state;
    const struct at_result *r = expect(AT_LAUNCH_LINE, AT_LK_FOLLOWS_POISON, AT_STATE_WRONG,
                                       "1 elements follow what stands in key or value rows that no request owns");
    assert_int_equal(r->rerun_different, 0);
    r = expect(AT_LAUNCH_LINE, AT_LK_ALTERNATES, AT_STATE_RACY, "1 of 80 elements changed bits between two equal");
    assert_int_equal(r->rerun_different, 1);
    expect(AT_LAUNCH_LINE, AT_LK_TWICE_DIFFERS, AT_STATE_RACY, "1 of 80");
    expect(AT_LAUNCH_LINE, AT_LK_RARELY_DIFFERS, AT_STATE_RACY, "1 of 80");
    /* no row is without an owner: whatever changes, changes by itself */
    r = expect(CONTIGUOUS, AT_LK_ALTERNATES, AT_STATE_RACY, "1 of 80");
    assert_int_equal(r->rerun_compared, AT_LAUNCH_ELEMENTS);
    /* wrong, and steady */
    r = expect(AT_LAUNCH_LINE, AT_LK_FOLLOWS_V, AT_STATE_WRONG, "1 of 80 elements wrong");
    assert_int_equal(r->rerun_different, 0);
    /* not declared to repeat: the difference is counted, and not held against it; the value is, where it is looked at */
    r = expect(ONE, AT_LK_UNSTEADY, AT_STATE_WRONG, "wrong on other data in the same memory");
    assert_int_equal(r->rerun_different, 1);
    r = expect(AT_LAUNCH_LINE, AT_LK_ONCE_DIFFERS, AT_STATE_PASS, ""); /* by chance when the poison was another */
    assert_int_equal(r->rerun_different, 1);
    expect(AT_LAUNCH_LINE, AT_LK_STILL_FOLLOWS, AT_STATE_WRONG, "1 elements follow what stands");
}

/* Is q[0] > 0 in a case, and in data drawn again for it? */
static int bends(const struct at_case *c, int turn) {
    struct at_case_data data;
    at_assert_ok(turn < 0 ? at_case_build(c, &data) : at_case_build_again(c, (uint64_t)turn, &data));
    const int is_positive = at_tensor_get(&data.problem.tensors[AT_ATTN_Q], 0) > 0;
    at_case_data_release(&data);
    return is_positive;
}

/* An alarm counts when data of two more seeds give it too: over cases of all four kinds. */
static void an_alarm_is_drawn_again(void **state) {
    (void)state;
    int seen[4] = { 0 };
    for (int seed = 1; seed <= 40; seed++) {
        char line[160];
        struct at_case_list list = { 0 };
        snprintf(line, sizeof line,
                 "asynct_prefill b=1 h=2 hk=1 sq=1 sk=1 d=8 dtype=f32 data=same_sign seed=%d clip=1:1", seed);
        at_assert_ok(at_case_parse(line, "line", "test", &list));
        const int first = bends(&list.items[0], -1), again[2] = { bends(&list.items[0], 0), bends(&list.items[0], 1) };
        const int all = first && again[0] && again[1];
        const struct at_result *r =
            expect(line, AT_LK_BENDS, all ? AT_STATE_WRONG : AT_STATE_PASS, all ? "biased: " : "");
        at_assert_true((r->aggregate_ratio > 1) == first, "%s: ratio %g", line, r->aggregate_ratio);
        at_assert_true(r->resolution > 0 && r->resolution < 4e-3, "%s: resolution %g", line, r->resolution);
        seen[first ? 1 + again[0] + (again[0] && again[1]) : 0]++;
        at_case_list_release(&list);
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

/* What a kernel keeps from one launch to the next is right for as long as the data stay the same. */
static void results_that_are_kept(void **state) {
    (void)state;
    static const char line[] = "asynct_prefill b=1 h=2 hk=1 sq=1 sk=1 d=8 dtype=f32 data=same_sign seed=3 clip=1:1";
    expect(line, AT_LK_READS, AT_STATE_PASS, "");
    expect(line, AT_LK_KEEPS, AT_STATE_WRONG,
           "gives what it gave for other data in the same memory, launched again on data");
    expect(line, AT_LK_KEEPS_LAST, AT_STATE_WRONG, "launched again with one element of v changed");
    judge_again = INT64_MAX; /* without further launches nothing shows */
    expect(line, AT_LK_KEEPS, AT_STATE_PASS, "");
    judge_again = 1;
}

static void dirt_of_every_launch_counts(void **state) {
    (void)state;
    expect(AT_LAUNCH_LINE, AT_LK_PAST, AT_STATE_DIRTY, "wrote past tensor o: byte 8");
    expect(AT_LAUNCH_LINE, AT_LK_UNWRITTEN, AT_STATE_DIRTY, "left 2 of 80 elements of o unwritten");
    expect(AT_LAUNCH_LINE, AT_LK_BEFORE_INPUT, AT_STATE_DIRTY, "wrote before tensor v");
    expect(AT_LAUNCH_LINE, AT_LK_CHANGES_INPUT, AT_STATE_DIRTY, "changed its input q");
    expect(AT_LAUNCH_LINE, AT_LK_CHANGES_LATER, AT_STATE_DIRTY, "changed its input q, when launched again");
    expect(AT_LAUNCH_LINE, AT_LK_CHANGES_ALONE, AT_STATE_DIRTY, "q, when launched on a part of the batch");
}

static void bits_that_follow_the_batch(void **state) {
    (void)state;
    /* requests 0 and 2 alone: the sign of one zero each; request 1 is empty */
    const struct at_result *r =
        expect(AT_LAUNCH_LINE, AT_LK_BY_BATCH, AT_STATE_RACY, "2 of 160 elements changed bits with the batch");
    assert_int_equal(r->batch_different, 2);
    assert_int_equal(r->rerun_different, 0);
    r = expect(AT_LAUNCH_LINE, AT_LK_BY_PLACE, AT_STATE_RACY, "1 of 160 elements changed bits with the batch");
    assert_int_equal(r->batch_different, 1);
    r = expect(AT_LAUNCH_LINE, AT_LK_BY_BATCH_SAID, AT_STATE_PASS, "");
    assert_int_equal(r->batch_different, 2);
    expect(ONE, AT_LK_BY_PLACE, AT_STATE_PASS, "");
}

static void calls_that_fail(void **state) {
    (void)state;
    const struct at_result *r = expect(AT_LAUNCH_LINE, AT_LK_FAILS, AT_STATE_ERROR, "7");
    assert_string_equal(r->tensor, "");
    assert_int_equal(r->compared, 0);
    assert_int_equal(r->worst_index, -1);
    expect(AT_LAUNCH_LINE, AT_LK_DECLINES, AT_STATE_UNSUPPORTED, "head size 8 is too small");
    expect(AT_LAUNCH_LINE, AT_LK_FAILS_LATER, AT_STATE_ERROR, "launched again on the same problem, the variant failed");
    expect(AT_LAUNCH_LINE, AT_LK_FAILS_ALONE, AT_STATE_ERROR, "launched again on a part of the batch");
    expect(AT_LAUNCH_LINE, AT_LK_ABORTS_ALONE, AT_STATE_CRASHED, "signal 6");
    /* a batch that the variant does not take is not compared: of the four only the one backwards is */
    r = expect(AT_LAUNCH_LINE, AT_LK_DECLINES_ALONE, AT_STATE_PASS, "");
    assert_int_equal(r->batch_compared, AT_LAUNCH_ELEMENTS);
    expect(ONE, AT_LK_DECLINES_ALONE, AT_STATE_UNSUPPORTED, "one request is too few");
}

/* A hang and a crash cost their own job. */
static void jobs_of_a_case_are_independent(void **state) {
    (void)state;
    static const enum at_launch_kernel kernels[] = { AT_LK_ZEROS, AT_LK_CHANGES_INPUT, AT_LK_BY_BATCH,
                                                     AT_LK_ABORTS_ALONE, AT_LK_HANGS };
    static const enum at_state states[] = { AT_STATE_PASS, AT_STATE_DIRTY, AT_STATE_RACY, AT_STATE_CRASHED,
                                            AT_STATE_HUNG };
    struct seen *seen = judge(AT_LAUNCH_LINE, kernels, 5, 0.3);
    assert_int_equal(seen->jobs, 5);
    assert_int_equal(seen->n, 5);
    for (int i = 0; i < 5; i++) {
        at_assert_true(seen->results[i].state == states[i], "job %d is %s", i, at_state_name(seen->results[i].state));
        assert_int_equal(seen->results[i].plan_index, i);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return at_launch_serve();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_kernel_passes_and_is_counted),
        cmocka_unit_test(one_job_in_n_is_launched_again),
        cmocka_unit_test(poison_is_told_from_a_race),
        cmocka_unit_test(an_alarm_is_drawn_again),
        cmocka_unit_test(results_that_are_kept),
        cmocka_unit_test(dirt_of_every_launch_counts),
        cmocka_unit_test(bits_that_follow_the_batch),
        cmocka_unit_test(calls_that_fail),
        cmocka_unit_test(jobs_of_a_case_are_independent),
    };
    return cmocka_run_group_tests(tests, open_runner, close_runner);
}
