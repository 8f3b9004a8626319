/* Exports of archives that do not hold together: every kind says what is wrong and writes no file of it; what such an
 * archive still has is exported.
 * SPDX-License-Identifier: Apache-2.0 */
#include <hdf5.h>
#include <unistd.h>

#include "tests/support/archive_dataset.h"
#include "tests/support/archive_files.h"
#include "notebooks_export/export.h"

typedef at_status (*export_kind)(struct at_export *e);

/* A sample archive of n results, open for changes. */
static hid_t changed_archive(int n) {
    struct at_run_record record;
    assert_true(at_sample_record(&record, n));
    at_assert_ok(at_archive_write(&record, path));
    at_run_record_release(&record);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static void delete (hid_t file, const char *name) { assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0); }

/* Row `row` of a column of whole numbers. */
static void set_number(hid_t file, const char *name, hsize_t row, int64_t value) {
    const hsize_t one = 1;
    hid_t data = H5Dopen2(file, name, H5P_DEFAULT), at = H5Dget_space(data), memory = H5Screate_simple(1, &one, NULL);
    assert_true(H5Sselect_hyperslab(at, H5S_SELECT_SET, &row, NULL, &one, NULL) >= 0);
    assert_true(H5Dwrite(data, H5T_NATIVE_INT64, memory, at, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory);
    H5Sclose(at);
    H5Dclose(data);
}

/* A column of n zeros in place of one of another kind. */
static void put_zeros(hid_t file, const char *name, hsize_t n, hid_t type) {
    delete (file, name);
    add_dataset(file, name, type, 1, &n);
}

/* The archive by one kind of export, which ends with so many files written. */
static void assert_export(export_kind kind, at_status want, const char *says, int files) {
    struct at_export e;
    at_assert_ok(at_export_open(path, folder, -1, &e));
    if (want == AT_OK)
        at_assert_ok(kind(&e));
    else
        at_assert_fails(kind(&e), want, says);
    assert_int_equal(e.files, files);
    at_export_release(&e);
}

static void unlink_all(const char *const *names) {
    char file[160];
    for (; *names; names++) {
        snprintf(file, sizeof file, "%s/%s", folder, *names);
        at_assert_true(unlink(file) == 0, "no %s", *names);
    }
}

/* Results that refer to rows which are not there, or to none, as no results do: the tables are wanted all the same. */
static void test_references(void **state) {
    (void)state;
    static const export_kind kinds[] = { at_export_csv, at_export_svg, at_export_html };
    static const char *const groups[] = { "cases", "kernels" }, *const columns[] = { "case", "kernel" };
    for (int g = 0; g < 2; g++)
        for (int k = 0; k < 3; k++) {
            char name[64], says[96];
            snprintf(name, sizeof name, "/results/%s", columns[g]);
            for (int64_t value = -2; value <= 99; value += 101) { /* -2 and 99 */
                hid_t file = changed_archive(8);
                set_number(file, name, 3, value);
                H5Fclose(file);
                snprintf(says, sizeof says, "row 3 of results refers to %s %d", columns[g], (int)value);
                assert_export(kinds[k], AT_USAGE, says, 0);
            }
            for (int empty = 0; empty < 2; empty++) {
                hid_t file = changed_archive(empty ? 0 : 8);
                delete (file, groups[g]);
                H5Fclose(file);
                snprintf(says, sizeof says, "there is no group %s", groups[g]);
                assert_export(kinds[k], AT_USAGE, says, 0);
            }
            hid_t file = changed_archive(8);
            put_zeros(file, name, 8, H5T_IEEE_F64LE);
            H5Fclose(file);
            snprintf(says, sizeof says, "results has no column %s of whole numbers", columns[g]);
            assert_export(kinds[k], AT_USAGE, says, 0);
        }
}

/* The page wants states by name. */
static void test_no_states(void **state) {
    (void)state;
    hid_t file = changed_archive(8);
    put_zeros(file, "/results/state", 8, H5T_STD_I64LE);
    H5Fclose(file);
    assert_export(at_export_html, AT_USAGE, "results has no column state with flags", 0);
}

/* A row of the ledger without its result: a table says so, a plot and the page leave it out. */
static void test_ledger(void **state) {
    (void)state;
    static const char *const csv[] = { "run_results.csv", "run_err_hist.csv", NULL }, *const html[] = { "run.html",
                                                                                                        NULL };
    for (int64_t value = -7; value <= 99; value += 106) {
        hid_t file = changed_archive(26);
        set_number(file, "/ledger/result", 0, value);
        H5Fclose(file);
        assert_export(at_export_csv, AT_USAGE, "row 0 of ledger refers to no result", 2);
        unlink_all(csv);
        assert_export(at_export_html, AT_OK, "", 1);
        unlink_all(html);
    }
}

/* Tables that nothing refers to are exported as they are. */
static void test_no_results(void **state) {
    (void)state;
    static const char *const files[] = { "run_cases.csv", "run_kernels.csv", "run_ledger.csv", "run_ledger_totals.csv",
                                         NULL };
    struct at_export e;
    hid_t file = changed_archive(26);
    delete (file, "/results");
    H5Fclose(file);
    assert_export(at_export_csv, AT_OK, "", 4);
    unlink_all(files);
    assert_export(at_export_svg, AT_UNSUPPORTED, "nothing that is plotted", 0);

    file = changed_archive(8);
    static const char *const groups[] = { "/results", "/cases", "/kernels", "/ledger" };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        delete (file, groups[i]);
    H5Fclose(file);
    at_assert_fails(at_export_open(path, folder, -1, &e), AT_USAGE, "holds no results");
    at_export_release(&e);
}

/* Names of files that no file system takes. */
static void test_long_folder(void **state) {
    (void)state;
    struct at_export e;
    struct at_atomic_file file;
    char *dir = malloc(5000);
    assert_non_null(dir);
    memset(dir, 'd', 4999);
    dir[4999] = 0;
    H5Fclose(changed_archive(8));
    at_assert_ok(at_export_open(path, dir, -1, &e));
    at_assert_fails(at_export_begin(&e, "results", "csv", &file), AT_USAGE, "the path is too long");
    at_export_release(&e);
    free(dir);
}

/* Cells of the caller's own: read as they are, or not at all. */
static void test_own_cells(void **state) {
    (void)state;
    static const struct {
        const char *text;
        at_status want;
        const char *says;
    } all[] = {
        { "# %%\nx = '\xff'\n", AT_USAGE, "other.h5:2: is no UTF-8" },
        { "x = 1\n", AT_USAGE, "no cell" },
        { "# %%\nx = '\xc3\xbc'\n", AT_OK, "" },
    };
    static const char *const files[] = { "other.h5.ipynb", NULL };
    H5Fclose(changed_archive(8));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct at_export e;
        store(other, all[i].text, strlen(all[i].text));
        at_assert_ok(at_export_open(path, folder, -1, &e));
        e.cells = other;
        if (all[i].want == AT_OK)
            at_assert_ok(at_export_ipynb(&e));
        else
            at_assert_fails(at_export_ipynb(&e), all[i].want, all[i].says);
        assert_int_equal(e.files, all[i].want == AT_OK);
        at_export_release(&e);
    }
    unlink_all(files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_folder(test_references), with_folder(test_no_states),   with_folder(test_ledger),
        with_folder(test_no_results), with_folder(test_long_folder), with_folder(test_own_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
