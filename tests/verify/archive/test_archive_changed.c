/* Archives that other programs have changed, and files that are none.
 * SPDX-License-Identifier: Apache-2.0 */
#include <hdf5.h>

#include "tests/support/archive_files.h"
#include "tests/support/archive_version.h"

/* What other programs need to find: ids are opened in an archive that was changed by hand. */
static hid_t open_changed(struct at_run_record *record) {
    assert_true(at_sample_record(record, 4));
    at_assert_ok(at_archive_write(record, path));
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static void test_versions(void **state) {
    (void)state;
    static const struct {
        const char *object, *version;
        int good;
    } all[] = { { "/", "2.0.0", 0 },           { "/results", "2.0", 0 },
                { "/cases", "7", 0 },          { "/ledger/totals", "2.1.1", 0 },
                { "/kernels", "nine", 0 },     { "/ledger", "", 0 },
                { "/provenance", "1.7.2", 1 }, { "/", "1", 1 } };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct at_run_record record, got;
        hid_t file = open_changed(&record);
        set_version(file, all[i].object, all[i].version);
        H5Fclose(file);
        if (all[i].good) {
            at_assert_ok(at_archive_read(path, &got));
            assert_equal_records(&got, &record);
            at_run_record_release(&got);
        } else {
            const char *name = strrchr(all[i].object, '/') + 1;
            char says[64];
            snprintf(says, sizeof says, "%s has encoding-version", *name ? name : "the file");
            at_assert_fails(at_archive_read(path, &got), AT_UNSUPPORTED, says);
            at_assert_true(strstr(at_error_message(), path), "no path in \"%s\"", at_error_message());
        }
        at_run_record_release(&record);
    }
}

static void add_column(hid_t file, const char *name, hsize_t n) {
    hid_t space = H5Screate_simple(1, &n, NULL);
    hid_t data = H5Dcreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(data >= 0);
    H5Dclose(data);
    H5Sclose(space);
}

static void write_one(hid_t file, const char *name, hid_t type, const void *values) {
    hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(data >= 0 && H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(data);
}

static void test_changed_columns(void **state) {
    (void)state;
    struct at_run_record record, got;
    hid_t file = open_changed(&record);
    add_column(file, "/results/a_later_column", 3);
    H5Gclose(H5Gcreate2(file, "/witness", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    at_assert_ok(at_archive_read(path, &got)); /* unknown: ignored */
    assert_equal_records(&got, &record);
    at_run_record_release(&got);
    at_run_record_release(&record);
    static const int64_t far[4] = { 0, 0, 99, 0 };
    static const int8_t states[4] = { 0, 1, 100, 2 };
    static const struct {
        const char *remove, *add, *write, *says;
        hsize_t n;
    } bad[] = {
        { "/results/compared", NULL, NULL, "column compared is missing", 0 },
        { "/results", NULL, NULL, "group results is missing", 0 },
        { "/cases/case_id", NULL, NULL, "column case_id is missing", 0 },
        { "/results/compared", "/results/compared", NULL, "axis 0 of compared has length 3, wanted 4", 3 },
        { "/results/compared", "/results/compared", NULL, "axis 0 of compared has length 5, wanted 4", 5 },
        { "/results/compared", "/results/compared", NULL, "compared claims 4 values, but stores fewer", 4 },
        { "/results/cause", "/results/cause", NULL, "cause has another type than variable-length text", 4 },
        { "/results/err_max", "/results/err_max", NULL, "another type than float64", 4 },
        { "/results/err_hist", "/results/err_hist", NULL, "has 1 axes, wanted 2", 4 },
        { "/results/result", "/results/result", NULL, "claims 100000000000 results", 100000000000u },
        { NULL, NULL, "/results/case", "row 2 of case refers to row 99", 0 },
        { NULL, NULL, "/results/state", "row 2 of state is 100", 0 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        file = open_changed(&record);
        if (bad[i].remove)
            assert_true(H5Ldelete(file, bad[i].remove, H5P_DEFAULT) >= 0);
        if (bad[i].add)
            add_column(file, bad[i].add, bad[i].n);
        if (bad[i].write && strstr(bad[i].write, "state"))
            write_one(file, bad[i].write, H5T_STD_I8LE, states);
        else if (bad[i].write)
            write_one(file, bad[i].write, H5T_STD_I64LE, far);
        H5Fclose(file);
        at_assert_fails(at_archive_read(path, &got), AT_USAGE, bad[i].says);
        assert_null(got.results);
        at_run_record_release(&record);
    }
}

/* A dataset of this rank and type takes the place of the one that is there; every extent is n. */
static void replace_column(hid_t file, const char *name, int rank, hsize_t n, hid_t type) {
    const hsize_t dims[3] = { n, n, n };
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(data >= 0);
    H5Dclose(data);
    H5Sclose(space);
}

static void test_changed_ranks_and_texts(void **state) {
    (void)state;
    struct at_run_record record, got;
    hid_t fixed = H5Tcopy(H5T_C_S1);
    H5Tset_size(fixed, 16);
    const struct {
        const char *name;
        int rank;
        hid_t type;
        const char *says;
    } bad[] = { { "/results/compared", 3, H5T_STD_I64LE, "compared has 3 axes, wanted at most 2" },
                { "/results/result", 2, H5T_STD_I64LE, "result has 2 axes, wanted 1" },
                { "/results/cause", 1, fixed, "cause has another type than variable-length text" } };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hid_t file = open_changed(&record);
        replace_column(file, bad[i].name, bad[i].rank, 4, bad[i].type);
        H5Fclose(file);
        at_assert_fails(at_archive_read(path, &got), AT_USAGE, bad[i].says);
        at_run_record_release(&record);
    }
    H5Tclose(fixed);
}

/* The bytes of the file that is at `path`, changed where `from` stands, which must be in one place. */
static void patch_file(const void *from, const void *to, size_t n) {
    static char bytes[1 << 20];
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    const size_t all = fread(bytes, 1, sizeof bytes, file);
    assert_true(all > n && all < sizeof bytes);
    char *found = memmem(bytes, all, from, n);
    assert_non_null(found);
    assert_null(memmem(found + 1, all - (size_t)(found + 1 - bytes), from, n));
    assert_int_equal(fseek(file, found - bytes, SEEK_SET), 0);
    assert_int_equal(fwrite(to, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* A column that stores three values and says that it has four: its old-style header has no checksum that would tell.
 * It stores more bytes than it claims values. */
static void test_column_that_stores_less(void **state) {
    (void)state;
    struct at_run_record record, got;
    static const int64_t values[3] = { 1, 2, 3 };
    const struct {
        uint8_t version, rank, has_most, zero[5];
        uint64_t extent, most;
    } three = { 1, 1, 1, { 0 }, 3, 3 }, four = { 1, 1, 1, { 0 }, 4, 4 };
    hid_t file = open_changed(&record);
    hid_t old = H5Fcreate(other, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    add_column(old, "compared", 3);
    write_one(old, "compared", H5T_STD_I64LE, values);
    assert_true(H5Ldelete(file, "/results/compared", H5P_DEFAULT) >= 0);
    assert_true(H5Ocopy(old, "compared", file, "/results/compared", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(old);
    H5Fclose(file);
    patch_file(&three, &four, sizeof three);
    at_assert_fails(at_archive_read(path, &got), AT_USAGE, "compared claims 4 values, but stores fewer");
    at_run_record_release(&record);
}

/* The attribute that says what the file is: two texts, a text of fixed length, one that was never written. */
static void test_changed_attributes(void **state) {
    (void)state;
    struct at_run_record record, got;
    static const char *const two[2] = { "attest.archive", "attest.archive" };
    static const char *const says[] = { "is no single text", "is no single text", "the file is a \"\"" };
    for (int i = 0; i < 3; i++) {
        const hsize_t n = 2;
        hid_t file = open_changed(&record), type = H5Tcopy(H5T_C_S1);
        hid_t space = i == 0 ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
        H5Tset_size(type, i == 1 ? 14 : H5T_VARIABLE);
        H5Adelete(file, "encoding-type");
        hid_t attribute = H5Acreate2(file, "encoding-type", type, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(attribute >= 0 && (i == 2 || H5Awrite(attribute, type, i == 0 ? (const void *)two : two[0]) >= 0));
        H5Aclose(attribute);
        H5Tclose(type);
        H5Sclose(space);
        H5Fclose(file);
        at_assert_fails(at_archive_read(path, &got), AT_USAGE, says[i]);
        at_run_record_release(&record);
    }
}

static void test_foreign_files(void **state) {
    (void)state;
    struct at_run_record got, record;
    size_t n;
    at_assert_fails(at_archive_read(path, &got), AT_NOT_FOUND, path);
    at_assert_fails(at_archive_read(folder, &got), AT_USAGE, "no regular file");
    store(path, "", 0);
    at_assert_fails(at_archive_read(path, &got), AT_USAGE, path);
    store(path, "not HDF5 at all", 15);
    at_assert_fails(at_archive_read(path, &got), AT_USAGE, path);
    assert_true(at_sample_record(&record, 4));
    at_assert_ok(at_archive_write(&record, other));
    char *bytes = load(other, &n);
    for (size_t cut = 64; cut < n; cut += n / 50) { /* truncated anywhere */
        store(path, bytes, cut);
        at_assert_fails(at_archive_read(path, &got), AT_USAGE, path);
    }
    free(bytes);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    at_assert_fails(at_archive_read(path, &got), AT_USAGE, "no archive of attest");
    at_run_record_release(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_folder(test_versions),
        with_folder(test_changed_columns),
        with_folder(test_column_that_stores_less),
        with_folder(test_changed_ranks_and_texts),
        with_folder(test_changed_attributes),
        with_folder(test_foreign_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
