/* Large archives read in pieces: every row as at_archive_read() has it, and refused for what it is refused for.
 * SPDX-License-Identifier: Apache-2.0 */
#include <hdf5.h>

#include "tests/support/archive_files.h"
#include "verify/archive/archive_rows.h"
#include "verify/report/report_summary.h"

enum { N = 10007, WIDE = 8 };

static int same_field(const struct at_field *field, const void *a, const void *b) {
    const void *x = at_field_of(field, a), *y = at_field_of(field, b);
    return field->kind == AT_FIELD_TEXT ? strcmp(x, y) == 0 : memcmp(x, y, field->size * (size_t)field->count) == 0;
}

static int is_named(const char *name) {
    for (int i = 0; at_summary_fields[i]; i++)
        if (strcmp(at_summary_fields[i], name) == 0)
            return 1;
    return 0;
}

/* A record in the order of its archive. */
static void make(struct at_run_record *record, int n) {
    struct at_run_record made;
    assert_true(at_sample_record(&made, n));
    at_assert_ok(at_archive_write(&made, path));
    at_run_record_release(&made);
    at_assert_ok(at_archive_read(path, record));
    assert_int_equal(record->n, n);
}

static void test_whole_rows(void **state) {
    (void)state;
    struct at_run_record want, got;
    const struct at_field *field;
    int64_t rows[N], n = 0;
    make(&want, N);
    for (int64_t i = 0; i < N; i += i % 5 == 0 ? 1 : 1 + i % 13)
        rows[n++] = i;
    at_assert_ok(at_archive_read_rows(path, rows, n, &got));
    assert_int_equal(got.n, n);
    assert_string_equal(got.request, want.request);
    for (int64_t i = 0; i < n; i++) {
        const struct at_result *a = &got.results[i], *b = &want.results[rows[i]];
        for (int f = 0; (field = at_result_field(f)); f++)
            at_assert_true(field->count > WIDE || strcmp(field->name, "seconds") == 0 || same_field(field, a, b),
                           "row %lld: %s is another", (long long)rows[i], field->name);
        for (int s = 0; b->has_ledger && s < AT_STAGE_COUNT; s++)
            for (int f = 0; (field = at_ledger_row_field(f)); f++)
                at_assert_true(same_field(field, &a->ledger.stage[s], &b->ledger.stage[s]),
                               "row %lld, stage %d: %s is another", (long long)rows[i], s, field->name);
    }
    at_run_record_release(&got);
    at_run_record_release(&want);
}

struct seen {
    const struct at_run_record *want;
    int64_t n, most;
};

static at_status compare_row(void *context, int64_t row, const struct at_result *r) {
    struct seen *seen = context;
    const struct at_result *want = &seen->want->results[row];
    const struct at_field *field;
    assert_int_equal(row, seen->n++);
    for (int f = 0; (field = at_result_field(f)); f++) {
        if (!is_named(field->name))
            continue;
        const int left_out = strcmp(field->name, "cause") == 0 && at_state_class(want->state) != AT_CLASS_DECLINED;
        at_assert_true(left_out ? !r->cause[0] : same_field(field, r, want), "row %lld: %s is another", (long long)row,
                       field->name);
    }
    return seen->n == seen->most ? AT_FAIL(AT_NOT_FOUND, "enough") : AT_OK;
}

static void test_scan(void **state) {
    (void)state;
    struct at_run_record want;
    int64_t n;
    make(&want, N);
    struct seen seen = { &want, 0, -1 };
    at_assert_ok(at_archive_count(path, &n));
    assert_int_equal(n, N);
    at_assert_ok(at_archive_scan(path, at_summary_fields, compare_row, &seen));
    assert_int_equal(seen.n, N);
    seen = (struct seen){ &want, 0, 17 };
    at_assert_fails(at_archive_scan(path, at_summary_fields, compare_row, &seen), AT_NOT_FOUND, "enough");
    assert_int_equal(seen.n, 17);
    at_run_record_release(&want);
}

static at_status look(void *context, int64_t row, const struct at_result *r) {
    (void)context;
    (void)row;
    assert_true((int)r->state >= 0 && r->state < AT_STATE_COUNT);
    return AT_OK;
}

static void write_at(const char *name, hid_t type, hsize_t row, const void *value) {
    const hsize_t one = 1;
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), data = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(data), memory = H5Screate_simple(1, &one, NULL);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &row, NULL, &one, NULL) >= 0);
    assert_true(H5Dwrite(data, type, memory, space, H5P_DEFAULT, value) >= 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(file);
}

static void test_changed_values(void **state) {
    (void)state;
    static const int64_t far[] = { 1 << 30, -1 };
    static const int8_t states[] = { AT_STATE_COUNT, -1 };
    const int64_t row = 3001;
    struct at_run_record record, got;
    for (int i = 0; i < 8; i++) {
        make(&record, 4000);
        at_run_record_release(&record);
        static const char *const names[] = { "/results/case", "/results/kernel", "/results/state", "/ledger/stage" };
        const char *says = "refers to row";
        if (i / 2 < 2)
            write_at(names[i / 2], H5T_STD_I64LE, (hsize_t)row, &far[i % 2]);
        else
            write_at(names[i / 2], H5T_STD_I8LE, (hsize_t)row, &states[i % 2]);
        if (i / 2 == 2)
            says = "has no meaning";
        if (i / 2 ==
            3) { /* of which result row 3001 is: every row has to be looked at; show reads the ledger of whole rows alone */
            int64_t rows[4000];
            for (int64_t k = 0; k < 4000; k++)
                rows[k] = k;
            at_assert_fails(at_archive_read_rows(path, rows, 4000, &got), AT_USAGE, "of /ledger is of stage");
            continue;
        }
        at_assert_fails(at_archive_scan(path, at_summary_fields, look, NULL), AT_USAGE, says);
        at_assert_true(strstr(at_error_message(), path), "no path in \"%s\"", at_error_message());
        at_assert_fails(at_archive_read_rows(path, &row, 1, &got), AT_USAGE, says);
        at_assert_true(strstr(at_error_message(), path), "no path in \"%s\"", at_error_message());
        assert_null(got.results);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_folder(test_whole_rows),
        with_folder(test_scan),
        with_folder(test_changed_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
