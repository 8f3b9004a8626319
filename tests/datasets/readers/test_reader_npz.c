/* Reader of npz: stored, deflated and zip64 members, ranges, damage, and archives that lie.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "datasets/readers/reader.h"
#include "tests/support/reader_files.h"

enum { COUNT = 20000 }; /* several pieces of the unpacker */

static void make_member(struct at_bytes *out, enum at_format format, const char *descr) {
    char text[128];
    uint8_t *codes = malloc((size_t)COUNT * 8);
    assert_non_null(codes);
    for (int64_t i = 0; i < COUNT; i++)
        at_store(format, codes, (size_t)i, at_sample_value(i));
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, 2), }", descr, COUNT / 2);
    at_make_npy(out, 1, text, codes, COUNT * at_format_info(format)->bytes);
    free(codes);
}

/* q stored f32, k deflated f16, v deflated f64, and a file that is no array. */
static void make_good(struct at_bytes *out, int zip64) {
    struct at_bytes q = { 0 }, k = { 0 }, v = { 0 }, note = { 0 };
    make_member(&q, AT_F32, "<f4");
    make_member(&k, AT_F16, "<f2");
    make_member(&v, AT_F64, "<f8");
    at_bytes_add(&note, "not an array", 12);
    const struct at_zip_source members[] = {
        { "q.npy", &q, 0, zip64 }, { "k.npy", &k, 1, zip64 }, { "note.txt", &note, 0, 0 }, { "v.npy", &v, 1, 0 }
    };
    at_make_zip(out, members, 4, zip64);
    at_bytes_release(&q);
    at_bytes_release(&k);
    at_bytes_release(&v);
    at_bytes_release(&note);
}

static void check_range(struct at_reader *reader, int i, int64_t first, int64_t n) {
    static double got[COUNT];
    at_assert_ok(at_reader_read_f64(reader, i, first, n, got));
    for (int64_t k = 0; k < n; k++)
        at_assert_same(got[k], at_sample_value(first + k));
}

static void test_good_archives(void **state) {
    (void)state;
    for (int zip64 = 0; zip64 < 2; zip64++) {
        struct at_bytes bytes = { 0 };
        struct at_reader *reader;
        make_good(&bytes, zip64);
        at_assert_ok(at_reader_open(at_temp_file("t.npz", &bytes), &reader));
        assert_int_equal(at_reader_count(reader), 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(at_reader_tensor(reader, i)->shape[0], COUNT / 2);
            check_range(reader, i, 0, COUNT);
            check_range(reader, i, 19000, 1000); /* forwards, */
            check_range(reader, i, 3, 5000);     /* back, */
            check_range(reader, i, 9000, 5000);  /* on, */
            check_range(reader, i, 0, 5000);     /* and back from the middle */
        }
        assert_int_equal(at_reader_tensor(reader, at_reader_find(reader, "k"))->format, AT_F16);
        assert_int_equal(at_reader_tensor(reader, at_reader_find(reader, "v"))->format, AT_F64);
        at_reader_close(reader);
        at_bytes_release(&bytes);
    }
}

static void test_empty_archive(void **state) {
    (void)state;
    struct at_bytes bytes = { 0 };
    struct at_reader *reader;
    at_make_zip(&bytes, NULL, 0, 0);
    at_assert_ok(at_reader_open(at_temp_file("t.npz", &bytes), &reader));
    assert_int_equal(at_reader_count(reader), 0);
    at_reader_close(reader);
    at_bytes_release(&bytes);
}

/* A small archive of one member, and where its parts lie. */
struct small {
    struct at_bytes bytes;
    size_t directory, end;
    size_t end64, locator; /* with zip64 */
    const char *path;
};

static void make_small_of(struct small *s, int deflate, int zip64) {
    struct at_bytes q = { 0 };
    float data[256] = { 0 };
    at_make_npy(&q, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (256,), }", data, sizeof data);
    const struct at_zip_source member = { "q.npy", &q, deflate, zip64 };
    s->bytes.n = 0;
    at_make_zip(&s->bytes, &member, 1, zip64);
    at_bytes_release(&q);
    s->end = s->bytes.n - 22;
    s->locator = s->end - 20;
    s->end64 = s->locator - 56;
    s->directory = zip64 ? s->end64 - 46 - 5 - 28 : s->end - 46 - 5;
}

static void make_small(struct small *s, int deflate) { make_small_of(s, deflate, 0); }

/* Puts n bytes at `at`; what lies behind moves. */
static void insert_bytes(struct at_bytes *bytes, size_t at, const void *data, size_t n) {
    at_bytes_add(bytes, data, n);
    memmove(bytes->data + at + n, bytes->data + at, bytes->n - n - at);
    memcpy(bytes->data + at, data, n);
}

static at_status open_small(struct small *s, struct at_reader **reader) {
    s->path = at_temp_file("t.npz", &s->bytes);
    return at_reader_open(s->path, reader);
}

/* One field of the directory's entry or of the end record replaced. */
static void test_lying_fields(void **state) {
    (void)state;
    enum { ENTRY, END, LOCAL };
    static const struct {
        int part, at;
        uint64_t value;
        int bytes;
        at_status want;
        const char *text;
    } lies[] = {
        { ENTRY, 0, 0, 1, AT_USAGE, "no entry of the zip directory" },
        { ENTRY, 8, 1, 2, AT_UNSUPPORTED, "is encrypted" },
        { ENTRY, 8, 0x40, 2, AT_UNSUPPORTED, "is encrypted" },
        { ENTRY, 8, 0x2000, 2, AT_UNSUPPORTED, "is encrypted" },
        { ENTRY, 10, 12, 2, AT_UNSUPPORTED, "compression method 12, wanted 0 (stored) or 8 (deflate)" },
        { ENTRY, 10, 0, 2, AT_USAGE, "stored ones, more or less than can" },
        { ENTRY, 20, 0x7fffffff, 4, AT_USAGE, "2147483647 bytes at offset 0" },
        { ENTRY, 24, 0x7fffffff, 4, AT_USAGE, "says 2147483647 bytes come out of" },
        { ENTRY, 24, UINT32_MAX, 4, AT_USAGE, "zip64 field that is not there" },
        { ENTRY, 28, 0xffff, 2, AT_USAGE, "beyond the directory's end" },
        { ENTRY, 30, 1, 2, AT_USAGE, "beyond the directory's end" },
        { ENTRY, 42, 1, 4, AT_USAGE, "no local header of member 'q.npy'" },
        { ENTRY, 42, 0x10000000, 4, AT_USAGE, "at offset 268435456" },
        { ENTRY, 46, 7, 1, AT_USAGE, "control character 0x07" },
        { ENTRY, 46, 0xff, 1, AT_USAGE, "is not UTF-8" },
        { END, 4, 1, 2, AT_UNSUPPORTED, "several disks" },
        { END, 8, 0xffff, 4, AT_UNSUPPORTED, "several disks" },
        { END, 8, 0xffffffff, 4, AT_USAGE, "for 65535 members" },
        { END, 8, 0, 4, AT_USAGE, "after its last entry" },
        { END, 8, 0x00020002, 4, AT_USAGE, "for 2 members" },
        { END, 12, 1, 4, AT_USAGE, "zip directory of 1 bytes" },
        { END, 16, UINT32_MAX, 4, AT_USAGE, "at 4294967295" },
        { END, 20, 1, 2, AT_USAGE, "no zip end record" },
        { LOCAL, 0, 'Q', 1, AT_USAGE, "not a tensor file" },
        { LOCAL, 8, 0, 2, AT_USAGE, "no local header" },
        { LOCAL, 26, 4, 2, AT_USAGE, "no local header" },
        { LOCAL, 28, 0xffff, 2, AT_USAGE, "reach past" },
        { LOCAL, 30, 'p', 1, AT_USAGE, "names another member" },
    };
    struct small s = { 0 };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct at_reader *reader;
        make_small(&s, 1);
        size_t start = lies[i].part == ENTRY ? s.directory : lies[i].part == END ? s.end : 0;
        at_bytes_set_le(&s.bytes, start + (size_t)lies[i].at, lies[i].value, lies[i].bytes);
        if (lies[i].part == LOCAL && lies[i].at == 0) { /* without its magic only the suffix names the type */
            const char *path = at_temp_file("t.unknown", &s.bytes);
            at_assert_fails(at_reader_open(path, &reader), lies[i].want, lies[i].text);
            continue;
        }
        at_assert_fails(open_small(&s, &reader), lies[i].want, lies[i].text);
        at_assert_true(strstr(at_error_message(), "t.npz") != NULL, "the file is not named: %s", at_error_message());
    }
    at_bytes_release(&s.bytes);
}

/* The same in an archive with zip64 fields, which can hold any 64-bit number. */
static void test_lying_zip64_fields(void **state) {
    (void)state;
    enum { EXTRA, END64, LOCATOR };
    static const struct {
        int part, at;
        uint64_t value;
        int bytes;
        const char *text;
    } lies[] = {
        { EXTRA, 0, 2, 2, "zip64 field that is not there" },
        { EXTRA, 2, 23, 2, "zip64 field that is not there or too short" },
        { EXTRA, 2, 0xffff, 2, "zip64 field that is not there" },
        { EXTRA, 4, UINT64_C(1) << 63, 8, "says 9223372036854775808 bytes come out of" },
        { EXTRA, 12, UINT64_MAX, 8, "18446744073709551615 bytes at offset 0" },
        { EXTRA, 20, UINT64_C(1) << 63, 8, "bytes at offset 9223372036854775808" },
        { END64, 32, 4097, 8, "zip64 directory of 4097 members" },
        { END64, 32, 2, 8, "for 2 members" },
        { END64, 40, UINT64_MAX, 8, "18446744073709551615 bytes at" },
        { END64, 40, 78, 8, "zip directory of 78 bytes" },
        { END64, 48, UINT64_C(1) << 63, 8, "bytes at 9223372036854775808; wanted" },
        { LOCATOR, 8, 0, 8, "offset 0: no zip64 end record" },
        { LOCATOR, 8, UINT64_C(1) << 63, 8, "zip64 end record at 9223372036854775808, beyond its place" },
    };
    struct small s = { 0 };
    struct at_reader *reader;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        make_small_of(&s, 1, 1);
        size_t start = lies[i].part == EXTRA ? s.directory + 51 : lies[i].part == END64 ? s.end64 : s.locator;
        at_bytes_set_le(&s.bytes, start + (size_t)lies[i].at, lies[i].value, lies[i].bytes);
        at_assert_fails(open_small(&s, &reader), AT_USAGE, lies[i].text);
    }
    /* offset and size that wrap around to where the directory begins */
    make_small_of(&s, 0, 1);
    at_bytes_set_le(&s.bytes, s.directory + 51 + 4, UINT64_MAX, 8);
    at_bytes_set_le(&s.bytes, s.directory + 51 + 12, UINT64_MAX, 8);
    at_bytes_set_le(&s.bytes, s.directory + 51 + 20, 1, 8);
    at_assert_fails(open_small(&s, &reader), AT_USAGE, "18446744073709551615 bytes at offset 1,");
    at_bytes_release(&s.bytes);
}

/* A comment is no part of the archive, whatever it looks like; nor is what is cut short an entry. */
static void test_comments(void **state) {
    (void)state;
    struct small s = { 0 };
    struct at_reader *reader;
    uint8_t end[46] = "PK\5\6", entry[41] = "PK\1\2";
    memset(end + 4, 0xff, sizeof end - 4);
    make_small(&s, 1);
    at_bytes_set_le(&s.bytes, s.end + 20, sizeof end, 2);
    at_bytes_add(&s.bytes, end, sizeof end);
    at_assert_ok(open_small(&s, &reader));
    at_reader_close(reader);
    make_small(&s, 1);
    insert_bytes(&s.bytes, s.end, entry, sizeof entry);
    at_bytes_set_le(&s.bytes, s.directory + 32, sizeof entry, 2);
    at_bytes_set_le(&s.bytes, s.end + sizeof entry + 12, 51 + sizeof entry, 4);
    at_assert_ok(open_small(&s, &reader));
    at_reader_close(reader);
    at_bytes_set_le(&s.bytes, s.directory + 32, 0, 2);
    at_bytes_set_le(&s.bytes, s.end + sizeof entry + 8, 0x00020002, 4);
    at_assert_fails(open_small(&s, &reader), AT_USAGE, "no entry of the zip directory there");
    at_bytes_release(&s.bytes);
}

/* Bytes that belong to a member but not to its deflated data, and deflated data that ends too early. */
static void test_packed_size(void **state) {
    (void)state;
    struct small s = { 0 };
    struct at_reader *reader;
    float one;
    make_small(&s, 1);
    uint64_t packed = s.directory - 35;
    insert_bytes(&s.bytes, s.directory, "abc", 3);
    at_bytes_set_le(&s.bytes, s.directory + 3 + 20, packed + 3, 4);
    at_bytes_set_le(&s.bytes, s.end + 3 + 16, s.directory + 3, 4);
    at_assert_ok(open_small(&s, &reader));
    at_assert_fails(at_reader_read(reader, 0, 0, 1, &one), AT_USAGE, "deflated data is left over");
    at_reader_close(reader);
    make_small(&s, 1);
    at_bytes_set_le(&s.bytes, s.directory + 20, packed - 4, 4);
    at_assert_fails(open_small(&s, &reader), AT_USAGE, "the deflated data is cut short");
    at_bytes_release(&s.bytes);
}

/* What only unpacking shows: refused by the first read of any range, before an element is handed out. */
static void test_damaged_members(void **state) {
    (void)state;
    static const struct {
        int deflate, crc; /* crc: exclusive-or onto the declared one */
        const char *text;
    } lies[] = {
        { 0, 1, "its bytes are damaged" },
        { 1, 1, "its bytes are damaged" },
    };
    struct small s = { 0 };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct at_reader *reader;
        float one;
        make_small(&s, lies[i].deflate);
        s.bytes.data[s.directory + 16] ^= (uint8_t)lies[i].crc;
        at_assert_ok(open_small(&s, &reader));
        at_assert_fails(at_reader_read(reader, 0, 3, 1, &one), AT_USAGE, lies[i].text);
        at_assert_fails(at_reader_read(reader, 0, 3, 1, &one), AT_USAGE, lies[i].text);
        at_reader_close(reader);
    }
    at_bytes_release(&s.bytes);
}

/* Declared sizes that differ from what comes out: the header of the array shows it, or the first read does. */
static void test_declared_sizes(void **state) {
    (void)state;
    struct small s = { 0 };
    struct at_reader *reader;
    make_small(&s, 1);
    uint64_t unpacked = 128 + 1024;
    at_bytes_set_le(&s.bytes, s.directory + 24, unpacked - 4, 4);
    at_assert_fails(open_small(&s, &reader), AT_USAGE, "holds 1020 bytes of elements");
    at_bytes_set_le(&s.bytes, s.directory + 24, unpacked + 4, 4);
    at_assert_fails(open_small(&s, &reader), AT_USAGE, "unpacks to 1152 bytes, says 1156");
    make_small(&s, 0); /* a stored member cannot hold more bytes than it gives */
    at_bytes_set_le(&s.bytes, s.directory + 24, unpacked - 4, 4);
    at_assert_fails(open_small(&s, &reader), AT_USAGE, "says 1148 bytes come out of 1152 stored ones");
    make_small(&s, 1);
    s.bytes.data[30 + 5] = 0x07; /* a block type that deflate does not have */
    at_assert_fails(open_small(&s, &reader), AT_USAGE, "damaged at unpacked byte 0");
    at_bytes_release(&s.bytes);
}

/* The array's own header is right for a longer member: what is past the declared size is seen at the first read. */
static void test_member_unpacks_to_more(void **state) {
    (void)state;
    struct at_bytes longer = { 0 }, bytes = { 0 };
    float data[257] = { 0 }, one;
    for (size_t more = 1; more <= sizeof one; more++) {
        struct at_reader *reader;
        longer.n = bytes.n = 0;
        at_make_npy(&longer, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (256,), }", data, 1024 + more);
        const struct at_zip_source member = { "q.npy", &longer, 1, 0 };
        at_make_zip(&bytes, &member, 1, 0);
        at_bytes_set_le(&bytes, bytes.n - 22 - 51 + 24, longer.n - more, 4);
        at_assert_ok(at_reader_open(at_temp_file("t.npz", &bytes), &reader));
        at_assert_fails(at_reader_read(reader, 0, 0, 1, &one), AT_USAGE, "unpacks to more after the 1152 bytes");
        at_reader_close(reader);
    }
    at_bytes_release(&longer);
    at_bytes_release(&bytes);
}

static void test_overlap_and_duplicates(void **state) {
    (void)state;
    struct at_bytes q = { 0 }, bytes = { 0 };
    struct at_reader *reader;
    float data[2] = { 0 };
    at_make_npy(&q, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", data, sizeof data);
    const struct at_zip_source twice[] = { { "q.npy", &q, 0, 0 }, { "q.npy", &q, 0, 0 } };
    at_make_zip(&bytes, twice, 2, 0);
    at_assert_fails(at_reader_open(at_temp_file("t.npz", &bytes), &reader), AT_USAGE, "two members are called 'q.npy'");
    bytes.n = 0; /* not neighbours; names shorter than ".npy" are no arrays */
    const struct at_zip_source thrice[] = {
        { "a", &q, 0, 0 }, { "q.npy", &q, 0, 0 }, { "k.npy", &q, 0, 0 }, { "q.npy", &q, 0, 0 }
    };
    at_make_zip(&bytes, thrice, 4, 0);
    at_assert_fails(at_reader_open(at_temp_file("t.npz", &bytes), &reader), AT_USAGE, "two members are called 'q.npy'");
    bytes.n = 0;
    at_make_zip(&bytes, thrice, 3, 0); /* the directory need not be in the order of the file */
    uint8_t entry[51], *last = bytes.data + bytes.n - 22 - 51;
    memcpy(entry, last, 51);
    memcpy(last, last - 51, 51);
    memcpy(last - 51, entry, 51);
    at_assert_ok(at_reader_open(at_temp_file("t.npz", &bytes), &reader));
    assert_int_equal(at_reader_count(reader), 2);
    at_reader_close(reader);
    bytes.n = 0;
    at_make_zip(&bytes, twice, 2, 0);
    size_t second = bytes.n - 22 - 51;
    at_bytes_set_le(&bytes, second + 42, 0, 4); /* both entries name the first member's bytes */
    at_assert_fails(at_reader_open(at_temp_file("t.npz", &bytes), &reader), AT_USAGE, "inside the one before");
    at_bytes_release(&q);
    at_bytes_release(&bytes);
}

static void test_truncated_everywhere(void **state) {
    (void)state;
    struct small s = { 0 };
    struct at_reader *reader;
    make_small(&s, 1);
    size_t whole = s.bytes.n;
    for (s.bytes.n = 0; s.bytes.n < whole; s.bytes.n++)
        at_assert_fails(open_small(&s, &reader), AT_USAGE, "t.npz");
    at_assert_ok(open_small(&s, &reader));
    at_reader_close(reader);
    at_bytes_release(&s.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_archives),
        cmocka_unit_test(test_empty_archive),
        cmocka_unit_test(test_lying_fields),
        cmocka_unit_test(test_lying_zip64_fields),
        cmocka_unit_test(test_comments),
        cmocka_unit_test(test_packed_size),
        cmocka_unit_test(test_damaged_members),
        cmocka_unit_test(test_declared_sizes),
        cmocka_unit_test(test_member_unpacks_to_more),
        cmocka_unit_test(test_overlap_and_duplicates),
        cmocka_unit_test(test_truncated_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
