/* The HDF5 reader and its child: limits, large tensors, and a child that sends what no child should.
 * SPDX-License-Identifier: Apache-2.0
 *
 * send() and poll() of libc are replaced, so that the child can lie and time can pass. */
#include "tests/at_test.h"

#include <errno.h>
#include <hdf5.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "datasets/readers/reader.h"
#include "tests/support/find_child.h"
#include "tests/support/reader_files.h"
#include "verify/archive/reader_hdf5.h"

static pid_t parent;
static int lie;        /* which of the child's messages is changed: 1 the first reply, 2 the list, 3 the next reply */
static size_t lie_at;  /* from where */
static uint8_t lie_as; /* to this byte, */
static size_t lie_n;   /* so many times */
static int interrupted, silent; /* interrupted: every other call of each kind */

ssize_t send(int fd, const void *bytes, size_t n, int flags) {
    static int sent, calls;
    static uint8_t changed[1 << 16];
    if (getpid() != parent && ++sent == lie && n <= sizeof changed && lie_at + lie_n <= n) {
        memcpy(changed, bytes, n);
        memset(changed + lie_at, lie_as, lie_n);
        bytes = changed;
    }
    if (interrupted && calls++ % 2) {
        errno = EINTR;
        return -1;
    }
    return sendto(fd, bytes, n, flags, NULL, 0);
}

int poll(struct pollfd *fds, nfds_t n, int milliseconds) {
    static int calls;
    if (silent && getpid() == parent)
        return 0;
    if (interrupted && calls++ % 2) {
        errno = EINTR;
        return -1;
    }
    return (int)syscall(SYS_poll, fds, n, milliseconds);
}

static const char *sample(void) {
    const char *path = at_temp_path("t.h5");
    at_make_hdf5(path);
    return path;
}

/* More than one message holds: the pieces meet without a gap. */
static void test_large_tensor(void **state) {
    (void)state;
    enum { N = 600000 };
    const char *path = at_temp_path("large.h5");
    const hsize_t n = N;
    double *values = malloc(N * sizeof *values), *got = malloc((N + 1) * sizeof *got);
    assert_true(values && got);
    for (int i = 0; i < N; i++)
        values[i] = i;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate_simple(1, &n, NULL);
    hid_t set = H5Dcreate2(file, "q", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    struct at_reader *reader;
    got[N] = -1;
    at_assert_ok(at_reader_open(path, &reader));
    at_assert_ok(at_reader_read(reader, 0, 0, N, got));
    assert_memory_equal(got, values, N * sizeof *values);
    at_assert_same(got[N], -1);
    at_reader_close(reader);
    free(values);
    free(got);
}

static void test_signals_interrupt(void **state) {
    (void)state;
    struct at_reader *reader;
    double value;
    const char *path = sample();
    interrupted = 1;
    at_assert_ok(at_reader_open(path, &reader));
    at_assert_ok(at_reader_read_f64(reader, at_reader_find(reader, "i32"), 104, 1, &value));
    at_reader_close(reader);
    interrupted = 0;
    at_assert_same(value, at_sample_value(104));
}

/* The soft limit of the child, -1 when it has none. */
static long long limit_of(pid_t child, const char *name) {
    char path[64], line[256];
    long long limit = -1;
    snprintf(path, sizeof path, "/proc/%d/limits", (int)child);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%lld", &limit) != 1)
            limit = -1;
    fclose(in);
    return limit;
}

static void test_child_is_confined(void **state) {
    (void)state;
    struct at_reader *reader;
    struct rlimit core;
    assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
    struct rlimit most = { core.rlim_max, core.rlim_max }; /* what may be here, for the child to give up */
    assert_int_equal(setrlimit(RLIMIT_CORE, &most), 0);
    at_status status = at_reader_open(sample(), &reader);
    assert_int_equal(setrlimit(RLIMIT_CORE, &core), 0);
    at_assert_ok(status);
    pid_t child = at_find_child();
    assert_true(child > 0);
    assert_int_equal(limit_of(child, "Max core file size"), 0);
    /* Of memory and of time it is confined while it reads: tests/verify/archive/test_guard.c. */
    at_reader_close(reader);
}

/* Dead before it is asked: no SIGPIPE reaches this process. */
static void test_dead_before_the_request(void **state) {
    (void)state;
    struct at_reader *reader;
    siginfo_t info;
    double value;
    at_assert_ok(at_reader_open(sample(), &reader));
    int i = at_reader_find(reader, "i32");
    pid_t child = at_find_child();
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    at_assert_fails(at_reader_read_f64(reader, i, 0, 1, &value), AT_USAGE, "the HDF5 library died reading it (Killed)");
    at_reader_close(reader);
}

/* A child that hangs (stopped here) is given up and gone afterwards. */
static void test_silent_child(void **state) {
    (void)state;
    struct at_reader *reader;
    double value;
    at_assert_ok(at_reader_open(sample(), &reader));
    int i = at_reader_find(reader, "i32");
    assert_int_equal(kill(at_find_child(), SIGSTOP), 0);
    silent = 1;
    alarm(30);
    at_status status = at_reader_read_f64(reader, i, 0, 1, &value);
    silent = 0;
    alarm(0);
    assert_int_equal(status, AT_USAGE);
    at_assert_true(strstr(at_error_message(), "does not come back from it within"), "%s", at_error_message());
    at_assert_true(at_find_child() == 0, "the child is left behind");
    at_reader_close(reader);
}

#define FIELD(name) offsetof(struct at_file_tensor, name)

/* Of the replies: status, number of tensors, message; of the list: its first tensor, f64 [7 5 3] or what sorts first.
 */
static void test_lying_child(void **state) {
    (void)state;
    static const struct {
        int which;
        size_t at;
        uint8_t as;
        size_t n;
        const char *text;
    } lies[] = {
        { 1, 0, 0xff, 4, "answered with status -1" },
        { 1, 0, 0x7f, 4, "answered with status 2139062143" },
        { 1, 4, 0xff, 4, "a list of -1 datasets" },
        { 1, 6, 1, 1, "a list of 65551 datasets" },
        { 2, FIELD(name), 'x', sizeof(((struct at_file_tensor *)0)->name), "dataset 0 makes no sense" },
        { 2, FIELD(type_name), 'x', sizeof(((struct at_file_tensor *)0)->type_name), "dataset 0 makes no sense" },
        { 2, FIELD(rank), 9, 1, "dataset 0 makes no sense" },
        { 2, FIELD(rank), 0xff, 4, "dataset 0 makes no sense" },
        { 2, FIELD(format), 0x7f, 4, "dataset 0 makes no sense" },
        { 2, FIELD(count), 0xff, 8, "dataset 0 makes no sense" },
        { 2, FIELD(bytes), 0xff, 8, "dataset 0 makes no sense" },
        { 2, sizeof(struct at_file_tensor) + FIELD(bytes), 0x7f, 8, "dataset 1 makes no sense" },
    };
    const char *path = sample();
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct at_reader *reader = NULL;
        lie = lies[i].which;
        lie_at = lies[i].at;
        lie_as = lies[i].as;
        lie_n = lies[i].n;
        at_status status = at_reader_open(path, &reader);
        lie = 0;
        at_assert_true(status == AT_USAGE && !reader, "lie %zu: %s", i, at_status_name(status));
        at_assert_true(strstr(at_error_message(), lies[i].text), "lie %zu: %s", i, at_error_message());
        at_assert_true(at_find_child() == 0, "lie %zu: a child is left behind", i);
    }
}

/* A message without an end is cut, not read past. */
static void test_endless_message(void **state) {
    (void)state;
    struct at_reader *reader = NULL;
    lie = 1;
    lie_at = 0;
    lie_as = AT_USAGE;
    lie_n = 1;
    at_assert_fails(at_reader_open(sample(), &reader), AT_USAGE, "");
    lie_n = 0;
    struct at_bytes bytes = { 0 };
    at_bytes_add(&bytes, "\x89HDF\r\n\x1a\nthe rest is something else", 34);
    const char *path = at_temp_file("bad.h5", &bytes);
    lie_at = 8;
    lie_as = 'x';
    lie_n = 1024;
    at_assert_fails(at_reader_open(path, &reader), AT_USAGE, "xxxx");
    at_assert_true(strspn(at_error_message(), "x") == strlen(at_error_message()), "%s", at_error_message());
    lie = 0;
    at_bytes_release(&bytes);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the signature of every reader */
static at_status refuse(const char *path, void **handle, struct at_file_tensor **tensors, int *n) {
    (void)handle;
    (void)tensors;
    (void)n;
    return AT_FAIL(AT_USAGE, "%s: refused by the test", path);
}

/* A type of a name that is there takes its place. */
static void test_register_replaces(void **state) {
    (void)state;
    static const struct at_reader_type other = { .name = "hdf5", .magics = { "\x89HDF" }, .open = refuse };
    struct at_reader *reader;
    at_reader_register(&other);
    at_assert_fails(at_reader_open(sample(), &reader), AT_USAGE, "refused by the test");
    for (int i = 0; i < 100; i++)
        at_reader_hdf5_register();
    at_assert_ok(at_reader_open(sample(), &reader));
    at_reader_close(reader);
}

int main(void) {
    parent = getpid();
    at_reader_hdf5_register();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_tensor),      cmocka_unit_test(test_signals_interrupt),
        cmocka_unit_test(test_child_is_confined), cmocka_unit_test(test_dead_before_the_request),
        cmocka_unit_test(test_silent_child),      cmocka_unit_test(test_lying_child),
        cmocka_unit_test(test_endless_message),   cmocka_unit_test(test_register_replaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
