/* Opens any file as a tensor file and checks what the reader promises about it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/reader_exercise.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "datasets/readers/reader.h"

enum { MAX_TENSORS = 24, PIECE = 1024 };

static const char *check_message(const char *path) {
    const char *message = at_error_message();
    if (!strstr(message, path))
        return "a failure does not name the file";
    return strchr(message, '\n') ? "a failure has more than one line" : NULL;
}

static const char *check_tensor(const struct at_file_tensor *t) {
    int64_t product = 1;
    int empty = 0;
    if (!memchr(t->name, 0, sizeof t->name) || !memchr(t->type_name, 0, sizeof t->type_name))
        return "a name is not ended";
    if (t->rank < 0 || t->rank > AT_READER_MAX_RANK || t->bytes < 0)
        return "rank or bytes out of range";
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0)
            return "a negative extent";
        empty |= t->shape[i] == 0;
        if (t->shape[i] != 0 && __builtin_mul_overflow(product, t->shape[i], &product))
            return "the shape overflows";
    }
    if (t->count != (empty ? 0 : product) && t->supported)
        return "count is not the shape's product";
    if (t->supported && t->bytes != t->count * (int64_t)at_format_info(t->format)->bytes)
        return "bytes are not count times element";
    return NULL;
}

static const char *read_some(const char *path, struct at_reader *reader, int i, int *opened) {
    const struct at_file_tensor *t = at_reader_tensor(reader, i);
    double values[PIECE];
    int64_t n = t->count < PIECE ? t->count : PIECE;
    const int64_t starts[3] = { 0, (t->count - n) / 2, t->count - n };
    int good = 0;
    for (int s = 0; s < 3; s++) {
        at_error_clear();
        at_status status = at_reader_read_f64(reader, i, starts[s], n, values);
        if (status == AT_OK && !t->supported)
            return "a tensor that is not supported was read";
        if (status != AT_OK && check_message(path))
            return check_message(path);
        good += status == AT_OK;
    }
    *opened += good == 3;
    if (at_reader_read_f64(reader, i, t->count, 1, values) == AT_OK)
        return "an element past the end was read";
    return NULL;
}

const char *at_reader_exercise(const char *path, int *opened) {
    struct at_reader *reader = NULL;
    *opened = 0;
    at_error_clear();
    if (at_reader_open(path, &reader) != AT_OK)
        return reader ? "a failure left a reader" : check_message(path);
    const char *broken = NULL;
    *opened = 1;
    for (int i = 0; i < at_reader_count(reader) && i < MAX_TENSORS && !broken; i++) {
        broken = check_tensor(at_reader_tensor(reader, i));
        if (!broken)
            broken = read_some(path, reader, i, opened);
    }
    at_reader_close(reader);
    return broken;
}
