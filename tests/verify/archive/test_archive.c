/* The archive: read back equal, the same bytes twice, whole or not at all, old files.
 * SPDX-License-Identifier: Apache-2.0 */
#include <hdf5.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/archive_files.h"
#include "verify/report/reports.h"
#include "verify/result/result_heap.h"

static void test_round_trip(void **state) {
    (void)state;
    struct at_run_record want, got;
    static const int sizes[] = { 0, 1, 2, 26, 300 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_true(at_sample_record(&want, sizes[i]));
        at_assert_ok(at_archive_write(&want, path));
        FILE *reader = fopen(path, "rb"); /* another program reads it too: opened for reading only */
        assert_true(reader && flock(fileno(reader), LOCK_SH) == 0);
        at_assert_ok(at_archive_read(path, &got));
        fclose(reader);
        assert_equal_records(&got, &want);
        /* what was read writes the same file */
        at_assert_ok(at_archive_write(&got, other));
        assert_same_file(path, other);
        at_run_record_release(&want);
        at_run_record_release(&got);
    }
}

static void test_long_names_and_utf8(void **state) {
    (void)state;
    struct at_run_record want, got;
    assert_true(at_sample_record(&want, 2));
    struct at_result *r = &want.results[1];
    memset(r->case_id, 'x', sizeof r->case_id - 1);
    memset(r->repro, 'y', sizeof r->repro - 1);
    memset(r->variant, 'z', sizeof r->variant - 1);
    snprintf(r->cause, sizeof r->cause, "\xe6\xbc\xa2\xe5\xad\x97 \x01 \n \xf0\x9f\x98\x80");
    at_assert_ok(at_archive_write(&want, path));
    at_assert_ok(at_archive_read(path, &got));
    assert_equal_records(&got, &want);
    at_run_record_release(&want);
    at_run_record_release(&got);
}

/* Order of gathering, times of both kinds, and the bits of a NaN do not reach the file. */
static void test_same_bytes(void **state) {
    (void)state;
    struct at_run_record a = { 0 }, b = { 0 };
    assert_true(at_sample_record(&a, 26) && at_sample_record(&b, 26));
    at_assert_ok(at_archive_write(&a, path));
    sleep(1); /* a time anywhere in the file has changed */
    for (int64_t i = 0; i < b.n / 2; i++) {
        struct at_result swap = b.results[i];
        b.results[i] = b.results[b.n - 1 - i];
        b.results[b.n - 1 - i] = swap;
    }
    for (int64_t i = 0; i < b.n; i++) {
        b.results[i].seconds = 1e3 + (double)i;
        b.results[i].worst_model = -(double)NAN;
    }
    at_assert_ok(at_archive_write(&b, other));
    assert_same_file(path, other);
    b.results[3].err_max = nextafter(b.results[3].err_max, 1e300);
    at_assert_ok(at_archive_write(&b, other));
    size_t n, m;
    char *x = load(path, &n), *y = load(other, &m);
    assert_true(n != m || memcmp(x, y, n) != 0);
    free(x);
    free(y);
    at_run_record_release(&a);
    at_run_record_release(&b);
}

/* What `attest merge` does with the results of its shards. */
static at_status merge(struct at_run_record *shards, int n, const char *to) {
    struct at_result_heap heap = { .scratch.beside = to };
    at_status status = AT_OK;
    for (int s = 0; s < n && status == AT_OK; s++) {
        if (s > 0)
            status = at_run_record_same_run(&shards[0], &shards[s], s);
        for (int64_t i = 0; i < shards[s].n && status == AT_OK; i++)
            status = at_result_heap_add(&heap, &shards[s].results[i]);
    }
    if (status == AT_OK)
        status = at_result_heap_sort(&heap);
    const struct at_result_source source = { heap.n, at_result_heap_get, &heap };
    if (status == AT_OK)
        status = at_archive_write_from(&shards[0], &source, to);
    at_result_heap_release(&heap);
    return status;
}

/* A merge of shards is the run in one piece, to the byte. */
static void test_merge(void **state) {
    (void)state;
    struct at_run_record whole, shards[3], merged;
    struct at_result r;
    assert_true(at_sample_record(&whole, 26));
    for (int s = 0; s < 3; s++)
        assert_true(at_sample_record(&shards[s], 0));
    for (int i = 0; i < 26; i++) {
        at_sample_result(&r, i);
        at_assert_ok(at_run_record_add(&shards[(r.plan_index * 7) % 3], &r));
    }
    at_assert_ok(merge(shards, 3, other));
    at_assert_ok(at_archive_read(other, &merged));
    at_assert_ok(at_record_complete(&merged, 13));
    at_assert_fails(at_record_complete(&merged, 14), AT_USAGE, "plan position 13 of 14");
    at_assert_fails(at_record_complete(&merged, 12), AT_USAGE, "the plan has 12");
    at_assert_ok(at_archive_write(&whole, path));
    assert_same_file(path, other);
    at_run_record_release(&merged);

    at_assert_ok(merge(shards, 2, other));
    at_assert_ok(at_archive_read(other, &merged));
    at_assert_fails(at_record_complete(&merged, 13), AT_USAGE, "plan position");
    at_run_record_release(&merged);
    at_assert_ok(at_run_record_add(&shards[0], &whole.results[0]));
    at_assert_ok(at_run_record_add(&shards[1], &whole.results[0]));
    at_assert_fails(merge(shards, 3, other), AT_USAGE, "same result");
    free(shards[2].provenance);
    shards[2].provenance = strdup("{\"commit\":\"def\"}");
    at_assert_fails(merge(shards, 3, other), AT_USAGE, "shard 3 was made by another build");
    free(shards[2].request);
    shards[2].request = strdup("{\"cases\":\"smoke:*\",\"cases_hash\":\"0123456789abcdef\",\"seed\":9}");
    at_assert_fails(merge(shards, 3, other), AT_USAGE, "seed: 1 here, 9 there");
    for (int s = 0; s < 3; s++)
        at_run_record_release(&shards[s]);
    at_run_record_release(&whole);
}

/* A failed write leaves the archive that was there, one line of error, and no temporary (see remove_folder). */
static void test_full_disk(void **state) {
    (void)state;
    struct at_run_record record, got;
    struct rlimit old, small;
    assert_true(at_sample_record(&record, 26));
    at_assert_ok(at_archive_write(&record, path));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 50000;
    record.results[0].wrong = 12345;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    at_status status = at_archive_write(&record, path);
    at_status junit = at_report_write(AT_REPORT_junit, &record, 0, other);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, AT_IO);
    at_assert_true(junit == AT_OK || access(other, F_OK) != 0, "%s is half-written", other);
    assert_null(strchr(at_error_message(), '\n'));
    at_assert_ok(at_archive_read(path, &got));
    assert_int_equal(got.results[0].wrong, 0);
    at_run_record_release(&got);
    at_assert_fails(at_archive_write(&record, "/dev/full"), AT_IO, "/dev/full");
    assert_int_equal(access("/dev/full", F_OK), 0); /* written to, not replaced */
    at_assert_fails(at_archive_write(&record, "/nowhere/run.h5"), AT_IO, "/nowhere/run.h5");
    at_assert_fails(at_archive_write(&record, folder), AT_USAGE, "is a folder");
    at_assert_ok(at_archive_write(&record, path)); /* and it still can */
    at_run_record_release(&record);
}

/* A link stays a link: the file it points to is replaced. */
static void test_link(void **state) {
    (void)state;
    struct at_run_record record, got;
    struct stat info;
    assert_true(at_sample_record(&record, 2));
    store(path, "old", 3);
    assert_int_equal(symlink(path, other), 0);
    at_assert_ok(at_archive_write(&record, other));
    assert_int_equal(lstat(other, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    at_assert_ok(at_archive_read(path, &got));
    at_run_record_release(&got);
    at_run_record_release(&record);
}

/* An archive written by version 1.0.0 stays readable: its content is the sample record as it was then. */
static void test_golden(void **state) {
    (void)state;
    struct at_run_record want, got;
    assert_true(at_sample_record(&want, 8));
    at_assert_ok(at_archive_read("tests/golden/run_v1.h5", &got));
    assert_equal_records(&got, &want);
    at_run_record_release(&want);
    at_run_record_release(&got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_folder(test_round_trip),  with_folder(test_long_names_and_utf8), with_folder(test_same_bytes),
        with_folder(test_merge),       with_folder(test_full_disk),           with_folder(test_link),
        cmocka_unit_test(test_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
