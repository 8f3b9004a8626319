/* What variants take, asked one by one, of all at once and from what was answered before: the same, of a problem with its
 * values and of its outline.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <unistd.h>

#include "attest/buffer.h"
#include "datasets/language/case.h"
#include "verify/design/design_asked.h"
#include "verify/runner/launch.h"

static const char *const lines[] = {
    "asynct_decode b=2 h=4 hk=2 sk=40/7 d=64 page=16 dtype=bf16",
    "asynct_decode b=2 h=4 hk=2 sk=40/7 d=64 page=16 dtype=f16",
    "asynct_decode b=2 h=4 hk=2 sk=40/7 d=64 page=16 dtype=f16 data=heavy_tail seed=3",
    "asynct_decode b=2 h=4 hk=2 sk=40/7 d=40 page=0 dtype=f32 taps=0.5:-0.25",
    "asynct_decode b=1 h=1 hk=1 sk=0 d=1 page=0 dtype=bf16",
    "asynct_decode b=1 h=16 hk=1 sk=300 d=128 page=3 dtype=f16 sigma=1.5",
};
enum { LINES = sizeof lines / sizeof *lines };

static struct at_runner *runner;
static int variants[64], n_variants;

static uint64_t one_by_one(const struct at_problem *problem) {
    uint64_t all = 0;
    for (int i = 0; i < n_variants; i++) {
        int takes;
        at_assert_ok(at_ask(runner, variants[i], problem, &takes));
        all |= (uint64_t)takes << i;
    }
    return all;
}

/* Of a runner of its own, which has not run the family before; skipped where attest-cpu is not built. */
static int open_runner(void **state) {
    char spec[4200];
    (void)state;
    snprintf(spec, sizeof spec, "%s/attest-cpu", getenv("BUILD") ? getenv("BUILD") : "build");
    if (access(spec, X_OK) != 0)
        return 0;
    at_assert_ok(at_runner_open(spec, &runner));
    for (int i = 0; i < at_runner_variant_count(runner) && n_variants < 64; i++)
        if (strcmp(at_runner_variant(runner, i)->family, "asynct_decode") == 0)
            variants[n_variants++] = i;
    return 0;
}

static int close_runner(void **state) {
    (void)state;
    at_runner_close(runner);
    return 0;
}

static void test_all_at_once(void **state) {
    (void)state;
    if (!runner) {
        print_message("attest-cpu is not built\n");
        skip();
    }
    assert_true(n_variants > 16); /* several times as many as are asked ahead of the replies */
    struct at_asked asked = { 0 };
    uint64_t of_any = 0, of_all = ~(uint64_t)0;
    for (int turn = 0; turn < 2; turn++) /* the second time out of the table */
        for (int i = 0; i < LINES; i++) {
            struct at_case_list list = { 0 };
            struct at_case_data data, outline;
            uint64_t at_once, again;
            at_assert_ok(at_case_parse(lines[i], "line", "test", &list));
            at_assert_ok(at_case_build(&list.items[0], &data));
            at_assert_ok(at_case_outline(&list.items[0], &outline));
            at_assert_ok(outline.problem.op->check(&outline.problem));
            const uint64_t want = one_by_one(&data.problem);
            at_assert_ok(at_ask_all(runner, variants, n_variants, &data.problem, &at_once));
            at_assert_true(at_once == want, "%s: %llx, wanted %llx", lines[i], (unsigned long long)at_once,
                           (unsigned long long)want);
            at_assert_ok(at_asked_takes(&asked, runner, variants, n_variants, &outline.problem, &again));
            at_assert_true(again == want, "%s: %llx, wanted %llx", lines[i], (unsigned long long)again,
                           (unsigned long long)want);
            of_any |= want;
            of_all &= want;
            at_case_data_release(&data);
            at_case_data_release(&outline);
            at_case_list_release(&list);
        }
    assert_int_equal(asked.n, LINES - 1); /* values are no part of the question */
    assert_true(of_any != of_all);        /* they differ in what they take */
    at_asked_release(&asked);
}

/* More problems than the table begins with: none is lost, none taken for another. */
static void test_table_grows(void **state) {
    (void)state;
    if (!runner)
        skip();
    enum { MANY = 700 };
    struct at_asked asked = { 0 };
    uint64_t first[MANY];
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < MANY; i++) {
            char line[128];
            struct at_case_list list = { 0 };
            struct at_case_data data;
            uint64_t takes;
            snprintf(line, sizeof line, "asynct_decode b=1 h=1 hk=1 sk=%d d=%d dtype=bf16", 1 + i / 2, i % 2 ? 64 : 5);
            at_assert_ok(at_case_parse(line, "line", "test", &list));
            at_assert_ok(at_case_outline(&list.items[0], &data));
            at_assert_ok(at_asked_takes(&asked, runner, variants, n_variants, &data.problem, &takes));
            if (turn == 0)
                first[i] = takes;
            assert_true(takes == first[i]);
            at_case_data_release(&data);
            at_case_list_release(&list);
        }
    assert_int_equal(asked.n, MANY);
    assert_true(first[0] != first[1]);
    at_asked_release(&asked);
}

/* A runner from before a parameter does not know it, and would say that it takes the rest of the problem. */
static void test_younger_parameter(void **state) {
    (void)state;
    static const char *const problems[] = { "softmax_decode b=1 h=2 hk=1 sk=9 d=16 dtype=f16",
                                            "softmax_decode b=1 h=2 hk=1 sk=9 d=16 dtype=f16 softcap=2" };
    char spec[4300];
    struct at_runner *older;
    uint64_t takes[2];
    int of_family[64], n = 0;
    if (!runner)
        skip();
    snprintf(spec, sizeof spec, "%s/attest-cpu | sed -u 's/ takes=[^ ]*//'",
             getenv("BUILD") ? getenv("BUILD") : "build");
    at_assert_ok(at_runner_open(spec, &older));
    for (int i = 0; i < at_runner_variant_count(older) && n < 64; i++)
        if (strcmp(at_runner_variant(older, i)->family, "softmax_decode") == 0)
            of_family[n++] = i;
    for (int p = 0; p < 2; p++) {
        struct at_case_list list = { 0 };
        struct at_case_data data;
        at_assert_ok(at_case_parse(problems[p], "line", "test", &list));
        at_assert_ok(at_case_build(&list.items[0], &data));
        at_assert_ok(at_ask_all(older, of_family, n, &data.problem, &takes[p]));
        at_case_data_release(&data);
        at_case_list_release(&list);
    }
    assert_true(takes[0] != 0);
    assert_true(takes[1] == 0);
    at_runner_close(older);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_at_once), cmocka_unit_test(test_table_grows),
                                        cmocka_unit_test(test_younger_parameter) };
    return cmocka_run_group_tests(tests, open_runner, close_runner);
}
