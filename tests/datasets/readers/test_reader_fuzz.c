/* Random damage to good files of every type: no crash, no hang, no broken promise of the reader.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The seed is printed; AT_FUZZ_SEED=N repeats a run's sequence of files, AT_FUZZ_SECONDS changes its length (a share
 * for each of the four types). A file that breaks a promise is kept and named. */
#include "tests/at_test.h"

#include <time.h>

#include "datasets/readers/reader.h"
#include "tests/support/reader_exercise.h"
#include "tests/support/reader_files.h"
#include "verify/archive/reader_hdf5.h"

static uint64_t random_state;

/* splitmix64 */
static uint64_t next_random(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(size_t n) { return n ? (size_t)(next_random() % n) : 0; }

/* One change of the kinds that damaged and forged files have. `focus`: bytes from the start that get half of the
 * changes, because headers are short and data is long. */
static void mutate_once(struct at_bytes *b, size_t focus) {
    static const uint64_t telling[] = { 0,
                                        1,
                                        0x7f,
                                        0x80,
                                        0xff,
                                        0xffff,
                                        0x7fffffff,
                                        0x80000000u,
                                        0xffffffffu,
                                        0x7fffffffffffffffu,
                                        0x8000000000000000u,
                                        0xffffffffffffffffu };
    static const char text[] = "0123456789-,:[]{}()'\"\\ <>feTF";
    if (b->n == 0)
        return;
    size_t span = next_random() & 1 && focus < b->n ? focus : b->n, at = below(span);
    if (next_random() % 4 == 0) /* from the end: directories of zip files lie there */
        at = b->n - 1 - below(focus < b->n ? focus : b->n);
    int width = 1 << below(4);
    switch (next_random() % 7) {
    case 0:
        b->data[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        b->data[at] = (uint8_t)next_random();
        break;
    case 2:
        b->data[at] = (uint8_t)text[below(sizeof text - 1)];
        break;
    case 3:
        if (at + (size_t)width <= b->n)
            at_bytes_set_le(b, at, telling[below(sizeof telling / sizeof *telling)], width);
        break;
    case 4:
        b->n = at;
        break;
    case 5: { /* a piece of the file again, at its end */
        size_t n = below(b->n - at) % 512;
        struct at_bytes piece = { 0 };
        at_bytes_add(&piece, b->data + at, n);
        at_bytes_add(b, piece.data, n);
        at_bytes_release(&piece);
        break;
    }
    default: { /* a piece taken out */
        size_t n = below(b->n - at) % 16;
        memmove(b->data + at, b->data + at + n, b->n - at - n);
        b->n -= n;
    }
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Short: `make fuzz` takes as long as it is given. */
static double seconds(void) {
    const char *text = getenv("AT_FUZZ_SECONDS");
    return text ? strtod(text, NULL) / 4 : at_test_effort(6) == 1 ? 0.4 : 2.5;
}

/* Damages `seed` 1 to 4 times per file for its share of the time. At least `least` files whatever the time. */
static void fuzz(const char *name, const struct at_bytes *seed, size_t focus, long least) {
    struct at_bytes b = { 0 };
    long files = 0, opened = 0, read = 0, died = 0, silent = 0;
    int result = 0;
    const char *text = getenv("AT_FUZZ_SEED");
    uint64_t start = text ? strtoull(text, NULL, 0) : 20250101;
    random_state = start;
    const char *broken = at_reader_exercise(at_temp_file(name, seed), &result);
    at_assert_true(!broken && result > 1, "the undamaged %s: %s", name, broken ? broken : at_error_message());
    for (double end = now() + seconds(); files < least || now() < end; files++) {
        b.n = 0;
        at_bytes_add(&b, seed->data, seed->n);
        for (size_t changes = next_random() & 1 ? 1 : 1 + below(4); changes > 0; changes--)
            mutate_once(&b, focus);
        broken = at_reader_exercise(at_temp_file(name, &b), &result);
        if (broken) {
            char keep[64];
            snprintf(keep, sizeof keep, "/tmp/at_fuzz_%s", name);
            FILE *out = fopen(keep, "wb");
            if (out) {
                fwrite(b.data, 1, b.n, out);
                fclose(out);
            }
            fail_msg("file %ld of seed %llu: %s (%s); kept as %s", files, (unsigned long long)start, broken,
                     at_error_message(), keep);
        }
        died += result < 2 && strstr(at_error_message(), "died reading it") != NULL;
        silent += result < 2 && strstr(at_error_message(), "does not come back") != NULL;
        opened += result > 0;
        read += result > 1;
    }
    print_message("%s: seed %llu, %ld files, %ld opened, %ld read from; %ld killed the library, %ld held it up\n", name,
                  (unsigned long long)start, files, opened, read, died, silent);
    /* the damage is neither so mild that nothing is refused nor so wild that nothing past the header is reached */
    at_assert_true(opened > 0 && opened < files, "%ld of %ld files opened", opened, files);
    at_bytes_release(&b);
}

static void test_safetensors(void **state) {
    (void)state;
    struct at_bytes seed = { 0 };
    uint8_t data[96] = { 1, 2, 3 };
    at_make_safetensors(&seed,
                        "{\"__metadata__\":{\"origin\":\"a test\"},"
                        "\"q\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                        "\"k\":{\"dtype\":\"BF16\",\"shape\":[4,3],\"data_offsets\":[24,48]},"
                        "\"n\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[48,72]},"
                        "\"v\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,3,4],\"data_offsets\":[72,96]}}",
                        data, sizeof data);
    fuzz("f.safetensors", &seed, seed.n - sizeof data, 200);
    at_bytes_release(&seed);
}

static void make_array(struct at_bytes *out, int version, const char *descr) {
    uint8_t data[480] = { 1, 2, 3 };
    char text[128];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (5, 4, 6), }", descr);
    at_make_npy(out, version, text, data, strtoul(descr + 2, NULL, 10) * 120);
}

static void test_npy(void **state) {
    (void)state;
    struct at_bytes seed = { 0 };
    make_array(&seed, 1, "<f4");
    fuzz("f.npy", &seed, 128, 200);
    at_bytes_release(&seed);
}

static void test_npz(void **state) {
    (void)state;
    struct at_bytes q = { 0 }, k = { 0 }, seed = { 0 };
    make_array(&q, 1, "<f4");
    make_array(&k, 2, "<f2");
    const struct at_zip_source members[] = { { "q.npy", &q, 1, 0 }, { "k.npy", &k, 0, 1 }, { "v.npy", &q, 1, 1 } };
    at_make_zip(&seed, members, 3, 1);
    fuzz("f.npz", &seed, 400, 200);
    at_bytes_release(&q);
    at_bytes_release(&k);
    at_bytes_release(&seed);
}

static void test_hdf5(void **state) {
    (void)state;
    struct at_bytes seed = { 0 };
    uint8_t piece[4096];
    const char *path = at_temp_path("seed.h5");
    at_make_hdf5(path);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    for (size_t n; (n = fread(piece, 1, sizeof piece, in)) > 0;)
        at_bytes_add(&seed, piece, n);
    fclose(in);
    fuzz("f.h5", &seed, 4096, 20);
    at_bytes_release(&seed);
}

int main(void) {
    at_reader_hdf5_register();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_npy),
        cmocka_unit_test(test_npz),
        cmocka_unit_test(test_hdf5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
