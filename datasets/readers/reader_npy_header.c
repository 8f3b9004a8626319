/* The npy header: what an npy file and every member of an npz file begins with.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source: numpy's format description (numpy.lib.format), versions 1.0, 2.0 and 3.0. Magic, version, header
 * length (u16 in version 1, u32 later), a Python dictionary with exactly the keys descr, fortran_order and
 * shape, padded with spaces and ended by a newline; then the elements. The grammar taken here is the strict
 * subset that numpy writes. Big-endian and Fortran-ordered arrays are listed and not read. */
#include "datasets/readers/reader_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The header text while it is parsed. */
struct cursor {
    const char *where;
    const char *text;
    int64_t at, n;
    int64_t base; /* offset of the text, for messages */
};

/* What the dictionary says. */
struct header {
    int seen[3];    /* descr, fortran_order, shape */
    char descr[24]; /* "structured" when it is a list */
    int structured, fortran;
    int64_t rank, shape[AT_READER_MAX_RANK];
};

static const char *const keys[3] = { "descr", "fortran_order", "shape" };

static void skip_spaces(struct cursor *c) {
    while (c->at < c->n && (c->text[c->at] == ' ' || c->text[c->at] == '\n'))
        c->at++;
}

/* The next character that is no space; 0 at the end. */
static char peek(struct cursor *c) {
    skip_spaces(c);
    return c->at < c->n ? c->text[c->at] : 0;
}

static int take(struct cursor *c, char wanted) {
    if (peek(c) != wanted)
        return 0;
    c->at++;
    return 1;
}

static at_status unexpected(const struct cursor *c, const char *wanted) {
    unsigned found = c->at < c->n ? (unsigned char)c->text[c->at] : 0;
    if (c->at >= c->n)
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": the npy header ends, wanted %s", c->where, c->base + c->at,
                       wanted);
    return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": npy header: found byte 0x%02x, wanted %s", c->where,
                   c->base + c->at, found, wanted);
}

/* A quoted text of printable characters without escapes. */
static at_status get_text(struct cursor *c, char *out, size_t capacity) {
    char quote = peek(c);
    if (quote != '\'' && quote != '"')
        return unexpected(c, "a quoted text");
    c->at++;
    size_t used = 0;
    for (; c->at < c->n && c->text[c->at] != quote; c->at++) {
        char ch = c->text[c->at];
        if (ch < 0x20 || ch > 0x7e || ch == '\\' || used + 1 >= capacity)
            return unexpected(c, "a short text of plain ASCII");
        out[used++] = ch;
    }
    out[used] = 0;
    if (c->at >= c->n)
        return unexpected(c, "the end of a quoted text");
    c->at++;
    return AT_OK;
}

/* A descr that is a list: a record type. Skipped, brackets matched. */
static at_status skip_list(struct cursor *c) {
    int64_t depth = 0;
    do {
        char ch = peek(c);
        if (ch == '\'' || ch == '"') {
            char text[256];
            AT_TRY(get_text(c, text, sizeof text));
            continue;
        }
        depth += (ch == '[' || ch == '(') - (ch == ']' || ch == ')');
        if (ch == 0 || ch == '{' || ch == '}')
            return unexpected(c, "the end of the list of fields");
        c->at++;
    } while (depth > 0);
    return AT_OK;
}

static at_status get_bool(struct cursor *c, int *out) {
    static const char *const words[2] = { "False", "True" };
    skip_spaces(c);
    for (int i = 0; i < 2; i++) {
        int64_t n = (int64_t)strlen(words[i]);
        if (c->n - c->at >= n && memcmp(c->text + c->at, words[i], (size_t)n) == 0) {
            c->at += n;
            *out = i;
            return AT_OK;
        }
    }
    return unexpected(c, "True or False");
}

static at_status get_extent(struct cursor *c, int64_t *out) {
    int64_t value = 0, digits = 0;
    skip_spaces(c);
    for (; c->at < c->n && c->text[c->at] >= '0' && c->text[c->at] <= '9'; c->at++, digits++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, c->text[c->at] - '0', &value))
            return unexpected(c, "an extent below 2^63");
    if (digits == 0)
        return unexpected(c, "an extent: digits");
    *out = value;
    return AT_OK;
}

/* (), (3,), (3, 4), (3, 4,) */
static at_status get_shape(struct cursor *c, struct header *h) {
    if (!take(c, '('))
        return unexpected(c, "'(', the start of the shape");
    while (peek(c) != ')') {
        int64_t extent = 0;
        AT_TRY(get_extent(c, &extent));
        if (h->rank < AT_READER_MAX_RANK)
            h->shape[h->rank] = extent;
        h->rank++;
        if (!take(c, ',') && (h->rank == 1 || peek(c) != ')'))
            return unexpected(c, "',' after an extent");
    }
    c->at++;
    return AT_OK;
}

static at_status get_value(struct cursor *c, struct header *h, int key) {
    if (key == 1)
        return get_bool(c, &h->fortran);
    if (key == 2)
        return get_shape(c, h);
    if (peek(c) != '[')
        return get_text(c, h->descr, sizeof h->descr);
    h->structured = 1;
    snprintf(h->descr, sizeof h->descr, "structured");
    return skip_list(c);
}

static at_status get_dictionary(struct cursor *c, struct header *h) {
    if (!take(c, '{'))
        return unexpected(c, "'{', the start of the dictionary");
    while (peek(c) != '}') {
        char name[24];
        AT_TRY(get_text(c, name, sizeof name));
        int key = 0;
        while (key < 3 && strcmp(name, keys[key]) != 0)
            key++;
        if (key == 3 || h->seen[key])
            return AT_FAIL(AT_USAGE, "%s: npy header: key '%s' is %s; wanted descr, fortran_order and shape, each once",
                           c->where, name, key == 3 ? "unknown" : "there twice");
        h->seen[key] = 1;
        if (!take(c, ':'))
            return unexpected(c, "':'");
        AT_TRY(get_value(c, h, key));
        if (!take(c, ',') && peek(c) != '}')
            return unexpected(c, "',' or '}'");
    }
    c->at++;
    for (int key = 0; key < 3; key++)
        if (!h->seen[key])
            return AT_FAIL(AT_USAGE, "%s: npy header: key '%s' is missing", c->where, keys[key]);
    if (peek(c) != 0 || c->at != c->n)
        return unexpected(c, "nothing after the dictionary");
    return AT_OK;
}

/* Bytes per element of a descr like "<f4"; 0 when it is not of that plain kind. Unicode counts characters. */
static int64_t element_bytes(const char *descr) {
    const char *kind = descr + (descr[0] && strchr("<>|=", descr[0]) != NULL);
    size_t digits = strspn(kind[0] ? kind + 1 : kind, "0123456789");
    if (!kind[0] || !strchr("biufcSVU", kind[0]) || digits == 0 || digits > 9 || kind[1 + digits])
        return 0;
    return strtoll(kind + 1, NULL, 10) * (kind[0] == 'U' ? 4 : 1);
}

static void set_format(struct at_file_tensor *tensor, const struct header *h) {
    static const struct {
        const char *descr;
        enum at_format format;
    } known[] = { { "<f8", AT_F64 }, { "<f4", AT_F32 }, { "<f2", AT_F16 }, { "<i4", AT_I32 } };
    tensor->supported = 0;
    tensor->format = AT_I32;
    /* The order of elements differs only where there are two extents to swap. */
    int swapped = h->fortran && h->rank > 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!h->structured && !swapped && strcmp(known[i].descr, h->descr) == 0) {
            tensor->supported = 1;
            tensor->format = known[i].format;
        }
    snprintf(tensor->type_name, sizeof tensor->type_name, "%s%s", h->descr, swapped ? " Fortran" : "");
}

/* Magic, version and header length: where the text starts and how long it is. */
static at_status find_text(const char *where, const uint8_t *bytes, int64_t n, int64_t total, int64_t *start,
                           int64_t *length) {
    if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return AT_FAIL(AT_USAGE, "%s: offset 0: not an npy array: wanted the bytes 93 'NUMPY' and a version", where);
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return AT_FAIL(AT_USAGE, "%s: offset 6: npy version %d.%d, wanted 1.0, 2.0 or 3.0", where, bytes[6], bytes[7]);
    int field = bytes[6] == 1 ? 2 : 4;
    *start = 8 + field;
    *length = n < *start ? 0 : (int64_t)at_read_le(bytes + 8, field);
    if (n < *start || *length > AT_NPY_MAX_HEADER || *length > total - *start)
        return AT_FAIL(AT_USAGE,
                       "%s: offset 8: npy header of %" PRId64 " bytes, wanted at most %d within %" PRId64 " bytes",
                       where, *length, AT_NPY_MAX_HEADER, total);
    return AT_OK;
}

at_status at_npy_parse(const char *where, const uint8_t *bytes, int64_t n, int64_t total, struct at_file_tensor *tensor,
                       int64_t *data_offset) {
    int64_t start = 0, length = 0;
    AT_TRY(find_text(where, bytes, n, total, &start, &length));
    if (length == 0 || bytes[start + length - 1] != '\n')
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": the npy header does not end with a newline", where,
                       start + length);
    struct cursor c = { .where = where, .text = (const char *)bytes + start, .n = length, .base = start };
    struct header h = { 0 };
    AT_TRY(get_dictionary(&c, &h));
    AT_TRY(at_shape_set(where, tensor, h.rank, h.shape));
    set_format(tensor, &h);
    *data_offset = start + length;
    int64_t element = h.structured ? 0 : element_bytes(h.descr), held = total - *data_offset;
    tensor->bytes = held;
    if (element)
        AT_TRY(at_shape_bytes(where, tensor, element, &tensor->bytes));
    if (tensor->bytes != held)
        return AT_FAIL(AT_USAGE, "%s: holds %" PRId64 " bytes of elements, its shape and type '%s' want %" PRId64,
                       where, held, tensor->type_name, tensor->bytes);
    return AT_OK;
}
