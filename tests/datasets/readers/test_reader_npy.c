/* Reader of npy: versions, types, ranges, and headers that lie.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/readers/reader.h"
#include "tests/support/reader_files.h"

enum { COUNT = 105 };

static at_status open_made(int version, const char *dictionary, const void *data, size_t n, struct at_reader **reader) {
    struct at_bytes bytes = { 0 };
    at_make_npy(&bytes, version, dictionary, data, n);
    at_status status = at_reader_open(at_temp_file("t.npy", &bytes), reader);
    at_bytes_release(&bytes);
    return status;
}

static void assert_refused(const char *dictionary, size_t n, const char *part) {
    struct at_reader *reader = NULL;
    uint8_t data[256] = { 0 };
    at_assert_fails(open_made(1, dictionary, data, n, &reader), AT_USAGE, part);
    at_assert_true(strstr(at_error_message(), "t.npy") != NULL, "the file is not named: %s", at_error_message());
}

static void test_types_and_versions(void **state) {
    (void)state;
    static const struct {
        const char *descr;
        enum at_format format;
    } types[] = { { "<f8", AT_F64 }, { "<f4", AT_F32 }, { "<f2", AT_F16 }, { "<i4", AT_I32 } };
    double values[COUNT];
    uint8_t codes[COUNT * 8];
    for (int64_t i = 0; i < COUNT; i++)
        values[i] = at_sample_value(i);
    for (size_t w = 0; w < sizeof types / sizeof *types; w++)
        for (int version = 1; version <= 3; version++) {
            char text[128];
            struct at_reader *reader;
            size_t bytes = COUNT * at_format_info(types[w].format)->bytes;
            snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (7, 5, 3), }",
                     types[w].descr);
            at_encode_array(types[w].format, COUNT, values, codes);
            at_assert_ok(open_made(version, text, codes, bytes, &reader));
            const struct at_file_tensor *t = at_reader_tensor(reader, 0);
            assert_int_equal(at_reader_count(reader), 1);
            assert_string_equal(t->name, "t");
            assert_string_equal(t->type_name, types[w].descr);
            assert_int_equal(t->format, types[w].format);
            assert_int_equal(t->rank, 3);
            assert_int_equal(t->bytes, bytes);
            for (int64_t first = 0; first < COUNT; first += 11) {
                double got[COUNT];
                at_assert_ok(at_reader_read_f64(reader, 0, first, COUNT - first, got));
                for (int64_t k = first; k < COUNT; k++)
                    at_assert_same(got[k - first], at_sample_value(k));
            }
            at_reader_close(reader);
        }
}

static void test_shapes(void **state) {
    (void)state;
    static const struct {
        const char *shape;
        int rank;
        int64_t count;
    } shapes[] = { { "()", 0, 1 }, { "(1,)", 1, 1 }, { "(1, 1)", 2, 1 }, { "(0, 5)", 2, 0 }, { "(1,1,1,)", 3, 1 } };
    float one = 1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char text[128];
        double value = 1;
        struct at_reader *reader;
        snprintf(text, sizeof text, "{\"shape\":%s,'fortran_order':False,'descr':'<f4'}", shapes[i].shape);
        at_assert_ok(open_made(1, text, &one, shapes[i].count ? 4 : 0, &reader));
        assert_int_equal(at_reader_tensor(reader, 0)->rank, shapes[i].rank);
        assert_int_equal(at_reader_tensor(reader, 0)->count, shapes[i].count);
        at_assert_ok(at_reader_read_f64(reader, 0, 0, shapes[i].count, &value));
        at_assert_same(value, 1);
        at_reader_close(reader);
    }
}

/* Valid, listed, and said to be unread: nothing is swapped, transposed or guessed. */
static void test_unread_types(void **state) {
    (void)state;
    static const char *const entries[][3] = {
        { "'>f4'", "False", "is >f4, which" },
        { "'<f4'", "True", "is <f4 Fortran, which" },
        { "'|V2'", "False", "is |V2, which" },
        { "'|O'", "False", "is |O, which" },
        { "'<i8'", "False", "is <i8, which" },
        { "[('a', '<f4'), ('b', '<f4', (2,))]", "False", "is structured, which" },
        { "[('a)]', '<f4')]", "False", "is structured, which" },
        { "'=f4'", "False", "is =f4, which" },
        { "'<U9223372036854775807'", "False", "is <U9223372036854775807, which" },
        { "'<f4x'", "False", "is <f4x, which" }, /* no size that is known */
    };
    static const size_t bytes[] = { 24, 24, 12, 5, 48, 7, 7, 24, 7, 7 };
    uint8_t data[48] = { 0 };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char text[192];
        struct at_reader *reader;
        snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': %s, 'shape': (2, 3), }", entries[i][0],
                 entries[i][1]);
        at_assert_ok(open_made(1, text, data, bytes[i], &reader));
        assert_int_equal(at_reader_tensor(reader, 0)->supported, 0);
        at_assert_fails(at_reader_read(reader, 0, 0, 1, data), AT_UNSUPPORTED, entries[i][2]);
        at_reader_close(reader);
    }
    struct at_reader *reader; /* one extent: both orders are the same */
    at_assert_ok(open_made(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", data, 8, &reader));
    assert_int_equal(at_reader_tensor(reader, 0)->supported, 1);
    at_reader_close(reader);
}

/* Content decides before the suffix, and what no reader takes is named. */
static void test_content_and_suffix(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    struct at_reader *reader;
    float one = 1;
    at_make_npy(&bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", &one, 4);
    at_assert_ok(at_reader_open(at_temp_file("array.npz", &bytes), &reader));
    assert_string_equal(at_reader_tensor(reader, 0)->name, "array.npz");
    at_reader_close(reader);
    bytes.n = 0;
    at_bytes_add(&bytes, "\x89HDF\r\n\x1a\n", 8); /* its reader is not registered here */
    at_assert_fails(at_reader_open(at_temp_file("t.npy", &bytes), &reader), AT_UNSUPPORTED, "a file of type hdf5");
    at_bytes_release(&bytes);
}

/* More bytes than a header may have. */
static void test_large_array(void **state) {
    (void)state;
    enum { N = 10000 };
    static double data[N], got[N];
    struct at_reader *reader;
    for (int i = 0; i < N; i++)
        data[i] = i;
    at_assert_ok(
        open_made(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (10000,), }", data, sizeof data, &reader));
    at_assert_ok(at_reader_read_f64(reader, 0, 0, N, got));
    assert_memory_equal(got, data, sizeof data);
    at_reader_close(reader);
}

/* A header padded to 10,000 bytes is read; one over the limit is refused in a file that is long enough for it. */
static void test_long_headers(void **state) {
    (void)state;
    static char text[66000];
    struct at_reader *reader;
    double value;
    float one = 1;
    memset(text, ' ', sizeof text - 1);
    memcpy(text, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 57);
    text[10000] = 0;
    at_assert_ok(open_made(1, text, &one, 4, &reader));
    at_assert_ok(at_reader_read_f64(reader, 0, 0, 1, &value));
    at_assert_same(value, 1);
    at_reader_close(reader);
    text[10000] = ' ';
    at_assert_fails(open_made(2, text, &one, 4, &reader), AT_USAGE, "wanted at most 65536");
}

#define D(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static void test_lying_headers(void **state) {
    (void)state;
    assert_refused(D("'<f4'", "False", "(3,)"), 8, "holds 8 bytes of elements, its shape and type '<f4' want 12");
    assert_refused(D("'<f4'", "False", "(1,)"), 8, "want 4");
    assert_refused(D("'<U5'", "False", "(1,)"), 8, "want 20");
    assert_refused(D("'<f4'", "False", "(4294967296, 4294967296)"), 0, "dimension 1");
    assert_refused(D("'<f4'", "False", "(0, 4294967296, 4294967296)"), 0, "dimension 2");
    assert_refused(D("'<f4'", "False", "(4611686018427387904,)"), 0, "beyond 2^63 bytes");
    assert_refused(D("'<f4'", "False", "(9223372036854775808,)"), 0, "an extent below 2^63");
    assert_refused(D("'<f4'", "False", "(18446744073709551617,)"), 4, "an extent below 2^63");
    assert_refused(D("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 4, "9 dimensions, wanted at most 8");
    assert_refused(D("'<f4'", "False", "(-1,)"), 4, "found byte 0x2d, wanted an extent");
    assert_refused(D("'<f4'", "False", "(1)"), 4, "',' after an extent");
    assert_refused(D("'<f4'", "False", "(1, 2"), 8, "found byte 0x7d, wanted an extent");
    assert_refused(D("'<f4'", "False", "(1, 2 3)"), 24, "',' after an extent");
    assert_refused(D("'<f4'", "False", "[1]"), 4, "'(', the start");
    assert_refused(D("'<f4'", "0", "(1,)"), 4, "True or False");
    assert_refused(D("'<f4567890123456789012345'", "False", "(1,)"), 4, "a short text");
    assert_refused("{'descr5678901234567890123': '<f4'}", 4, "a short text");
    assert_refused(D("None", "False", "(1,)"), 4, "a quoted text");
    assert_refused(D("'<f4", "False", "(1,)"), 4, "found byte");
    assert_refused(D("[('a', '<f4'", "False", "(1,)"), 4, "the list of fields");
    assert_refused("{'descr': '<f4', 'shape': (1,), }", 4, "'fortran_order' is missing");
    assert_refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4,
                   "'descr' is there twice");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, "'x' is unknown");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + 1", 4, "nothing after");
    assert_refused("__import__('os')", 4, "'{', the start");
    assert_refused("", 4, "the npy header ends");
}

static void test_damaged_prefix(void **state) {
    (void)state;
    static const struct {
        size_t at;
        uint64_t value;
        int bytes;
        const char *part;
    } lies[] = {
        { 0, 'x', 1, "not an npy array" },
        { 6, 4, 1, "npy version 4.0" },
        { 6, 0, 1, "npy version 0.0" },
        { 7, 1, 1, "npy version 1.1" },
        { 8, 65535, 2, "npy header of 65535 bytes" },
        { 8, 0, 2, "does not end with a newline" },
        { 8, 70, 2, "does not end with a newline" },
    };
    struct at_bytes bytes = { 0 };
    struct at_reader *reader;
    float data[2] = { 0 };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        bytes.n = 0;
        at_make_npy(&bytes, 1, D("'<f4'", "False", "(2,)"), data, sizeof data);
        at_bytes_set_le(&bytes, lies[i].at, lies[i].value, lies[i].bytes);
        at_assert_fails(at_reader_open(at_temp_file("t.npy", &bytes), &reader), AT_USAGE, lies[i].part);
    }
    bytes.n = 0;
    at_make_npy(&bytes, 2, D("'<f4'", "False", "(2,)"), data, sizeof data);
    at_bytes_set_le(&bytes, 8, UINT32_MAX, 4);
    at_assert_fails(at_reader_open(at_temp_file("t.npy", &bytes), &reader), AT_USAGE, "npy header of 4294967295 bytes");
    at_bytes_release(&bytes);
}

/* Cut anywhere, the file is refused and the place is named. */
static void test_truncated_everywhere(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    struct at_reader *reader;
    float data[4] = { 0 };
    at_make_npy(&bytes, 3, D("'<f4'", "False", "(4,)"), data, sizeof data);
    size_t whole = bytes.n;
    for (bytes.n = 0; bytes.n < whole; bytes.n++)
        at_assert_fails(at_reader_open(at_temp_file("t.npy", &bytes), &reader), AT_USAGE, "t.npy");
    at_assert_ok(at_reader_open(at_temp_file("t.npy", &bytes), &reader));
    at_reader_close(reader);
    at_bytes_release(&bytes);
}

/* ---- a folder of them ---- */

enum { FILES = 40 };

static void fill_folder(const char *folder, int remove) {
    for (int i = 0; i < FILES; i++) {
        char path[256];
        struct at_bytes bytes = { 0 };
        const float data[2] = { (float)i, (float)(100 + i) };
        snprintf(path, sizeof path, "%s/layers.%d.q.npy", folder, i);
        at_make_npy(&bytes, 1, D("'<f4'", "False", "(2,)"), data, sizeof data);
        FILE *out = remove ? NULL : fopen(path, "wb");
        assert_true(remove ? unlink(path) == 0 : out && fwrite(bytes.data, 1, bytes.n, out) == bytes.n);
        assert_true(remove || fclose(out) == 0);
        at_bytes_release(&bytes);
    }
}

/* More files than the process may open, read in turns; one that changes meanwhile is refused. */
static void test_folder(void **state) {
    (void)state;
    char folder[192], path[256];
    struct at_reader *reader;
    struct rlimit old, few;
    snprintf(folder, sizeof folder, "%s", at_temp_path("capture"));
    assert_int_equal(mkdir(folder, 0700), 0);
    at_assert_fails(at_reader_open(folder, &reader), AT_USAGE, "a folder, wanted a regular file, or a folder that");
    fill_folder(folder, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){ 16, old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    at_assert_ok(at_reader_open(folder, &reader));
    assert_int_equal(at_reader_count(reader), FILES);
    assert_string_equal(at_reader_tensor(reader, 1)->name, "layers.1.q");
    assert_string_equal(at_reader_tensor(reader, 2)->name, "layers.10.q");
    for (int i = 0; i < 3 * FILES; i++) {
        char name[32];
        double value;
        snprintf(name, sizeof name, "layers.%d.q", i % FILES);
        at_assert_ok(at_reader_read_f64(reader, at_reader_find(reader, name), i & 1, 1, &value));
        at_assert_same(value, (i & 1 ? 100 : 0) + i % FILES);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    snprintf(path, sizeof path, "%s/layers.0.q.npy", folder);
    assert_int_equal(truncate(path, 20), 0);
    double value;
    at_assert_fails(at_reader_read_f64(reader, 0, 0, 1, &value), AT_IO, "when its folder was opened");
    at_reader_close(reader);
    fill_folder(folder, 1);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_versions),   cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_unread_types),         cmocka_unit_test(test_content_and_suffix),
        cmocka_unit_test(test_large_array),          cmocka_unit_test(test_long_headers),
        cmocka_unit_test(test_lying_headers),        cmocka_unit_test(test_damaged_prefix),
        cmocka_unit_test(test_truncated_everywhere), cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
