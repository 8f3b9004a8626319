/* The journal under threads: what a thread was told is written is on disk by then, threads share the waits for the disk, and
 * an fsync or a write that fails loses the lines of those that are told so, no others. fsync() is this file's own, and keeps
 * the book.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/at_test.h"
#include "verify/run/journal_file.h"

enum { THREADS = 16, STEPS = 25, DISK_MICROSECONDS = 1500 };

static char folder[64], path[128];
static atomic_llong durable; /* bytes the file had when an fsync began that has succeeded */
static atomic_int syncs, at_work, overlapped, fails_at;

int fsync(int fd) {
    struct stat info = { 0 };
    const int number = atomic_fetch_add(&syncs, 1) + 1;
    if (atomic_fetch_add(&at_work, 1))
        overlapped = 1;
    const int failed = fstat(fd, &info) != 0 || number == fails_at;
    usleep(DISK_MICROSECONDS);
    if (!failed)
        durable = info.st_size;
    atomic_fetch_sub(&at_work, 1);
    errno = EIO;
    return failed ? -1 : 0;
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/at_journal_threads_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/x.jsonl", folder);
    syncs = fails_at = overlapped = 0;
    durable = 0;
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static char *file_text(void) {
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (file && text)
        (void)!fread(text, 1, (1 << 20) - 1, file);
    if (file)
        fclose(file);
    return text;
}

/* What thread t saw of its step i. */
struct step {
    at_status status;
    int was_durable;
};
static struct step steps[THREADS][STEPS];
static struct at_journal *journal;

static void entry(char *text, size_t size, int thread, int step) {
    snprintf(text, size, "{\"thread\":%d,\"step\":%d}", thread, step);
}

static void *append_all(void *context) {
    struct step(*mine)[STEPS] = context;
    const int t = (int)(mine - steps);
    for (int i = 0; i < STEPS; i++) {
        char text[64];
        const char *const entries[] = { text };
        entry(text, sizeof text, t, i);
        steps[t][i].status = at_journal_file_append(journal, entries, 1);
        const long long on_disk = durable; /* before the look at the file, which others lengthen */
        char *file = file_text(), *at = file ? strstr(file, text) : NULL;
        steps[t][i].was_durable = at && at - file + (long long)strlen(text) + 3 <= on_disk; /* and "]}\n" */
        free(file);
    }
    return NULL;
}

static void run_threads(void) {
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, append_all, &steps[t]), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

static at_status take_none(void *context, const char *where, const json_t *json) {
    (void)where, (void)json;
    ++*(int *)context;
    return AT_OK;
}

/* The file holds each line that was said to be written, once, whole, on disk when it was said; none of the others. */
static int assert_file(void) {
    int written = 0, read = 0, finished = 1;
    char *request, *provenance, shard[32], *file = file_text();
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < STEPS; i++) {
            char text[64];
            entry(text, sizeof text, t, i);
            const char *at = strstr(file, text);
            at_assert_true((at != NULL) == (steps[t][i].status == AT_OK), "thread %d, step %d: %s, %s in the file", t,
                           i, at_status_name(steps[t][i].status), at ? "but" : "not");
            at_assert_true(!at || steps[t][i].was_durable, "thread %d, step %d was told before the disk had it", t, i);
            assert_true(!at || !strstr(at + 1, text));
            written += at != NULL;
        }
    free(file);
    const struct at_journal_content content = { .name = "steps", .context = &read, .take = take_none };
    at_assert_ok(at_journal_file_read(path, &content, &request, &provenance, shard, &finished));
    free(request);
    free(provenance);
    assert_int_equal(read, written);
    assert_int_equal(finished, 0);
    assert_int_equal(overlapped, 0);
    return written;
}

static void forget(void *context) { (void)context; }

static void open_journal(void) {
    const struct at_journal_head head = { 0 };
    const struct at_journal_content content = { .name = "steps", .forget = forget };
    memset(steps, 0, sizeof steps);
    at_assert_ok(at_journal_file_open(path, &head, 0, &content, &journal));
}

/* However busy the machine: a thread that finds an fsync at work joins the next with all others that come meanwhile. */
static void test_waits_are_shared(void **state) {
    (void)state;
    open_journal();
    run_threads();
    assert_int_equal(assert_file(), THREADS * STEPS);
    assert_int_equal(at_journal_lines(journal), THREADS * STEPS);
    at_assert_true(syncs < THREADS * STEPS / 2, "%d fsyncs for %d steps of %d threads", (int)syncs, THREADS * STEPS,
                   THREADS);
    at_journal_abandon(journal);
}

static void test_fsync_fails(void **state) {
    (void)state;
    fails_at = 20;
    open_journal();
    run_threads();
    const int written = assert_file();
    at_assert_true(written < THREADS * STEPS && written >= THREADS * (STEPS - 2), "%d of %d steps", written,
                   THREADS * STEPS);
    assert_int_equal(at_journal_lines(journal), written);
    at_journal_abandon(journal);
}

/* The disk is full in the middle of a line of some thread. */
static void test_full_disk(void **state) {
    struct rlimit old, small;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 9999;
    open_journal();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    run_threads();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    const int written = assert_file();
    at_assert_true(written > 100 && written < THREADS * STEPS, "%d of %d steps", written, THREADS * STEPS);
    assert_int_equal(at_journal_lines(journal), written);
    at_journal_abandon(journal);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_folder(test_waits_are_shared),
        with_folder(test_fsync_fails),
        with_folder(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
