/* Tables of an archive by name: the same values as the readers of structs give, golden files of every kind, and what is
 * refused or ignored.
 * SPDX-License-Identifier: Apache-2.0 */
#include <hdf5.h>
#include <unistd.h>

#include "tests/at_test.h"
#include "tests/support/archive_dataset.h"
#include "tests/support/archive_version.h"
#include "tests/support/sample_record.h"
#include "verify/archive/frame.h"
#include "verify/study/accumulate/study.h"
#include "verify/result/table.h"

static char folder[64], path[96];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/attest_frame_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/a.h5", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static hid_t changed_archive(void) {
    struct at_run_record record;
    assert_true(at_sample_record(&record, 8));
    at_assert_ok(at_archive_write(&record, path));
    at_run_record_release(&record);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

/* ---- values ---- */

/* A field of a struct against the column of its name. */
static void assert_same_field(const struct at_field *field, const void *base, const struct at_frame *frame, int64_t i) {
    const struct at_frame_column *c = at_frame_column(frame, field->name);
    const void *at = at_field_of(field, base);
    at_assert_true(c != NULL, "no column %s", field->name);
    assert_int_equal(c->width, field->kind == AT_FIELD_TEXT ? 1 : field->count);
    assert_string_equal(c->units, field->units);
    for (int place = 0; place < c->width; place++) {
        const int64_t k = i * c->width + place;
        switch (field->kind) {
        case AT_FIELD_TEXT:
            assert_string_equal(at_frame_text(c, i), at);
            break;
        case AT_FIELD_STATE:
            assert_string_equal(at_frame_text(c, i), at_state_name(*(const enum at_state *)at));
            break;
        case AT_FIELD_BOOL:
            assert_string_equal(at_frame_text(c, i), *(const int *)at ? "yes" : "no");
            break;
        case AT_FIELD_INT:
            assert_int_equal(c->at.i64[k], ((const int *)at)[place]);
            break;
        case AT_FIELD_I64:
        case AT_FIELD_PLACE:
            assert_int_equal(c->at.i64[k], ((const int64_t *)at)[place]);
            at_assert_true(c->has_missing == (field->kind == AT_FIELD_PLACE), "%s", field->name);
            break;
        case AT_FIELD_U64:
            at_assert_true(c->at.u64[k] == ((const uint64_t *)at)[place], "%s", field->name);
            break;
        case AT_FIELD_F64:
            at_assert_same(c->at.f64[k], ((const double *)at)[place]);
            break;
        }
    }
}

static void test_results(void **state) {
    (void)state;
    struct at_frames frames;
    struct at_run_record record;
    const struct at_field *field;
    assert_true(at_sample_record(&record, 26));
    at_assert_ok(at_archive_write(&record, path));
    at_assert_ok(at_frames_read(path, &frames));
    const struct at_frame *results = at_frame_find(&frames, "results"), *cases = at_frame_find(&frames, "cases");
    const struct at_frame *kernels = at_frame_find(&frames, "kernels"), *ledger = at_frame_find(&frames, "ledger");
    assert_true(results && cases && kernels && ledger && at_frame_find(&frames, "ledger/totals"));
    assert_int_equal(frames.n, 5);
    assert_int_equal(results->n, 26);
    assert_string_equal(frames.request, record.request);
    assert_string_equal(frames.build, record.provenance);
    assert_null(at_frame_find(&frames, "bench"));
    assert_null(at_frame_column(results, "no_such_column"));
    for (int64_t i = 0; i < record.n; i++)
        for (int k = 0; (field = at_result_field(k)); k++) {
            const struct at_frame *frame = field->group == AT_FIELD_CASES     ? cases
                                           : field->group == AT_FIELD_KERNELS ? kernels
                                                                              : results;
            const char *key = frame == cases ? "case" : "kernel";
            const int64_t row = frame == results ? i : at_frame_column(results, key)->at.i64[i];
            if (field->group != AT_FIELD_NOWHERE)
                assert_same_field(field, &record.results[i], frame, row);
        }
    at_frames_release(&frames);
    at_run_record_release(&record);
}

static void test_numbers(void **state) {
    (void)state;
    struct at_frames frames;
    H5Fclose(changed_archive());
    at_assert_ok(at_frames_read(path, &frames));
    const struct at_frame *results = at_frame_find(&frames, "results");
    at_assert_same(at_frame_number(at_frame_column(results, "worst_index"), 3, 0), NAN); /* -1: there is none */
    at_assert_same(at_frame_number(at_frame_column(results, "worst_index"), 0, 0), 17);
    at_assert_same(at_frame_number(at_frame_column(results, "worst_at"), 0, 2), 5);
    at_assert_same(at_frame_number(at_frame_column(results, "ulp_max"), 1, 0), 0x1p64);
    at_assert_same(at_frame_number(at_frame_column(results, "tensor"), 0, 0), NAN);
    at_assert_same(at_frame_number(NULL, 0, 0), NAN);
    assert_string_equal(at_frame_text(at_frame_column(results, "err_max"), 0), "");
    assert_string_equal(at_frame_text(NULL, 0), "");
    at_frames_release(&frames);
}

static void test_no_results(void **state) {
    (void)state;
    struct at_frames frames;
    struct at_run_record record;
    assert_true(at_sample_record(&record, 0));
    at_assert_ok(at_archive_write(&record, path));
    at_assert_ok(at_frames_read(path, &frames));
    assert_int_equal(at_frame_find(&frames, "results")->n, 0);
    at_frames_release(&frames);
    at_run_record_release(&record);
}

/* ---- golden files: one of each kind, written by version 1 ---- */

static void test_golden_results(void **state) {
    (void)state;
    struct at_frames frames;
    at_assert_ok(at_frames_read("tests/golden/run_v1.h5", &frames));
    const struct at_frame *results = at_frame_find(&frames, "results");
    assert_int_equal(results->n, 8);
    assert_string_equal(frames.version, "1.0.0");
    assert_string_equal(at_frame_text(at_frame_column(results, "state"), 2), "WRONG");
    at_assert_same(at_frame_number(at_frame_column(results, "err_max"), 1, 0), 1 / 3.0 * 2);
    at_frames_release(&frames);
}

static void test_golden_study(void **state) {
    (void)state;
    struct at_frames frames;
    struct at_run_record record;
    struct at_table_rows table = { .table = &at_study_table_accumulate };
    const struct at_field *field;
    at_run_record_init(&record);
    at_assert_ok(at_archive_read_tables("tests/golden/study_v1.h5", &table, 1, &record));
    at_assert_ok(at_frames_read("tests/golden/study_v1.h5", &frames));
    const struct at_frame *study = at_frame_find(&frames, "studies/accumulate");
    at_assert_true(study && study->n == table.n && table.n == 18, "%lld rows", (long long)table.n);
    for (int64_t i = 0; i < table.n; i++)
        for (int k = 0; (field = at_study_field(k)); k++)
            assert_same_field(field, (const char *)table.rows + i * (int64_t)table.table->row_bytes, study, i);
    free(table.rows);
    at_run_record_release(&record);
    at_frames_release(&frames);
}

/* ---- what is refused and what is ignored ---- */

static void test_versions(void **state) {
    (void)state;
    static const char *const objects[] = { "/",       "/results",       "/cases",     "/kernels",
                                           "/ledger", "/ledger/totals", "/provenance" };
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        for (int major = 1; major <= 2; major++) {
            struct at_frames frames;
            hid_t file = changed_archive();
            set_version(file, objects[i], major == 1 ? "1.99.0" : "2.0.0");
            H5Fclose(file);
            char says[64];
            snprintf(says, sizeof says, "%s has encoding-version \"2.0.0\"", i ? objects[i] + 1 : "the file");
            if (major == 1)
                at_assert_ok(at_frames_read(path, &frames));
            else
                at_assert_fails(at_frames_read(path, &frames), AT_UNSUPPORTED, says);
            at_frames_release(&frames);
        }
}

/* A later column of a known kind is there like any other; columns and groups of other kinds are not. */
static void test_later_content(void **state) {
    (void)state;
    static const hsize_t rows[] = { 8, 3, 2 }, many[] = { 8, 4000 }, other[] = { 9 };
    struct at_frames frames;
    hid_t file = changed_archive(), compound = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(compound, "a", 0, H5T_STD_I64LE);
    add_dataset(file, "/results/later", H5T_STD_I64LE, 1, rows);
    add_dataset(file, "/results/compound", compound, 1, rows);
    add_dataset(file, "/results/big_endian", H5T_STD_I64BE, 1, rows);
    add_dataset(file, "/results/cube", H5T_STD_I64LE, 3, rows);
    add_dataset(file, "/results/very_wide", H5T_STD_I64LE, 2, many);
    add_dataset(file, "/results/longer", H5T_STD_I64LE, 1, other);
    H5Gclose(H5Gcreate2(file, "/later", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    add_dataset(file, "/results/two\nlines", H5T_STD_I64LE, 1, rows);
    H5Lcreate_soft("/results/err_max", file, "/results/soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("none.h5", "/x", file, "/results/external", H5P_DEFAULT, H5P_DEFAULT);
    H5Tclose(compound);
    H5Fclose(file);
    at_assert_ok(at_frames_read(path, &frames));
    const struct at_frame *results = at_frame_find(&frames, "results");
    assert_non_null(at_frame_column(results, "later"));
    static const char *const ignored[] = { "two\nlines", "compound", "big_endian", "cube",
                                           "very_wide",  "longer",   "soft",       "external" };
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        at_assert_true(!at_frame_column(results, ignored[i]), "column %s is there", ignored[i]);
    assert_int_equal(frames.n, 5);
    at_frames_release(&frames);
}

static void test_damage(void **state) {
    (void)state;
    static const hsize_t huge[] = { (hsize_t)1 << 40 };
    static const int8_t states[8] = { 0, 1, 100 };
    struct at_frames frames;
    hid_t file = changed_archive();
    H5Ldelete(file, "/results/result", H5P_DEFAULT);
    add_dataset(file, "/results/result", H5T_STD_I64LE, 1, huge);
    H5Fclose(file);
    at_assert_fails(at_frames_read(path, &frames), AT_USAGE, "claims 1099511627776 rows of results");
    at_frames_release(&frames);
    file = changed_archive();
    hid_t data = H5Dopen2(file, "/results/state", H5P_DEFAULT);
    assert_true(H5Dwrite(data, H5T_STD_I8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, states) >= 0);
    H5Dclose(data);
    H5Fclose(file);
    at_assert_fails(at_frames_read(path, &frames), AT_USAGE, "row 2 of results/state is 100, which has no meaning");
    at_frames_release(&frames);
    at_assert_fails(at_frames_read("/none/at/all.h5", &frames), AT_NOT_FOUND, "/none/at/all.h5");
    at_frames_release(&frames);
    assert_int_equal(truncate(path, 5000), 0);
    at_assert_fails(at_frames_read(path, &frames), AT_USAGE, path);
    at_frames_release(&frames);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_folder(test_results),           with_folder(test_numbers),
        with_folder(test_no_results),        cmocka_unit_test(test_golden_results),
        cmocka_unit_test(test_golden_study), with_folder(test_versions),
        with_folder(test_later_content),     with_folder(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
