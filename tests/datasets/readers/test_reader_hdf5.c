/* Reader of HDF5: every 16-bit and other float type raw, ranges over chunks, what is not read, damage.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <hdf5.h>
#include <signal.h>
#include <unistd.h>

#include "datasets/readers/reader.h"
#include "tests/support/find_child.h"
#include "tests/support/reader_files.h"
#include "verify/archive/reader_hdf5.h"

enum { COUNT = 105 }; /* 7 x 5 x 3 */

static const char *sample(void) {
    const char *path = at_temp_path("t.h5");
    at_make_hdf5(path);
    return path;
}

static void test_every_format(void **state) {
    (void)state;
    static const char *const names[] = { "f64", "f32", "f16", "bf16", "e4m3", "e5m2", "i32", "chunked", "layers.0.q" };
    struct at_reader *reader;
    at_assert_ok(at_reader_open(sample(), &reader));
    assert_int_equal(at_reader_count(reader), 15);
    for (size_t w = 0; w < sizeof names / sizeof *names; w++) {
        int i = at_reader_find(reader, names[w]);
        at_assert_true(i >= 0, "%s is not found", names[w]);
        const struct at_file_tensor *t = at_reader_tensor(reader, i);
        enum at_format format = AT_F32;
        if (w < 7)
            at_assert_ok(at_format_parse(names[w], &format));
        at_assert_true(t->supported, "%s is %s", names[w], t->type_name);
        assert_int_equal(t->format, format);
        assert_int_equal(t->rank, 3);
        assert_int_equal(t->count, COUNT);
        assert_int_equal(t->bytes, COUNT * at_format_info(format)->bytes);
        uint8_t codes[COUNT * 8];
        at_assert_ok(at_reader_read(reader, i, 0, COUNT, codes));
        for (int64_t k = 0; k < COUNT; k++)
            at_assert_same(at_load(format, codes, (size_t)k), at_sample_value(k));
    }
    at_reader_close(reader);
}

/* Every range of a contiguous and of a chunked dataset: all shapes of start and end within rows and planes. */
static void test_every_range(void **state) {
    (void)state;
    struct at_reader *reader;
    at_assert_ok(at_reader_open(sample(), &reader));
    const int tensors[] = { at_reader_find(reader, "chunked"), at_reader_find(reader, "bf16") };
    int64_t step = at_test_effort(2) == 1 ? 7 : 2;
    for (int w = 0; w < 2; w++)
        for (int64_t first = 0; first <= COUNT; first++)
            for (int64_t n = first % step; first + n <= COUNT; n += step) {
                double got[COUNT + 1];
                got[n] = 99;
                at_assert_ok(at_reader_read_f64(reader, tensors[w], first, n, got));
                for (int64_t k = 0; k < n; k++)
                    at_assert_same(got[k], at_sample_value(first + k));
                at_assert_same(got[n], 99);
            }
    at_reader_close(reader);
}

static void test_scalar_and_empty(void **state) {
    (void)state;
    struct at_reader *reader;
    double value = 0;
    at_assert_ok(at_reader_open(sample(), &reader));
    int scalar = at_reader_find(reader, "scalar"), empty = at_reader_find(reader, "empty");
    assert_int_equal(at_reader_tensor(reader, scalar)->rank, 0);
    at_assert_ok(at_reader_read_f64(reader, scalar, 0, 1, &value));
    at_assert_same(value, at_sample_value(0));
    assert_int_equal(at_reader_tensor(reader, empty)->count, 0);
    at_assert_ok(at_reader_read_f64(reader, empty, 0, 0, &value));
    at_assert_fails(at_reader_read_f64(reader, empty, 0, 1, &value), AT_USAGE, "it has 0");
    at_reader_close(reader);
}

static void test_unread_datasets(void **state) {
    (void)state;
    static const char *const unread[][2] = { { "be", "is big-endian float of 32 bits" },
                                             { "i64", "is integer of 64 bits" },
                                             { "text", "is string of 64 bits" },
                                             { "unwritten", "is f32, not all written" } };
    struct at_reader *reader;
    double value;
    at_assert_ok(at_reader_open(sample(), &reader));
    for (size_t w = 0; w < 4; w++) {
        int i = at_reader_find(reader, unread[w][0]);
        assert_int_equal(at_reader_tensor(reader, i)->supported, 0);
        at_assert_fails(at_reader_read_f64(reader, i, 0, 1, &value), AT_UNSUPPORTED, unread[w][1]);
    }
    at_reader_close(reader);
}

/* A file of one dataset made by `change` on its creation list. */
static const char *make_one(const char *name, void (*change)(hid_t plist), int partly) {
    const char *path = at_temp_path(name);
    const hsize_t n = 64, few = 8;
    float data[64] = { 0 };
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, &n, NULL), part = H5Screate_simple(1, &few, NULL);
    change(plist);
    hid_t set = H5Dcreate2(file, "q", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    const hsize_t start = 0;
    if (partly)
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &few, NULL);
    assert_true(H5Dwrite(set, H5T_IEEE_F32LE, partly ? part : H5S_ALL, partly ? space : H5S_ALL, H5P_DEFAULT, data) >=
                0);
    H5Dclose(set);
    H5Sclose(part);
    H5Sclose(space);
    H5Pclose(plist);
    H5Fclose(file);
    return path;
}

static void set_external(hid_t plist) { H5Pset_external(plist, at_temp_path("elsewhere"), 0, 256); }
static void set_chunks(hid_t plist) {
    const hsize_t chunk = 8;
    H5Pset_chunk(plist, 1, &chunk);
}
static void set_scale_offset(hid_t plist) {
    set_chunks(plist);
    H5Pset_scaleoffset(plist, H5Z_SO_FLOAT_DSCALE, 2);
}

/* Storage that reaches outside the file, was never written, or needs a filter that is not taken. */
static void test_unread_storage(void **state) {
    (void)state;
    static const struct {
        void (*change)(hid_t plist);
        int partly;
        const char *text;
    } kinds[] = { { set_external, 0, "f32, stored elsewhere" },
                  { set_chunks, 1, "f32, not all written" },
                  { set_scale_offset, 0, "f32, other filter" } };
    for (size_t w = 0; w < sizeof kinds / sizeof *kinds; w++) {
        struct at_reader *reader;
        double value;
        at_assert_ok(at_reader_open(make_one("one.h5", kinds[w].change, kinds[w].partly), &reader));
        at_assert_fails(at_reader_read_f64(reader, 0, 0, 1, &value), AT_UNSUPPORTED, kinds[w].text);
        at_reader_close(reader);
    }
    struct at_reader *reader; /* the same dataset, written whole, is read */
    double value;
    at_assert_ok(at_reader_open(make_one("one.h5", set_chunks, 0), &reader));
    at_assert_ok(at_reader_read_f64(reader, 0, 63, 1, &value));
    at_reader_close(reader);
}

/* Links that leave the file or go in circles; two names that become one. */
static void test_links(void **state) {
    (void)state;
    struct at_reader *reader;
    const char *path = sample();
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/", file, "outside", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/f32", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/", file, "layers/circle", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    at_assert_ok(at_reader_open(path, &reader));
    assert_int_equal(at_reader_count(reader), 15);
    at_reader_close(reader);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t space = H5Screate(H5S_SCALAR);
    H5Dclose(H5Dcreate2(file, "layers.0.q", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Fclose(file);
    at_assert_fails(at_reader_open(path, &reader), AT_USAGE, "two datasets are called 'layers.0.q'");
}

static void test_not_hdf5(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    struct at_reader *reader;
    at_bytes_add(&bytes, "\x89HDF\r\n\x1a\nthe rest is something else", 34);
    at_assert_fails(at_reader_open(at_temp_file("bad.h5", &bytes), &reader), AT_USAGE, "bad.h5");
    at_bytes_release(&bytes);
}

/* Cut at many places: refused, or (past the last byte that matters) read right. */
static void test_truncated(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    uint8_t piece[4096];
    FILE *in = fopen(sample(), "rb");
    assert_non_null(in);
    for (size_t n; (n = fread(piece, 1, sizeof piece, in)) > 0;)
        at_bytes_add(&bytes, piece, n);
    fclose(in);
    size_t whole = bytes.n;
    for (size_t cut = 0; cut < 24; cut++) {
        struct at_reader *reader;
        bytes.n = whole * cut / 24;
        at_assert_fails(at_reader_open(at_temp_file("cut.h5", &bytes), &reader), AT_USAGE, "cut.h5");
    }
    at_bytes_release(&bytes);
}

/* A child that dies between two reads (as it does inside the HDF5 library) costs the read, not the program. */
static void test_child_dies(void **state) {
    (void)state;
    struct at_reader *reader;
    double value;
    at_assert_ok(at_reader_open(sample(), &reader));
    int i = at_reader_find(reader, "i32");
    pid_t child = at_find_child();
    at_assert_true(child > 0, "no child process reads the file");
    assert_int_equal(kill(child, SIGKILL), 0);
    at_assert_fails(at_reader_read_f64(reader, i, 0, 1, &value), AT_USAGE, "the HDF5 library died reading it (Killed)");
    at_assert_fails(at_reader_read_f64(reader, i, 0, 1, &value), AT_USAGE, "cannot be read further");
    at_reader_close(reader);
    at_assert_true(at_find_child() == 0, "a child is left behind");
}

/* Readers open at the same time do not hold each other's children. */
static void test_two_at_once(void **state) {
    (void)state;
    struct at_reader *first, *second;
    double value;
    const char *path = sample();
    at_assert_ok(at_reader_open(path, &first));
    at_assert_ok(at_reader_open(path, &second));
    at_reader_close(first);
    at_assert_ok(at_reader_read_f64(second, at_reader_find(second, "i32"), 104, 1, &value));
    at_assert_same(value, at_sample_value(104));
    at_reader_close(second);
}

int main(void) {
    at_reader_hdf5_register();
    at_reader_hdf5_register(); /* the second time replaces the first */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format),     cmocka_unit_test(test_every_range),
        cmocka_unit_test(test_scalar_and_empty), cmocka_unit_test(test_unread_datasets),
        cmocka_unit_test(test_unread_storage),   cmocka_unit_test(test_links),
        cmocka_unit_test(test_not_hdf5),         cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_child_dies),       cmocka_unit_test(test_two_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
