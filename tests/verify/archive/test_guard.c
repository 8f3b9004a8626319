/* The process that reads what may be damaged: what it dies of, which limits end it, what passes unseen, and what it leaves.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/at_test.h"
#include "tests/support/reader_files.h"
#include "verify/archive/guard.h"
#include "verify/result/atomic_file.h"

static const char *file; /* of 1 KB */

static int make_file(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    for (int i = 0; i < 1024; i++)
        at_bytes_add(&bytes, "x", 1);
    file = at_temp_file("a.h5", &bytes);
    at_bytes_release(&bytes);
    return 0;
}

static volatile int turning = 1;

static at_status nothing(void *context) {
    (void)context;
    return AT_OK;
}
static at_status refuses(void *context) {
    (void)context;
    return AT_FAIL(AT_USAGE, "no good");
}
static at_status dies_of(void *context) {
    at_guard_begin(file);
    raise(*(const int *)context);
    return AT_OK;
}
static at_status never_ends(void *context) {
    const struct rlimit ours = { 20, 20 }; /* so that a limit that is not set holds up nobody */
    (void)context;
    setrlimit(RLIMIT_CPU, &ours);
    at_guard_begin(file);
    while (turning)
        ;
    return AT_OK;
}
/* Address space, as the library asks for where a size is a lie: 256 MB at a time, to 8 GB. Ends with a fault when it got it
 * all. */
static at_status takes_memory(void *context) {
    (void)context;
    at_guard_begin(file);
    for (int i = 0; i < 32; i++)
        if (mmap(NULL, (size_t)256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
            MAP_FAILED)
            return AT_OK;
    raise(SIGSEGV);
    return AT_OK;
}
/* A sanitizer maps terabytes for its shadow before anything begins. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const rlim_t memory_most = RLIM_INFINITY - 1;
#else
static const rlim_t memory_most = (rlim_t)8 << 30;
#endif

/* Limits are put back at the outer end, and hold from the outer begin on. */
static at_status nests(void *context) {
    struct rlimit before, inside, after, memory_before, memory, memory_after;
    (void)context;
    getrlimit(RLIMIT_CPU, &before);
    getrlimit(RLIMIT_AS, &memory_before);
    at_guard_begin(file);
    at_guard_begin(file);
    at_guard_end();
    getrlimit(RLIMIT_CPU, &inside);
    getrlimit(RLIMIT_AS, &memory);
    at_guard_end();
    getrlimit(RLIMIT_CPU, &after);
    getrlimit(RLIMIT_AS, &memory_after);
    if (inside.rlim_cur > 60 || after.rlim_cur != before.rlim_cur || memory.rlim_cur > memory_most ||
        memory_after.rlim_cur != memory_before.rlim_cur)
        raise(SIGSEGV);
    return AT_OK;
}

static double processor_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void test_probe(void **state) {
    (void)state;
    static int faults[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
    at_assert_ok(at_guard_probe(file, nothing, NULL));
    at_assert_ok(at_guard_probe(file, refuses, NULL)); /* the caller finds out by itself */
    at_assert_ok(at_guard_probe(file, nests, NULL));
    at_assert_ok(at_guard_probe(file, takes_memory, NULL));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        at_assert_fails(at_guard_probe(file, dies_of, &faults[i]), AT_USAGE, "the HDF5 library died reading it");
        assert_non_null(strstr(at_error_message(), strsignal(faults[i])));
        assert_non_null(strstr(at_error_message(), file));
    }
    faults[0] = SIGTERM;
    at_assert_fails(at_guard_probe(file, dies_of, &faults[0]), AT_IO, "was interrupted");
}

static void test_late(void **state) {
    (void)state;
    const double before = processor_seconds();
    at_assert_fails(at_guard_probe(file, never_ends, NULL), AT_USAGE, "does not come to an end");
    const double took = processor_seconds() - before;
    at_assert_true(took >= 1.5 && took <= 5, "took %g s of processor time", took);
}

/* ---- a whole command ---- */

/* at_guard_split() in a process of its own, whose child does `work`: its exit code, 100 + s when signal s ended it. */
static int split(at_status (*work)(void *context), void *context, int child_code) {
    int wait_status = 0;
    fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        int ended, code;
        at_status status = at_guard_split(&ended, &code);
        if (status == AT_OK && !ended) {
            (void)work(context);
            at_guard_leave(child_code);
        }
        if (status != AT_OK)
            fprintf(stderr, "%s\n", at_error_message());
        at_guard_leave(status == AT_OK ? code : at_status_exit_code(status));
    }
    assert_true(process > 0 && waitpid(process, &wait_status, 0) == process);
    return WIFSIGNALED(wait_status) ? 100 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static at_status dies_outside(void *context) {
    at_guard_begin(file);
    at_guard_end();
    raise(*(const int *)context);
    return AT_OK;
}

static void test_split(void **state) {
    (void)state;
    int aborted = SIGABRT /* which no sanitizer handles */, terminated = SIGTERM, interrupted = SIGINT,
        broken_pipe = SIGPIPE, killed = SIGKILL;
    for (int code = 0; code < 5; code++)
        assert_int_equal(split(nothing, NULL, code), code);
    assert_int_equal(split(nests, NULL, 0), 0);
    assert_int_equal(split(dies_of, &aborted, 0), 2);
    assert_int_equal(split(dies_outside, &aborted, 0), 70); /* of attest's own doing */
    assert_int_equal(split(dies_of, &killed, 0), 3);
    assert_int_equal(split(dies_of, &terminated, 0), 100 + SIGTERM);
    assert_int_equal(split(dies_of, &interrupted, 0), 100 + SIGINT);
    assert_int_equal(split(dies_outside, &broken_pipe, 0), 100 + SIGPIPE);
    setenv("AT_GUARD", "off", 1);
    assert_int_equal(split(dies_of, &aborted, 0), 100 + SIGABRT);
    unsetenv("AT_GUARD");
}

/* Files in the making when it dies: gone; what was there before: as it was. */
static at_status dies_writing(void *context) {
    struct at_atomic_file made, kept;
    (void)context;
    if (at_atomic_open(at_temp_path("kept"), &kept) == AT_OK && at_atomic_commit(&kept) == AT_OK &&
        at_atomic_open(file, &made) == AT_OK) {
        fputs("half", made.stream);
        fflush(made.stream);
        at_guard_begin(file);
        raise(SIGABRT);
    }
    return AT_OK;
}

static void assert_swept(void) {
    char command[256];
    snprintf(command, sizeof command, "ls '%s'.*.tmp > /dev/null 2>&1", file);
    at_assert_true(system(command) != 0, "a half-written file stays behind");
}

static void test_half_written(void **state) {
    (void)state;
    char text[16] = "";
    assert_int_equal(split(dies_writing, NULL, 0), 2);
    assert_swept();
    assert_int_equal(access(at_temp_path("kept"), R_OK), 0);
    FILE *in = fopen(file, "rb");
    assert_non_null(in);
    assert_int_equal(fread(text, 1, 4, in), 4);
    fclose(in);
    assert_string_equal(text, "xxxx");
}

/* A signal that reaches the parent alone, as `kill` sends it, ends the child first: the parent cleans up behind it. */
static at_status tells_parent(void *context) {
    struct at_atomic_file made;
    (void)context;
    if (at_atomic_open(file, &made) == AT_OK)
        kill(getppid(), SIGTERM);
    while (turning)
        pause();
    return AT_OK;
}

static void test_forwarded(void **state) {
    (void)state;
    assert_int_equal(split(tells_parent, NULL, 0), 100 + SIGTERM);
    assert_swept();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe),        cmocka_unit_test(test_late),      cmocka_unit_test(test_split),
        cmocka_unit_test(test_half_written), cmocka_unit_test(test_forwarded),
    };
    return cmocka_run_group_tests(tests, make_file, NULL);
}
