/* What the tests of archives share: a folder, files as bytes, records compared.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARCHIVE_FILES_H
#define AT_ARCHIVE_FILES_H

#include <unistd.h>

#include "tests/at_test.h"
#include "tests/support/sample_record.h"

static char folder[64], path[128], other[128];

static inline int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/at_archive_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/run.h5", folder);
    snprintf(other, sizeof other, "%s/other.h5", folder);
    return 0;
}

/* Fails when a temporary file was left behind. */
static inline int remove_folder(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

static inline char *load(const char *file, size_t *n) {
    FILE *in = fopen(file, "rb");
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    *n = (size_t)ftell(in);
    rewind(in);
    char *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, in), *n);
    fclose(in);
    return bytes;
}

static inline void store(const char *file, const char *bytes, size_t n) {
    FILE *out = fopen(file, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(out);
}

static inline void assert_same_file(const char *a, const char *b) {
    size_t na, nb;
    char *x = load(a, &na), *y = load(b, &nb);
    at_assert_true(na == nb && memcmp(x, y, na) == 0, "%s and %s differ", a, b);
    free(x);
    free(y);
}

/* Equal in everything but the times. */
static inline void assert_equal_records(const struct at_run_record *got, const struct at_run_record *want) {
    assert_string_equal(got->request, want->request);
    assert_string_equal(got->provenance, want->provenance);
    assert_int_equal(got->n, want->n);
    for (int64_t i = 0; i < want->n; i++) {
        struct at_result timeless = want->results[i];
        char *a = NULL, *b = NULL;
        timeless.seconds = 0;
        at_assert_ok(at_result_to_json(&got->results[i], &a));
        at_assert_ok(at_result_to_json(&timeless, &b));
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

#endif
