/* Datasets of HDF5 files that are valid and not read, or that say what cannot be.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <hdf5.h>

#include "datasets/readers/reader.h"
#include "tests/support/reader_files.h"
#include "verify/archive/reader_hdf5.h"

/* A file of one dataset, called `name`, that nobody writes to. Takes type, space and plist. */
static const char *make_one(const char *name, hid_t type, hid_t space, hid_t plist) {
    const char *path = at_temp_path("one.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    at_assert_true(set >= 0, "HDF5 makes no dataset %s", name);
    H5Dclose(set);
    H5Tclose(type);
    H5Sclose(space);
    if (plist != H5P_DEFAULT)
        H5Pclose(plist);
    H5Fclose(file);
    return path;
}

static hid_t f32(void) { return H5Tcopy(H5T_IEEE_F32LE); }

static hid_t vector(hsize_t n) { return H5Screate_simple(1, &n, NULL); }

static hid_t layout_of_chunks(int rank, hsize_t extent) {
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[H5S_MAX_RANK];
    for (int i = 0; i < rank; i++)
        chunk[i] = extent;
    H5Pset_chunk(plist, rank, chunk);
    return plist;
}

/* Up to where a type's name is cut. */
static void assert_type_name(const char *path, const char *text) {
    char want[32];
    snprintf(want, sizeof want, "%s", text);
    struct at_reader *reader;
    uint8_t value[8];
    at_assert_ok(at_reader_open(path, &reader));
    assert_int_equal(at_reader_tensor(reader, 0)->supported, 0);
    assert_string_equal(at_reader_tensor(reader, 0)->type_name, want);
    at_assert_fails(at_reader_read(reader, 0, 0, 1, value), AT_UNSUPPORTED, want);
    at_reader_close(reader);
}

/* 16 bits that are neither f16 nor bf16, 32 bits that are not i32: similar is not the same. */
static void test_similar_types(void **state) {
    (void)state;
    static const struct {
        size_t exponent_at, exponent_bits, mantissa_bits, bias;
        H5T_norm_t norm;
    } floats[] = { { 10, 5, 10, 16, H5T_NORM_IMPLIED },
                   { 10, 5, 10, 15, H5T_NORM_MSBSET },
                   { 7, 8, 7, 15, H5T_NORM_IMPLIED },
                   { 7, 7, 7, 127, H5T_NORM_IMPLIED },
                   { 10, 5, 9, 15, H5T_NORM_IMPLIED } };
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        hid_t type = f32();
        assert_true(
            H5Tset_fields(type, 15, floats[i].exponent_at, floats[i].exponent_bits, 0, floats[i].mantissa_bits) >= 0 &&
            H5Tset_size(type, 2) >= 0 && H5Tset_ebias(type, floats[i].bias) >= 0 &&
            H5Tset_norm(type, floats[i].norm) >= 0);
        assert_type_name(make_one("q", type, vector(4), H5P_DEFAULT), "float of 16 bits, not all written");
    }
    hid_t narrow = H5Tcopy(H5T_STD_I32LE);
    H5Tset_precision(narrow, 24);
    const hid_t integers[] = { H5Tcopy(H5T_STD_U32LE), narrow };
    for (int i = 0; i < 2; i++)
        assert_type_name(make_one("q", integers[i], vector(4), H5P_DEFAULT), "integer of 32 bits, not all written");
    assert_type_name(make_one("q", H5Tcopy(H5T_STD_I32BE), vector(4), H5P_DEFAULT),
                     "big-endian integer of 32 bits, not all written");
}

static void test_storage(void **state) {
    (void)state;
    assert_type_name(make_one("q", f32(), vector(4), H5P_DEFAULT), "f32, not all written");
    assert_type_name(make_one("q", f32(), vector(1 << 27), layout_of_chunks(1, 1 << 27)), "f32, huge chunks");
    hid_t elsewhere = H5Pcreate(H5P_DATASET_CREATE), space = vector(4);
    assert_true(H5Pset_virtual(elsewhere, space, "other.h5", "q", space) >= 0);
    assert_type_name(make_one("q", f32(), space, elsewhere), "f32, virtual");
}

static void load(const char *path, struct at_bytes *bytes) {
    uint8_t piece[4096];
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    for (size_t n; (n = fread(piece, 1, sizeof piece, in)) > 0;)
        at_bytes_add(bytes, piece, n);
    fclose(in);
}

/* A contiguous dataset whose address is moved until its last byte is past the end of the file. */
static void test_past_the_file(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    const float data[4] = { 1, 2, 3, 4 };
    const char *path = at_temp_path("one.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = vector(4);
    hid_t set = H5Dcreate2(file, "q", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    uint64_t address = (uint64_t)H5Dget_offset(set);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    load(path, &bytes);
    size_t at = 0; /* of the address and the size in the layout message */
    while (at + 16 <= bytes.n && (memcmp(bytes.data + at, &address, 8) != 0 || bytes.data[at + 8] != sizeof data))
        at++;
    at_assert_true(at + 16 <= bytes.n, "no layout message");
    struct at_reader *reader;
    double last = 0;
    at_bytes_set_le(&bytes, at, bytes.n - sizeof data, 8);
    at_assert_ok(at_reader_open(at_temp_file("one.h5", &bytes), &reader));
    at_assert_ok(at_reader_read_f64(reader, 0, 3, 1, &last));
    at_reader_close(reader);
    at_bytes_set_le(&bytes, at, bytes.n - sizeof data + 1, 8);
    assert_type_name(at_temp_file("one.h5", &bytes), "f32, past the file");
    at_bytes_release(&bytes);
}

/* A compact dataset whose header stores one value less than its extent has. */
static void test_short_compact(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    const float data[4] = { 1.5, 2.5, 3.5, 4.5 };
    uint8_t stored[16];
    const char *path = at_temp_path("one.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = vector(4);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(plist, H5D_COMPACT);
    hid_t set = H5Dcreate2(file, "q", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Dwrite(set, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(set);
    H5Pclose(plist);
    H5Sclose(space);
    H5Fclose(file);
    load(path, &bytes);
    struct at_reader *reader;
    double last = 0;
    at_assert_ok(at_reader_open(path, &reader));
    at_assert_ok(at_reader_read_f64(reader, 0, 3, 1, &last));
    at_assert_same(last, 4.5);
    at_reader_close(reader);
    memcpy(stored, data, sizeof stored);
    size_t at = 2; /* the size lies before the values */
    while (at + 16 <= bytes.n && (memcmp(bytes.data + at, stored, 16) != 0 || bytes.data[at - 2] != 16))
        at++;
    at_assert_true(at + 16 <= bytes.n, "no layout message");
    at_bytes_set_le(&bytes, at - 2, 12, 2);
    assert_type_name(at_temp_file("one.h5", &bytes), "f32, not all written");
    at_bytes_release(&bytes);
}

static void test_shapes(void **state) {
    (void)state;
    const hsize_t nine[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, vast[2] = { (hsize_t)1 << 32, (hsize_t)1 << 32 };
    struct at_reader *reader;
    at_assert_fails(at_reader_open(make_one("q", f32(), H5Screate_simple(9, nine, NULL), H5P_DEFAULT), &reader),
                    AT_USAGE, "'q': has 9 dimensions, wanted at most 8");
    at_assert_ok(at_reader_open(make_one("q", f32(), H5Screate_simple(8, nine, NULL), H5P_DEFAULT), &reader));
    at_reader_close(reader);
    at_assert_fails(
        at_reader_open(make_one("q", f32(), H5Screate_simple(2, vast, NULL), layout_of_chunks(2, 4)), &reader),
        AT_USAGE, "'q': dimension 1: the shape's product is beyond 2^63");
    at_assert_ok(at_reader_open(make_one("q", f32(), H5Screate(H5S_NULL), H5P_DEFAULT), &reader));
    assert_int_equal(at_reader_tensor(reader, 0)->count, 0);
    at_reader_close(reader);
}

static void test_names(void **state) {
    (void)state;
    char longest[257];
    memset(longest, 'x', sizeof longest);
    longest[256] = 0;
    const char *const bad[] = { "a\nb", "a\x7f", "\xff", longest };
    struct at_reader *reader;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        at_assert_fails(at_reader_open(make_one(bad[i], f32(), vector(4), H5P_DEFAULT), &reader), AT_USAGE,
                        "wanted UTF-8 without control characters, at most 255 bytes");
    at_assert_ok(at_reader_open(make_one(longest + 1, f32(), vector(4), H5P_DEFAULT), &reader));
    assert_string_equal(at_reader_tensor(reader, 0)->name, longest + 1);
    at_reader_close(reader);
}

int main(void) {
    at_reader_hdf5_register();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_similar_types), cmocka_unit_test(test_storage), cmocka_unit_test(test_past_the_file),
        cmocka_unit_test(test_short_compact), cmocka_unit_test(test_shapes),  cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
