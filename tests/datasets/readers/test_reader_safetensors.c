/* Reader of safetensors: what good files give, and what lying headers are told.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "datasets/readers/reader.h"
#include "datasets/readers/reader_internal.h"
#include "tests/support/reader_files.h"

/* Takes the place of libc's: while `calls` is not 0, every other call is interrupted and none gives more than 5 bytes.
 */
static int calls;
ssize_t pread(int fd, void *out, size_t n, off_t offset) {
    if (calls && calls++ % 2) {
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_pread64, fd, out, calls && n > 5 ? 5 : n, offset);
}

static const struct {
    const char *word;
    enum at_format format;
} words[] = { { "F64", AT_F64 },      { "F32", AT_F32 },      { "F16", AT_F16 }, { "BF16", AT_BF16 },
              { "F8_E4M3", AT_E4M3 }, { "F8_E5M2", AT_E5M2 }, { "I32", AT_I32 } };
enum { N_WORDS = sizeof words / sizeof *words, COUNT = 105 };

/* Writes a file of this header and `n` bytes of data and opens it. */
static at_status open_made(const char *header, const void *data, size_t n, struct at_reader **reader) {
    struct at_bytes bytes = { 0 };
    at_make_safetensors(&bytes, header, data, n);
    at_status status = at_reader_open(at_temp_file("t.safetensors", &bytes), reader);
    at_bytes_release(&bytes);
    return status;
}

static void assert_refused(const char *header, size_t n, at_status want, const char *part) {
    struct at_reader *reader = NULL;
    uint8_t data[256] = { 0 };
    at_assert_fails(open_made(header, data, n, &reader), want, part);
    at_assert_true(strstr(at_error_message(), "t.safetensors") != NULL, "the file is not named: %s",
                   at_error_message());
    at_assert_true(reader == NULL, "a reader came out of a failure");
}

/* Every format at once, 7 x 5 x 3 each, in the order of `words`. */
static struct at_reader *open_all_formats(void) {
    char header[4096] = "{\"__metadata__\":{\"origin\":\"a test\"}";
    struct at_bytes data = { 0 };
    double values[COUNT];
    uint8_t codes[COUNT * 8];
    for (int64_t i = 0; i < COUNT; i++)
        values[i] = at_sample_value(i);
    for (size_t w = 0; w < N_WORDS; w++) {
        size_t begin = data.n, used = strlen(header);
        at_encode_array(words[w].format, COUNT, values, codes);
        at_bytes_add(&data, codes, COUNT * at_format_info(words[w].format)->bytes);
        snprintf(header + used, sizeof header - used,
                 ",\"t.%s\":{\"dtype\":\"%s\",\"shape\":[7,5,3],\"data_offsets\":[%zu,%zu]}", words[w].word,
                 words[w].word, begin, data.n);
    }
    size_t used = strlen(header);
    snprintf(header + used, sizeof header - used, "}   ");
    struct at_reader *reader = NULL;
    at_assert_ok(open_made(header, data.data, data.n, &reader));
    at_bytes_release(&data);
    return reader;
}

static void test_every_format(void **state) {
    (void)state;
    struct at_reader *reader = open_all_formats();
    assert_int_equal(at_reader_count(reader), N_WORDS);
    for (size_t w = 0; w < N_WORDS; w++) {
        char name[32];
        double values[COUNT];
        uint8_t codes[COUNT * 8];
        snprintf(name, sizeof name, "t.%s", words[w].word);
        int i = at_reader_find(reader, name);
        at_assert_true(i >= 0, "%s is not found", name);
        const struct at_file_tensor *t = at_reader_tensor(reader, i);
        assert_int_equal(t->supported, 1);
        assert_int_equal(t->format, words[w].format);
        assert_string_equal(t->type_name, words[w].word);
        assert_int_equal(t->rank, 3);
        assert_int_equal(t->shape[0] * 100 + t->shape[1] * 10 + t->shape[2], 753);
        assert_int_equal(t->bytes, COUNT * at_format_info(t->format)->bytes);
        at_assert_ok(at_reader_read_f64(reader, i, 0, COUNT, values));
        at_assert_ok(at_reader_read(reader, i, 0, COUNT, codes));
        for (int64_t k = 0; k < COUNT; k++) {
            at_assert_same(values[k], at_sample_value(k));
            at_assert_same(at_load(t->format, codes, (size_t)k), at_sample_value(k));
        }
    }
    assert_int_equal(at_reader_find(reader, "absent"), -1);
    assert_int_equal(at_reader_find(reader, "__metadata__"), -1);
    at_reader_close(reader);
}

static void test_ranges(void **state) {
    (void)state;
    struct at_reader *reader = open_all_formats();
    int i = at_reader_find(reader, "t.BF16");
    double values[COUNT + 1];
    for (int64_t first = 0; first <= COUNT; first += 7)
        for (int64_t n = 0; first + n <= COUNT; n += 13) {
            values[n] = 99;
            at_assert_ok(at_reader_read_f64(reader, i, first, n, values));
            for (int64_t k = 0; k < n; k++)
                at_assert_same(values[k], at_sample_value(first + k));
            at_assert_same(values[n], 99);
        }
    at_assert_fails(at_reader_read_f64(reader, i, 0, COUNT + 1, values), AT_USAGE,
                    "106 elements from 0 wanted, it has 105");
    at_assert_fails(at_reader_read_f64(reader, i, COUNT, 1, values), AT_USAGE, "it has 105");
    at_assert_fails(at_reader_read_f64(reader, i, -1, 1, values), AT_USAGE, "from -1");
    at_assert_fails(at_reader_read(reader, i, 0, -1, values), AT_USAGE, "-1 elements");
    at_assert_fails(at_reader_read(reader, i, INT64_MAX, INT64_MAX, values), AT_USAGE, "it has 105");
    at_assert_fails(at_reader_read(reader, i, 1, INT64_MAX, values), AT_USAGE, "it has 105");
    at_assert_fails(at_reader_read(reader, i, COUNT + 1, 0, values), AT_USAGE, "0 elements from 106 wanted");
    at_assert_fails(at_reader_read(reader, N_WORDS, 0, 1, values), AT_USAGE, "the file has 7");
    at_assert_fails(at_reader_read(reader, -1, 0, 1, values), AT_USAGE, "tensor -1");
    at_reader_close(reader);
}

/* What a network file system does to a read. */
static void test_short_and_interrupted_reads(void **state) {
    (void)state;
    double values[COUNT];
    calls = 1;
    struct at_reader *reader = open_all_formats();
    at_assert_ok(at_reader_read_f64(reader, at_reader_find(reader, "t.F32"), 0, COUNT, values));
    at_assert_true(calls > COUNT, "%d calls of pread", calls);
    calls = 0;
    for (int64_t k = 0; k < COUNT; k++)
        at_assert_same(values[k], at_sample_value(k));
    at_reader_close(reader);
}

static void test_unread_types_are_listed(void **state) {
    (void)state;
    struct at_reader *reader;
    uint8_t data[16] = { 0 };
    at_assert_ok(open_made("{\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                           "\"b\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[8,11]}}",
                           data, 11, &reader));
    assert_int_equal(at_reader_count(reader), 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(at_reader_tensor(reader, i)->supported, 0);
    at_assert_fails(at_reader_read(reader, 1, 0, 1, data), AT_UNSUPPORTED, "'b' is F6_E2M3");
    at_reader_close(reader);
}

/* Words that are not read still have a size, which the offsets must have. */
static void test_sizes_of_unread_types(void **state) {
    (void)state;
    static const struct {
        const char *word;
        int bytes;
    } unread[] = { { "I64", 8 }, { "U64", 8 }, { "U32", 4 }, { "I16", 2 },
                   { "U16", 2 }, { "I8", 1 },  { "U8", 1 },  { "BOOL", 1 } };
    const uint8_t data[16] = { 0 };
    for (size_t w = 0; w < sizeof unread / sizeof *unread; w++)
        for (int bytes = 1; bytes <= 8; bytes *= 2) {
            char header[128];
            struct at_reader *reader;
            snprintf(header, sizeof header, "{\"q\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%d]}}",
                     unread[w].word, 2 * bytes);
            at_status status = open_made(header, data, 2 * (size_t)bytes, &reader);
            at_assert_true(status == (bytes == unread[w].bytes ? AT_OK : AT_USAGE), "%s of %d bytes: %s",
                           unread[w].word, bytes, at_status_name(status));
            if (status != AT_OK)
                continue;
            assert_int_equal(at_reader_tensor(reader, 0)->supported, 0);
            at_reader_close(reader);
        }
}

/* The header may list tensors in any order; their bytes decide. An empty tensor lies before its neighbour. */
static void test_any_order_of_entries(void **state) {
    (void)state;
    const float data[3] = { 1, 2, 3 };
    struct at_reader *reader;
    double value[2];
    at_assert_ok(open_made("{\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]},"
                           "\"last\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]},"
                           "\"first\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                           data, sizeof data, &reader));
    at_assert_ok(at_reader_read_f64(reader, at_reader_find(reader, "first"), 0, 1, value));
    at_assert_same(value[0], 1);
    at_assert_ok(at_reader_read_f64(reader, at_reader_find(reader, "last"), 0, 2, value));
    at_assert_same(value[0], 2);
    at_assert_same(value[1], 3);
    at_reader_close(reader);
}

/* Names at the longest that is taken, with brackets and quotes that are text, and in other scripts. */
static void test_names(void **state) {
    (void)state;
    char longest[257];
    memset(longest, 'x', sizeof longest);
    longest[256] = 0;
    const char *const names[] = { "q\\\"[[[[", "\xe6\xbc\xa2\xe5\xad\x97", longest + 1, longest };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char header[400];
        struct at_reader *reader;
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", names[i]);
        if (i == 3) {
            assert_refused(header, 4, AT_USAGE, "name has 256 bytes, wanted at most 255");
            continue;
        }
        at_assert_ok(open_made(header, "\0\0\0\0", 4, &reader));
        assert_string_equal(at_reader_tensor(reader, 0)->name, i == 0 ? "q\"[[[[" : names[i]);
        at_reader_close(reader);
    }
}

static void test_small_files(void **state) {
    (void)state;
    struct at_reader *reader;
    float one = 1;
    double value;
    at_assert_ok(open_made("{}", NULL, 0, &reader));
    assert_int_equal(at_reader_count(reader), 0);
    at_reader_close(reader);
    at_assert_ok(open_made("{\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                           "\"e\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[4,4]}}",
                           &one, 4, &reader));
    assert_int_equal(at_reader_tensor(reader, at_reader_find(reader, "e"))->count, 0);
    at_assert_ok(at_reader_read_f64(reader, at_reader_find(reader, "s"), 0, 1, &value));
    at_assert_same(value, 1);
    at_reader_close(reader);
}

#define ENTRY(dtype, shape, offsets) \
    "{\"q\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void test_lying_entries(void **state) {
    (void)state;
    assert_refused(ENTRY("F32", "[2]", "[0,16]"), 16, AT_USAGE, "hold 16 bytes, its shape and dtype F32 want 8");
    assert_refused(ENTRY("F16", "[4]", "[0,16]"), 16, AT_USAGE, "dtype F16 want 8");
    assert_refused(ENTRY("F32", "[4]", "[0,16]"), 12, AT_USAGE, "at most 12");
    assert_refused(ENTRY("F32", "[2]", "[8,0]"), 8, AT_USAGE, "wanted ascending");
    assert_refused(ENTRY("F32", "[2]", "[-8,0]"), 8, AT_USAGE, "data_offsets holds -8");
    assert_refused(ENTRY("F32", "[-2]", "[0,8]"), 8, AT_USAGE, "shape holds -2");
    assert_refused(ENTRY("F32", "[2.0]", "[0,8]"), 8, AT_USAGE, "not an integer");
    assert_refused(ENTRY("F32", "2", "[0,8]"), 8, AT_USAGE, "shape is missing or not a list");
    assert_refused(ENTRY("F32", "[2]", "[0,8,8]"), 8, AT_USAGE, "not a list of two");
    assert_refused(ENTRY("F32", "[4294967296,4294967296]", "[0,0]"), 0, AT_USAGE, "dimension 1");
    assert_refused(ENTRY("F32", "[4294967296,4294967296,0]", "[0,0]"), 0, AT_USAGE, "dimension 1");
    assert_refused(ENTRY("F32", "[4611686018427387904]", "[0,0]"), 0, AT_USAGE, "beyond 2^63 bytes");
    assert_refused(ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, AT_USAGE, "9 dimensions, wanted at most 8");
    struct at_reader *reader; /* 8 are taken */
    at_assert_ok(open_made(ENTRY("F32", "[1,1,1,1,1,1,1,1]", "[0,4]"), "\0\0\0\0", 4, &reader));
    assert_int_equal(at_reader_tensor(reader, 0)->rank, 8);
    at_reader_close(reader);
    assert_refused(ENTRY("F32", "[18446744073709551616]", "[0,4]"), 4, AT_USAGE, "not JSON");
    assert_refused(ENTRY("f32", "[1]", "[0,4]"), 4, AT_USAGE, "other characters");
    assert_refused(ENTRY("", "[1]", "[0,4]"), 4, AT_USAGE, "dtype is missing");
    assert_refused(ENTRY("F32", "[1]", "[0,4]"), 8, AT_USAGE, "end at 4, the file has 8");
    /* a word fills its place with 31 bytes */
    at_assert_ok(open_made(ENTRY("A123456789A123456789A123456789A", "[1]", "[0,4]"), "\0\0\0\0", 4, &reader));
    at_reader_close(reader);
    assert_refused(ENTRY("A123456789A123456789A123456789AB", "[1]", "[0,4]"), 4, AT_USAGE, "a word of 1 to 31 bytes");
    assert_refused("{\"q\x7f\":{}}", 0, AT_USAGE, "control character 0x7f");
    assert_refused("{\"q\":3}", 0, AT_USAGE, "not an object");
    assert_refused("{\"q\\n\":{}}", 0, AT_USAGE, "control character 0x0a");
    assert_refused("{\"__metadata__\":{\"a\":1}}", 0, AT_USAGE, "not text");
    assert_refused("{\"__metadata__\":[]}", 0, AT_USAGE, "__metadata__ is not an object");
}

static void test_overlaps_and_holes(void **state) {
    (void)state;
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
                   12, AT_USAGE, "'b': begins at 4, wanted 8: it overlaps");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
                   12, AT_USAGE, "belong to none");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                   "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                   8, AT_USAGE, "duplicate");
}

static void test_headers(void **state) {
    (void)state;
    assert_refused("[]", 0, AT_USAGE, "wanted '{'");
    assert_refused(" {}", 0, AT_USAGE, "offset 8: found byte 0x20");
    assert_refused("{\"a\":", 0, AT_USAGE, "not JSON");
    assert_refused("{} x", 0, AT_USAGE, "not JSON");
    assert_refused("{\"a\":[[[[[]]]]]}", 0, AT_USAGE, "nests 4 deep");
    struct at_bytes bytes = { 0 };
    struct at_reader *reader;
    const struct {
        uint64_t length;
        const char *part;
    } lies[] = { { 3, "header length 3, wanted 2 to 2" },
                 { UINT64_MAX, "header length 18446744073709551615" },
                 { (uint64_t)INT64_MAX + 1, "header length" },
                 { 0, "header length 0" },
                 { 100000001, "wanted 2 to 2" } };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        bytes.n = 0;
        at_make_safetensors(&bytes, "{}", NULL, 0);
        at_bytes_set_le(&bytes, 0, lies[i].length, 8);
        at_assert_fails(at_reader_open(at_temp_file("h.safetensors", &bytes), &reader), AT_USAGE, lies[i].part);
    }
    bytes.n = 7;
    at_assert_fails(at_reader_open(at_temp_file("h.safetensors", &bytes), &reader), AT_USAGE, "has 7 bytes");
    bytes.n = 0;
    at_assert_fails(at_reader_open(at_temp_file("h.safetensors", &bytes), &reader), AT_USAGE, "has 0 bytes");
    at_bytes_release(&bytes);
}

/* A header over the limit in a file that is really that long (sparse). */
static void test_huge_header(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    struct at_reader *reader;
    at_bytes_le(&bytes, 100000001, 8);
    const char *path = at_temp_file("huge.safetensors", &bytes);
    assert_int_equal(truncate(path, 200000000), 0);
    at_assert_fails(at_reader_open(path, &reader), AT_USAGE, "header length 100000001, wanted 2 to 100000000");
    at_bytes_release(&bytes);
}

/* A header whose values would cost the JSON parser hundreds of megabytes is refused by counting them. */
static void test_bomb_of_values(void **state) {
    (void)state;
    struct at_bytes header = { 0 }, bytes = { 0 };
    struct at_reader *reader;
    at_bytes_add(&header, "{\"a\":[1", 7);
    for (int i = 0; i < 1000001; i++)
        at_bytes_add(&header, ",1", 2);
    at_bytes_add(&header, "]}", 3);
    at_make_safetensors(&bytes, (const char *)header.data, NULL, 0);
    at_assert_fails(at_reader_open(at_temp_file("bomb.safetensors", &bytes), &reader), AT_USAGE,
                    "more than 1000000 values");
    at_bytes_release(&header);
    at_bytes_release(&bytes);
}

static void test_not_a_file(void **state) {
    (void)state;
    struct at_reader *reader;
    at_assert_fails(at_reader_open("/nonexistent/q.safetensors", &reader), AT_NOT_FOUND, "/nonexistent/q.safetensors");
    at_assert_fails(at_reader_open("/tmp", &reader), AT_USAGE, "a folder, wanted a regular file");
    at_assert_fails(at_reader_open("/dev/zero", &reader), AT_USAGE, "a pipe, a device or a socket");
    const char *fifo = at_temp_path("fifo.safetensors");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    at_assert_fails(at_reader_open(fifo, &reader), AT_USAGE, "a pipe, a device or a socket");
    struct at_bytes bytes = { 0 };
    at_bytes_add(&bytes, "nothing known", 13);
    at_assert_fails(at_reader_open(at_temp_file("t.txt", &bytes), &reader), AT_USAGE,
                    "wanted one of .safetensors .npy .npz");
    bytes.n = 0; /* the suffix names the type whatever its case */
    at_make_safetensors(&bytes, "{}", NULL, 0);
    at_assert_ok(at_reader_open(at_temp_file("T.SafeTensors", &bytes), &reader));
    at_reader_close(reader);
    at_bytes_release(&bytes);
}

/* No read past what the file had when it was opened, whoever asks. */
static void test_bounds_of_an_input(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    struct at_input input;
    uint8_t out[4];
    at_bytes_add(&bytes, "abcd", 4);
    at_assert_ok(at_input_open(at_temp_file("four", &bytes), &input));
    at_assert_ok(at_input_read(&input, 4, 0, out));
    at_assert_ok(at_input_read(&input, 1, 3, out));
    assert_memory_equal(out, "bcd", 3);
    const int64_t beyond[][2] = { { 3, 2 }, { 5, 0 }, { -1, 1 }, { 0, -1 }, { 0, 5 }, { 1, INT64_MAX } };
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        at_assert_fails(at_input_read(&input, beyond[i][0], beyond[i][1], out), AT_USAGE, "the file has 4");
    at_input_close(&input);
    at_bytes_release(&bytes);
}

/* The file shrinks after it was opened: an error, no signal. */
static void test_shrinks_later(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    struct at_reader *reader;
    float data[1024] = { 0 };
    at_make_safetensors(&bytes, ENTRY("F32", "[1024]", "[0,4096]"), data, sizeof data);
    const char *path = at_temp_file("shrinks.safetensors", &bytes);
    at_assert_ok(at_reader_open(path, &reader));
    assert_int_equal(truncate(path, (off_t)bytes.n - 8), 0);
    at_assert_ok(at_reader_read(reader, 0, 0, 1022, data));
    at_assert_fails(at_reader_read(reader, 0, 1000, 24, data), AT_IO, "the file ends here");
    at_reader_close(reader);
    at_bytes_release(&bytes);
}

/* The recorded activations that the repository carries. */
static void test_recorded_activations(void **state) {
    (void)state;
    struct at_reader *reader;
    double starts[8], q[384];
    at_assert_ok(at_reader_open(AT_SOURCE_DIR "/datasets/activations/minilm.safetensors", &reader));
    assert_int_equal(at_reader_count(reader), 19);
    at_assert_ok(at_reader_read_f64(reader, at_reader_find(reader, "query_start"), 0, 8, starts));
    at_assert_same(starts[0], 0);
    at_assert_same(starts[7], 165);
    for (int layer = 0; layer < 6; layer++) {
        char name[32];
        snprintf(name, sizeof name, "layers.%d.q", layer);
        const struct at_file_tensor *t = at_reader_tensor(reader, at_reader_find(reader, name));
        assert_int_equal(t->shape[0], 165);
        assert_int_equal(t->shape[1], 12);
        assert_int_equal(t->shape[2], 32);
        at_assert_ok(at_reader_read_f64(reader, at_reader_find(reader, name), 164 * 384, 384, q));
        for (int i = 0; i < 384; i++)
            at_assert_within(q[i], 0, 100);
    }
    at_reader_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_short_and_interrupted_reads),
        cmocka_unit_test(test_unread_types_are_listed),
        cmocka_unit_test(test_sizes_of_unread_types),
        cmocka_unit_test(test_any_order_of_entries),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_small_files),
        cmocka_unit_test(test_lying_entries),
        cmocka_unit_test(test_overlaps_and_holes),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_huge_header),
        cmocka_unit_test(test_bomb_of_values),
        cmocka_unit_test(test_not_a_file),
        cmocka_unit_test(test_bounds_of_an_input),
        cmocka_unit_test(test_shrinks_later),
        cmocka_unit_test(test_recorded_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
