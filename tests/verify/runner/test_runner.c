/* The verifier's side of runners: right results, and every way a runner can go wrong.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started with --serve, this program is itself a runner of test kernels. */
#include "tests/at_test.h"

#include "attest/env.h"
#include "tests/support/runner_rig.h"
#include "verify/runner/runner.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char self[4096], self_serve[4200];

/* ---- helpers ---- */

static const char *build_dir(void) {
    const char *dir = getenv("BUILD");
    return dir ? dir : "build";
}

/* Debian's own when it is there: a version manager's stand-in takes longer to start than all the rest. */
static const char *interpreter(void) { return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3"; }

static int has_python(void) {
    char command[128];
    snprintf(command, sizeof command, "%s -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null",
             interpreter());
    return system(command) == 0;
}

/* Command line of the Python runner. */
static const char *python(const char *arguments) {
    static char command[512];
    snprintf(command, sizeof command, "exec %s -I -S tests/python/runner_client.py %s", interpreter(), arguments);
    return command;
}

#define NEED_PYTHON() \
    do { \
        if (!has_python()) { \
            print_message("python3 is missing: the foreign runner cannot be tried\n"); \
            skip(); \
        } \
    } while (0)

static void expect_answer(struct at_runner *runner, int variant, struct at_rig *rig) {
    struct at_run_reply reply;
    rig->o[0] = rig->o[1] = -1;
    at_assert_ok(at_runner_run(runner, variant, &rig->problem, rig->used, NULL, at_time_limit(20), &reply));
    at_assert_true(reply.outcome == AT_RAN, "outcome %d: %s", (int)reply.outcome, reply.reason);
    at_assert_same(rig->o[0], AT_RIG_O0);
    at_assert_same(rig->o[1], AT_RIG_O1);
    at_assert_true(reply.seconds >= 0, "%g seconds", reply.seconds);
}

/* Opens, runs the variant and expects the known answer; then again in a block grown to 1 MiB. */
static void expect_service(const char *spec, const char *family, const char *name) {
    struct at_runner *runner;
    struct at_rig rig;
    at_assert_ok(at_runner_open(spec, &runner));
    int variant = at_rig_find(runner, family, name);
    at_assert_true(variant >= 0, "%s has no %s/%s", spec, family, name);
    at_assert_ok(at_rig_place(runner, 0, &rig));
    expect_answer(runner, variant, &rig);
    at_assert_ok(at_rig_place(runner, 1 << 20, &rig));
    expect_answer(runner, variant, &rig);
    at_assert_true(at_runner_device(runner)[0] != '\0', "no device text");
    at_runner_close(runner);
}

/* A Python runner misbehaves in one job (fails as said), and the next job is served by a fresh child from
 * the block as it is. */
static void expect_misbehaviour(const char *arguments, at_status want, const char *part) {
    struct at_runner *runner;
    struct at_rig rig;
    struct at_run_reply reply;
    at_assert_ok(at_runner_open(python(arguments), &runner));
    at_assert_ok(at_rig_place(runner, 0, &rig));
    int bad = at_rig_find(runner, "asynct_decode", "99_misbehaves");
    at_assert_true(bad >= 0, "the runner does not offer to misbehave");
    const struct at_time_limit limit = want == AT_HUNG ? (struct at_time_limit){ 600, 0.5 } : at_time_limit(10);
    at_assert_fails(at_runner_run(runner, bad, &rig.problem, rig.used, NULL, limit, &reply), want, part);
    expect_answer(runner, at_rig_find(runner, "asynct_decode", "70_python"), &rig);
    at_runner_close(runner);
}

static int open_files(void) {
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* ---- right results ---- */

static void test_host_runner(void **state) {
    (void)state;
    char spec[4200];
    snprintf(spec, sizeof spec, "%s/attest-cpu", build_dir());
    if (access(spec, X_OK) != 0) {
        print_message("%s is not built\n", spec);
        skip();
    }
    expect_service(spec, "asynct_decode", "00_split_k");
    expect_service(spec, "asynct_prefill", "00_split_k");
    expect_service(spec, "asynct_decode", "00_blas_p32");
    /* "cpu" is attest-cpu beside the running program */
    char beside[4200], *target = realpath(spec, NULL);
    snprintf(beside, sizeof beside, "%s", self);
    snprintf(strrchr(beside, '/') + 1, 16, "attest-cpu");
    int linked = symlink(target, beside) == 0;
    expect_service("cpu", "asynct_decode", "00_split_k");
    if (linked)
        unlink(beside);
    free(target);
}

static void test_python_runner(void **state) {
    (void)state;
    NEED_PYTHON();
    expect_service(python(""), "asynct_decode", "70_python");
    expect_service(python("--transports memfd"), "asynct_decode", "70_python");
    expect_service(python("--transports inline"), "asynct_prefill", "70_python");
    /* descriptor 3 is not passed on: the runner must notice, refuse, and be served inline */
    char command[600];
    snprintf(command, sizeof command, "%s 3</dev/null", python(""));
    expect_service(command, "asynct_decode", "70_python");
    snprintf(command, sizeof command, "%s 3</dev/null", python("--transports memfd"));
    struct at_runner *runner;
    at_assert_fails(at_runner_open(command, &runner), AT_ENVIRONMENT, "no transport");
}

/* Descriptor 3 is another file of the announced size: only the nonce tells, and the job goes inline. */
static void test_other_memory(void **state) {
    (void)state;
    char path[] = "/tmp/at-test-runner-XXXXXX", spec[4400];
    int file = mkstemp(path);
    assert_true(file >= 0 && ftruncate(file, 1 << 16) == 0);
    snprintf(spec, sizeof spec, "%s 3<>%s", self_serve, path);
    expect_service(spec, "test", "00_test");
    assert_int_equal(lseek(file, 0, SEEK_END), 1 << 16);
    close(file);
    unlink(path);
}

/* ---- what the serving side does for kernels ---- */

static struct at_run_reply run_test_kernel(struct at_runner *runner, struct at_rig *rig, enum at_rig_kernel kernel) {
    struct at_run_reply reply;
    rig->o[0] = -1;
    const struct at_time_limit limit = { 10, 30 };
    at_assert_ok(at_runner_run(runner, (int)kernel, &rig->problem, rig->used, NULL, limit, &reply));
    return reply;
}

static void test_serving_side(void **state) {
    (void)state;
    struct at_runner *runner;
    struct at_rig rig;
    at_assert_ok(at_runner_open(self_serve, &runner));
    assert_string_equal(at_runner_device(runner), "a = b % c \"d\"\n\xc3\xa9");
    assert_int_equal(at_runner_variant_count(runner), AT_RIG_KERNELS);
    assert_string_equal(at_runner_variant(runner, 3)->source, "a test = 100 % ours");
    at_assert_ok(at_rig_place(runner, 0, &rig));
    expect_answer(runner, AT_RIG_GOOD, &rig);
    expect_answer(runner, AT_RIG_PRINTS, &rig);
    struct at_run_reply reply = run_test_kernel(runner, &rig, AT_RIG_REFUSES);
    assert_int_equal(reply.outcome, AT_RUN_UNSUPPORTED);
    assert_string_equal(reply.reason, "head size 2 is too small");
    reply = run_test_kernel(runner, &rig, AT_RIG_RETURNS_7);
    assert_int_equal(reply.outcome, AT_RUN_FAILED);
    assert_non_null(strstr(reply.reason, "error 7"));
    reply = run_test_kernel(runner, &rig, AT_RIG_OVERRUNS);
    assert_int_equal(reply.outcome, AT_RUN_FAILED);
    assert_non_null(strstr(reply.reason, "past the workspace"));
    reply = run_test_kernel(runner, &rig, AT_RIG_WANTS_TOO_MUCH);
    assert_int_equal(reply.outcome, AT_RUN_FAILED);
    assert_non_null(strstr(reply.reason, "memory"));
    reply = run_test_kernel(runner, &rig, AT_RIG_SEES_WORKSPACE);
    at_assert_same(rig.o[0], 1);
    reply = run_test_kernel(runner, &rig, AT_RIG_CUTS_MEMORY);
    at_assert_same(rig.o[0], 1);
    reply = run_test_kernel(runner, &rig, AT_RIG_SEES_ALARM);
    at_assert_within(rig.o[0], 35, 1);
    at_assert_fails(at_runner_run(runner, AT_RIG_ABORTS, &rig.problem, rig.used, NULL, at_time_limit(10), &reply),
                    AT_CRASHED, "signal 6");
    expect_answer(runner, AT_RIG_GOOD, &rig);
    at_assert_fails(at_runner_run(runner, AT_RIG_KERNELS, &rig.problem, rig.used, NULL, at_time_limit(10), &reply),
                    AT_BUG, "variant");
    at_runner_close(runner);
}

/* ---- wrong runners ---- */

static void test_deaths(void **state) {
    (void)state;
    NEED_PYTHON();
    expect_misbehaviour("--misbehave crash", AT_CRASHED, "signal 11");
    expect_misbehaviour("--misbehave crash --transports inline", AT_CRASHED, "about to touch address 0");
    expect_misbehaviour("--misbehave exit0", AT_CRASHED, "exit code 0");
    expect_misbehaviour("--misbehave close_output", AT_CRASHED, "killed");
}

static void test_hangs(void **state) {
    (void)state;
    NEED_PYTHON();
    expect_misbehaviour("--misbehave hang", AT_HUNG,
                        "no answer for 0.5 s by the clock, while running asynct_decode/99_");
    expect_misbehaviour("--misbehave half_line", AT_HUNG, "while running asynct_decode/99_misbehaves");
}

static void test_breaches(void **state) {
    (void)state;
    NEED_PYTHON();
    expect_misbehaviour("--misbehave garbage", AT_PROTOCOL, "printable ASCII");
    expect_misbehaviour("--misbehave nul", AT_PROTOCOL, "byte 0x00");
    expect_misbehaviour("--misbehave long_line", AT_PROTOCOL, "longer than");
    expect_misbehaviour("--misbehave wrong_id", AT_PROTOCOL, "reply to job 1");
    expect_misbehaviour("--misbehave bad_length", AT_PROTOCOL, "bytes=1 in a reply");
    expect_misbehaviour("--misbehave bad_length --transports inline", AT_PROTOCOL, "in a reply");
}

/* Words between jobs belong to no job: the child is replaced at once or before the next job. */
static void test_chatter(void **state) {
    (void)state;
    NEED_PYTHON();
    struct at_runner *runner;
    struct at_rig rig;
    struct at_run_reply reply;
    at_assert_ok(at_runner_open(python("--misbehave chatter"), &runner));
    at_assert_ok(at_rig_place(runner, 0, &rig));
    int bad = at_rig_find(runner, "asynct_decode", "99_misbehaves");
    at_status status = at_runner_run(runner, bad, &rig.problem, rig.used, NULL, at_time_limit(10), &reply);
    at_assert_true(status == AT_OK || status == AT_PROTOCOL, "%s", at_error_trail());
    usleep(100000);
    expect_answer(runner, at_rig_find(runner, "asynct_decode", "70_python"), &rig);
    at_runner_close(runner);
}

static void test_outcomes(void **state) {
    (void)state;
    NEED_PYTHON();
    static const struct {
        const char *arguments, *reason;
        enum at_run_outcome outcome;
        double o0;
    } rows[] = { { "--misbehave fails", "out of patience", AT_RUN_FAILED, -1 },
                 { "--misbehave unsupported", "not on a Friday", AT_RUN_UNSUPPORTED, -1 },
                 { "--misbehave wrong_result", "", AT_RAN, AT_RIG_O0 + 1 },
                 { "--misbehave wrong_result --transports inline", "", AT_RAN, AT_RIG_O0 + 1 },
                 { "--misbehave noise", "", AT_RAN, AT_RIG_O0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct at_runner *runner;
        struct at_rig rig;
        struct at_run_reply reply;
        at_assert_ok(at_runner_open(python(rows[i].arguments), &runner));
        at_assert_ok(at_rig_place(runner, 0, &rig));
        rig.o[0] = -1;
        int bad = at_rig_find(runner, "asynct_decode", "99_misbehaves");
        at_assert_ok(at_runner_run(runner, bad, &rig.problem, rig.used, NULL, at_time_limit(10), &reply));
        assert_int_equal(reply.outcome, rows[i].outcome);
        assert_string_equal(reply.reason, rows[i].reason);
        at_assert_same(rig.o[0], rows[i].o0);
        at_runner_close(runner);
    }
}

static void test_runners_that_cannot_serve(void **state) {
    (void)state;
    struct at_runner *runner;
    at_assert_fails(at_runner_open("", &runner), AT_USAGE, "wanted cpu, cuda");
    at_assert_fails(at_runner_open("cuda", &runner), AT_ENVIRONMENT, "make cuda");
    at_assert_fails(at_runner_open("/nonexistent/runner --fast", &runner), AT_ENVIRONMENT, "exit code 127");
    at_assert_fails(at_runner_open("echo oops >&2; exit 3", &runner), AT_ENVIRONMENT,
                    "exit code 3; its last words: oops");
    at_assert_true(runner == NULL, "a failed open must give no runner");
    setenv("AT_RUNNER_START_SECONDS", "0.1", 1);
    at_assert_fails(at_runner_open("sleep 3600", &runner), AT_ENVIRONMENT, "no answer for 0.3 s by the clock, before");
    unsetenv("AT_RUNNER_START_SECONDS");
    NEED_PYTHON();
    at_assert_fails(at_runner_open(python("--misbehave bad_hello"), &runner), AT_ENVIRONMENT, "wanted key=value");
    at_assert_fails(at_runner_open(python("--misbehave bad_numerics"), &runner), AT_ENVIRONMENT, "abacus");
    at_assert_fails(at_runner_open(python("--misbehave many_variants"), &runner), AT_ENVIRONMENT,
                    "variants=1000000000");
    at_assert_fails(at_runner_open(python("--misbehave old_protocol"), &runner), AT_ENVIRONMENT, "speaks protocol 0");
}

/* A runner in shell that goes away as soon as a job line has come, while a large block is still being sent:
 * writing to the broken pipe must not raise SIGPIPE here. */
static void test_broken_pipe(void **state) {
    (void)state;
    static const char spec[] = "echo hello protocol=5 name=sh device=sh transports=inline variants=1;"
                               "echo variant index=0 family=f name=n path=p sha256= summary=s source=s numerics=;"
                               "echo ready; read line; echo opened transport=inline; read line; exit 5";
    struct at_runner *runner;
    struct at_rig rig;
    struct at_run_reply reply;
    at_assert_ok(at_runner_open(spec, &runner));
    at_assert_ok(at_rig_place(runner, 8 << 20, &rig));
    at_assert_fails(at_runner_run(runner, 0, &rig.problem, rig.used, NULL, at_time_limit(10), &reply), AT_CRASHED,
                    "exit code 5");
    sigset_t pending;
    sigpending(&pending);
    at_assert_true(!sigismember(&pending, SIGPIPE), "a SIGPIPE is left pending");
    at_runner_close(runner);
}

/* Which clock ended a job, and which did not. The limits that are not to be reached are beyond any test's time. */
static void expect_hung(const char *spec, enum at_rig_kernel kernel, struct at_time_limit limit, const char *part) {
    struct at_runner *runner;
    struct at_rig rig;
    struct at_run_reply reply;
    at_assert_ok(at_runner_open(spec, &runner));
    at_assert_ok(at_rig_place(runner, 0, &rig));
    at_assert_fails(at_runner_run(runner, (int)kernel, &rig.problem, rig.used, NULL, limit, &reply), AT_HUNG, part);
    expect_answer(runner, AT_RIG_GOOD, &rig);
    at_runner_close(runner);
}

static void test_two_clocks(void **state) {
    (void)state;
    char below_a_shell[4300];
    snprintf(below_a_shell, sizeof below_a_shell, "'%s' --serve; true", self);
    const struct at_time_limit short_work = { 0.3, 3600 }, short_wait = { 3600, 0.3 };
    expect_hung(self_serve, AT_RIG_SPINS, short_work,
                "used up its 0.3 s of processor time, while running test/10_test");
    expect_hung(below_a_shell, AT_RIG_SPINS, short_work, "used up its 0.3 s of processor time");
    expect_hung(self_serve, AT_RIG_SLEEPS, short_wait, "gave no answer for 0.3 s by the clock");
    /* late by more than twice its limit, and without having used it */
    struct at_runner *runner;
    struct at_rig rig;
    struct at_run_reply reply;
    at_assert_ok(at_runner_open(self_serve, &runner));
    at_assert_ok(at_rig_place(runner, 0, &rig));
    const double start = at_seconds();
    at_assert_ok(at_runner_run(runner, AT_RIG_STARVES, &rig.problem, rig.used, NULL, short_work, &reply));
    at_assert_true(reply.outcome == AT_RAN && (at_seconds() - start) * 1e6 > AT_RIG_STARVED_US, "%s", reply.reason);
    at_runner_close(runner);
}

/* attest is killed without warning while a kernel hangs, long before the kernel's alarm. */
static void test_no_orphan_is_left(void **state) {
    (void)state;
    char note[] = "/tmp/at-test-runner-XXXXXX", command[8400];
    const int file = mkstemp(note);
    assert_true(file >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    snprintf(command, sizeof command, "echo $$ > %s; %s", note, self_serve);
    const pid_t attest = fork();
    if (attest == 0) {
        struct at_runner *runner;
        struct at_rig rig;
        struct at_run_reply reply;
        if (at_runner_open(command, &runner) == AT_OK && at_rig_place(runner, 0, &rig) == AT_OK)
            (void)at_runner_run(runner, AT_RIG_SPINS, &rig.problem, rig.used, NULL, at_time_limit(3600), &reply);
        _exit(1);
    }
    char text[32] = "";
    for (int i = 0; i < 6000 && !strchr(text, '\n'); i++) {
        usleep(10000);
        (void)!pread(file, text, sizeof text - 1, 0);
    }
    const pid_t runner = (pid_t)atol(text);
    at_assert_true(runner > 1, "no runner was started");
    for (int i = 0; i < 6000 && !(at_group_processor_seconds(runner) > 0.2); i++) /* it spins */
        usleep(10000);
    kill(attest, SIGKILL);
    assert_int_equal(waitpid(attest, NULL, 0), attest);
    int left = 1, how = 0;
    for (int i = 0; i < 6000 && left; i++) {
        usleep(10000);
        left = waitpid(runner, &how, WNOHANG) != runner;
    }
    if (left) {
        kill(runner, SIGKILL);
        waitpid(runner, NULL, 0);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(file);
    unlink(note);
    at_assert_true(!left && WIFEXITED(how), "the runner outlived attest by a minute");
}

static void test_time_limits(void **state) {
    (void)state;
    const struct at_time_limit limit = at_time_limit(10);
    at_assert_same(limit.processor, 10);
    at_assert_same(limit.wall, 100);
    /* of a group: what its processes use, and what the children had that they waited for */
    const double before = at_group_processor_seconds(getpgrp());
    at_assert_true(system("i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done") == 0, "no shell");
    const double of_child = at_group_processor_seconds(getpgrp()) - before;
    at_assert_true(of_child > 0.02, "%g s", of_child);
    for (const clock_t start = clock(); clock() - start < CLOCKS_PER_SEC / 10;)
        ;
    const double own = at_group_processor_seconds(getpgrp()) - before - of_child;
    at_assert_true(own > 0.05 && own < 1, "%g s", own);
    at_assert_same(at_group_processor_seconds(1 << 30), 0);
}

/* No descriptor and no zombie is left behind by any way out. */
static void test_nothing_is_left(void **state) {
    (void)state;
    int before = open_files();
    for (int i = 0; i < 5; i++) {
        struct at_runner *runner;
        struct at_rig rig;
        struct at_run_reply reply;
        at_assert_ok(at_runner_open(self_serve, &runner));
        at_assert_ok(at_rig_place(runner, 0, &rig));
        at_assert_fails(at_runner_run(runner, AT_RIG_ABORTS, &rig.problem, rig.used, NULL, at_time_limit(10), &reply),
                        AT_CRASHED, "signal 6");
        expect_answer(runner, AT_RIG_GOOD, &rig);
        at_runner_close(runner);
        at_assert_fails(at_runner_open("exit 1", &runner), AT_ENVIRONMENT, "exit code 1");
        at_assert_fails(at_runner_open("echo hello; sleep 3600 & wait", &runner), AT_ENVIRONMENT, "protocol");
    }
    assert_int_equal(open_files(), before);
    at_assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return at_rig_serve();
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        return 70;
    snprintf(self_serve, sizeof self_serve, "exec '%s' --serve", self);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_runner),     cmocka_unit_test(test_python_runner),
        cmocka_unit_test(test_serving_side),    cmocka_unit_test(test_other_memory),
        cmocka_unit_test(test_deaths),          cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_two_clocks),      cmocka_unit_test(test_no_orphan_is_left),
        cmocka_unit_test(test_time_limits),     cmocka_unit_test(test_breaches),
        cmocka_unit_test(test_chatter),         cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_broken_pipe),     cmocka_unit_test(test_runners_that_cannot_serve),
        cmocka_unit_test(test_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
