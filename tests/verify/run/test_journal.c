/* The journal: resume after a kill, torn lines, full disks, foreign files.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/at_test.h"
#include "tests/support/sample_record.h"
#include "verify/run/journal.h"

static char folder[64], path[128];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/at_journal_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/run.h5.jsonl", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static long size_of(const char *file) {
    struct stat info;
    return stat(file, &info) == 0 ? (long)info.st_size : -1;
}

static void append_text(const char *text, size_t n) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    close(fd);
}

/* Appends results [from, to) of the sample, two a job. */
static void append(struct at_journal *journal, int from, int to) {
    struct at_result pair[2];
    for (int i = from; i < to; i += 2) {
        at_sample_result(&pair[0], i);
        at_sample_result(&pair[1], i + 1);
        at_assert_ok(at_journal_append(journal, pair, 2));
    }
}

/* Equal but for what JSON leaves out; the sample has been through at_run_record_add. */
/* The results; those of a resumed run have no request of their own. */
static void assert_sample(const struct at_run_record *record, int n) {
    struct at_run_record want;
    assert_true(at_sample_record(&want, n));
    assert_int_equal(record->n, n);
    for (int i = 0; i < n; i++) {
        char *a = NULL, *b = NULL;
        at_assert_ok(at_result_to_json(&record->results[i], &a));
        at_assert_ok(at_result_to_json(&want.results[i], &b));
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    at_run_record_release(&want);
}

static void assert_read(int n, int want_finished, const char *want_shard) {
    struct at_run_record got;
    char shard[32];
    int finished = -1;
    at_assert_ok(at_journal_read(path, &got, shard, &finished));
    assert_sample(&got, n);
    struct at_run_record want;
    assert_true(at_sample_record(&want, 0));
    assert_string_equal(got.request, want.request);
    assert_string_equal(got.provenance, want.provenance);
    at_run_record_release(&want);
    assert_int_equal(finished, want_finished);
    assert_string_equal(shard, want_shard);
    at_run_record_release(&got);
}

static void test_whole_run(void **state) {
    (void)state;
    struct at_run_record record, done;
    struct at_journal *journal;
    assert_true(at_sample_record(&record, 0));
    at_assert_ok(at_journal_open(path, &record, 0, &done, &journal));
    assert_int_equal(done.n, 0);
    assert_read(0, 0, "");
    append(journal, 0, 12);
    assert_read(12, 0, "");
    at_assert_ok(at_journal_finish(journal, "1/4"));
    assert_read(12, 1, "1/4");
    /* the run ended: a new one may take the file */
    at_assert_ok(at_journal_open(path, &record, 0, &done, &journal));
    append(journal, 0, 2);
    at_journal_abandon(journal);
    assert_read(2, 0, "");
    at_run_record_release(&record);
}

/* A process that is killed between and within its writes; whatever it said was done is there. */
static void test_kill_and_resume(void **state) {
    (void)state;
    struct at_run_record record, done;
    struct at_journal *journal;
    int told[2];
    assert_true(at_sample_record(&record, 0));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(pipe(told), 0);
        pid_t child = fork();
        if (child == 0) {
            struct at_result pair[2];
            if (at_journal_open(path, &record, 0, &done, &journal) != AT_OK)
                _exit(1);
            for (int i = 0;; i += 2) {
                at_sample_result(&pair[0], i);
                at_sample_result(&pair[1], i + 1);
                char n = (char)(i / 2 + 1);
                if (at_journal_append(journal, pair, 2) != AT_OK || write(told[1], &n, 1) != 1)
                    _exit(2);
            }
        }
        close(told[1]);
        char jobs = 0, next;
        while (jobs < 5 + round && read(told[0], &next, 1) == 1)
            jobs = next;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(told[0], &next, 1) == 1)
            jobs = next;
        close(told[0]);
        assert_true(jobs >= 5);
        append_text("{\"event\":\"results\",\"results\":[{\"batch", 35); /* as if the last write was cut */
        at_assert_fails(at_journal_open(path, &record, 0, &done, &journal), AT_USAGE, "--resume");
        at_assert_ok(at_journal_open(path, &record, 1, &done, &journal));
        at_assert_true(done.n >= 2 * jobs, "%d jobs were told, %d results are there", jobs, (int)done.n);
        int kept = (int)done.n;
        assert_sample(&done, kept);
        at_run_record_release(&done);
        append(journal, kept, kept + 4);
        at_assert_ok(at_journal_finish(journal, ""));
        assert_read(kept + 4, 1, "");
        assert_int_equal(unlink(path), 0);
    }
    at_run_record_release(&record);
}

/* Cut at every byte of the file, a journal gives the whole jobs before the cut. */
static void test_torn_anywhere(void **state) {
    (void)state;
    struct at_run_record record, done, got;
    struct at_journal *journal;
    char shard[32];
    int finished;
    long ends[4];
    assert_true(at_sample_record(&record, 0));
    at_assert_ok(at_journal_open(path, &record, 0, &done, &journal));
    ends[0] = size_of(path);
    for (int i = 1; i < 4; i++) {
        append(journal, 2 * i - 2, 2 * i);
        ends[i] = size_of(path);
    }
    at_journal_abandon(journal);
    for (long cut = ends[3]; cut >= 0; cut -= cut > ends[0] ? 61 : 1) {
        assert_int_equal(truncate(path, cut), 0);
        if (cut < ends[0]) {
            at_assert_fails(at_journal_read(path, &got, shard, &finished), AT_USAGE, path);
            continue;
        }
        int whole = cut >= ends[3] ? 6 : cut >= ends[2] ? 4 : cut >= ends[1] ? 2 : 0;
        assert_read(whole, 0, "");
    }
    /* what is left of a first line belongs to nobody */
    at_assert_ok(at_journal_open(path, &record, 0, &done, &journal));
    at_journal_abandon(journal);
    at_run_record_release(&record);
}

static void test_resume_needs_the_same_request(void **state) {
    (void)state;
    struct at_run_record record, done;
    struct at_journal *journal;
    assert_true(at_sample_record(&record, 0));
    at_assert_ok(at_journal_open(path, &record, 0, &done, &journal));
    append(journal, 0, 2);
    at_journal_abandon(journal);
    long before = size_of(path);
    free(record.request);
    record.request = strdup("{\"cases\":\"smoke:*\",\"cases_hash\":\"0123456789abcdef\",\"seed\":2}");
    at_assert_fails(at_journal_open(path, &record, 1, &done, &journal), AT_USAGE, "seed: 2 here, 1 there");
    free(record.request);
    record.request = strdup("{\"cases\":\"smoke:*\",\"cases_hash\":\"0123456789abcdef\",\"reruns\":3,\"seed\":1}");
    at_assert_fails(at_journal_open(path, &record, 1, &done, &journal), AT_USAGE, "reruns: 3 here, missing there");
    free(record.request);
    record.request = strdup("{\"seed\":1,\"cases_hash\":\"0123456789abcdef\",\"cases\":\"smoke:*\"}");
    free(record.provenance);
    record.provenance = strdup("{\"blas\":\"OpenBLAS 0.3.21\",\"commit\":\"abc\",\"environment\":{\"denormals\":false},"
                               "\"version\":\"1.0.0\"}");
    at_assert_fails(at_journal_open(path, &record, 1, &done, &journal), AT_USAGE,
                    "environment.denormals: false here, true there");
    assert_int_equal(size_of(path), before);
    at_run_record_release(&record);
}

/* A finished run resumed has all results done, and may go on. */
static void test_resume_after_the_end(void **state) {
    (void)state;
    struct at_run_record record, done;
    struct at_journal *journal;
    assert_true(at_sample_record(&record, 0));
    at_assert_ok(at_journal_open(path, &record, 1, &done, &journal)); /* nothing there yet */
    append(journal, 0, 4);
    at_assert_ok(at_journal_finish(journal, NULL));
    at_assert_ok(at_journal_open(path, &record, 1, &done, &journal));
    assert_sample(&done, 4);
    at_run_record_release(&done);
    append(journal, 4, 6);
    at_assert_ok(at_journal_finish(journal, "2/2"));
    assert_read(6, 1, "2/2");
    at_run_record_release(&record);
}

static void test_foreign_and_damaged_files(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "# shopping list\n", ":1: wanted the start of a journal" },
        { "shopping", ":1: wanted the start of a journal" },
        { "{\"a\":1}\n", ":1: wanted the start of a journal" },
        { "{\"event\":\"start\",\"format\":1,\"provenance\":\"{}\"}\n", "with its request" },
        { "{\"event\":\"start\",\"format\":2,\"provenance\":\"{}\",\"request\":\"{}\"}\n", "journal format 2" },
        { "{\"event\":\"start\",\"format\":1,\"provenance\":\"{}\",\"request\":\"{}\"}\nnoise\n{}\n",
          ":2: wanted a line of JSON" },
        { "{\"event\":\"start\",\"format\":1,\"provenance\":\"{}\",\"request\":\"{}\"}\n{\"event\":\"nap\"}\n",
          ":2: wanted \"event\"" },
        { "{\"event\":\"start\",\"format\":1,\"provenance\":\"{}\",\"request\":\"{}\"}\n{\"event\":\"results\"}\n",
          "an array" },
        { "{\"event\":\"start\",\"format\":1,\"provenance\":\"{}\",\"request\":\"{}\"}\n{\"event\":\"results\","
          "\"results\":[{}]}\n",
          ":2: key" },
        { "{\"event\":\"start\",\"format\":1,\"provenance\":\"{}\",\"request\":\"{}\"}\n{\"event\":\"end\",\"n\":1,"
          "\"shard\":\"\"}\n",
          "number of entries" },
        { "{\"event\":\"start\",\"format\":1,\"provenance\":\"{}\",\"request\":\"{}\"}\n{\"event\":\"end\",\"n\":0}\n",
          "\"shard\"" },
        { "{\"event\":\"start\",\"format\":1,\"provenance\":\"{}\",\"request\":\"{}\"}\n{\"event\":\"end\",\"n\":0,"
          "\"shard\":\"\"}\n{}\n",
          "nothing after the end" },
    };
    struct at_run_record record, done;
    struct at_journal *journal;
    char shard[32];
    int finished;
    assert_true(at_sample_record(&record, 0));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        append_text(bad[i].text, strlen(bad[i].text));
        at_status want = strstr(bad[i].says, "format 2") ? AT_UNSUPPORTED : AT_USAGE;
        at_assert_fails(at_journal_read(path, &done, shard, &finished), want, bad[i].says);
        at_assert_fails(at_journal_open(path, &record, 0, &done, &journal), want, bad[i].says);
        assert_int_equal(size_of(path), (long)strlen(bad[i].text)); /* untouched */
        assert_int_equal(unlink(path), 0);
    }
    at_assert_fails(at_journal_read(path, &done, shard, &finished), AT_NOT_FOUND, path);
    at_assert_fails(at_journal_open("/dev/full", &record, 0, &done, &journal), AT_USAGE, "/dev/full");
    at_assert_fails(at_journal_open("/nowhere/x.jsonl", &record, 0, &done, &journal), AT_IO, "/nowhere/x.jsonl");
    at_run_record_release(&record);
}

/* One writer at a time. */
static void test_lock(void **state) {
    (void)state;
    struct at_run_record record, done;
    struct at_journal *first, *second;
    assert_true(at_sample_record(&record, 0));
    at_assert_ok(at_journal_open(path, &record, 0, &done, &first));
    at_assert_fails(at_journal_open(path, &record, 1, &done, &second), AT_IO, "another process");
    at_journal_abandon(first);
    at_assert_ok(at_journal_open(path, &record, 1, &done, &second));
    at_journal_abandon(second);
    at_run_record_release(&done);
    at_run_record_release(&record);
}

/* The disk is full in the middle of a line: AT_IO, one line, the file as it was before, and it can go on. */
static void test_full_disk(void **state) {
    (void)state;
    struct at_run_record record, done;
    struct at_journal *journal;
    struct rlimit old, small;
    struct at_result pair[2];
    assert_true(at_sample_record(&record, 0));
    signal(SIGXFSZ, SIG_IGN);
    at_assert_ok(at_journal_open(path, &record, 0, &done, &journal));
    append(journal, 0, 4);
    long before = size_of(path);
    at_sample_result(&pair[0], 4);
    at_sample_result(&pair[1], 5);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = (rlim_t)before + 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    at_status status = at_journal_append(journal, pair, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, AT_IO);
    at_assert_true(strstr(at_error_message(), path), "no path in \"%s\"", at_error_message());
    assert_null(strchr(at_error_message(), '\n'));
    assert_int_equal(size_of(path), before);
    assert_read(4, 0, "");
    at_assert_ok(at_journal_append(journal, pair, 2));
    at_assert_ok(at_journal_finish(journal, ""));
    assert_read(6, 1, "");
    at_run_record_release(&record);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_folder(test_whole_run),
        with_folder(test_kill_and_resume),
        with_folder(test_torn_anywhere),
        with_folder(test_resume_needs_the_same_request),
        with_folder(test_resume_after_the_end),
        with_folder(test_foreign_and_damaged_files),
        with_folder(test_lock),
        with_folder(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
