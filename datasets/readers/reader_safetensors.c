/* Reader of safetensors files.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source: the format description of the safetensors project. u64 header length, a JSON object of that many
 * bytes (may be padded with spaces), then the tensors' bytes, little-endian and row-major. The object maps
 * a name to {"dtype", "shape", "data_offsets": [begin, end)}, offsets counted from the end of the header;
 * "__metadata__" maps text to text. The tensors cover the rest of the file without overlap or hole. */
#include "datasets/readers/reader_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_MARKS bounds the memory that a header can make the JSON parser take: a value costs up to some 200 bytes
 * and at least one of , : { [ outside of texts; an honest tensor has about 14 of them. */
enum { MAX_HEADER = 100000000, MAX_MARKS = 1000000, MAX_DEPTH = 3 };

struct handle {
    struct at_input input;
    int64_t *begin; /* of each tensor, from the start of the file */
};

/* One tensor while the header is parsed. */
struct entry {
    struct at_file_tensor tensor;
    int64_t begin, end; /* from the end of the header */
};

static const struct {
    const char *word;
    int bytes;     /* per element */
    int supported; /* 1: `format` holds */
    enum at_format format;
} dtypes[] = {
    { "F64", 8, 1, AT_F64 },      { "F32", 4, 1, AT_F32 },      { "F16", 2, 1, AT_F16 },  { "BF16", 2, 1, AT_BF16 },
    { "F8_E4M3", 1, 1, AT_E4M3 }, { "F8_E5M2", 1, 1, AT_E5M2 }, { "I32", 4, 1, AT_I32 },  { "I64", 8, 0, AT_I32 },
    { "U64", 8, 0, AT_I32 },      { "U32", 4, 0, AT_I32 },      { "I16", 2, 0, AT_I32 },  { "U16", 2, 0, AT_I32 },
    { "I8", 1, 0, AT_I32 },       { "U8", 1, 0, AT_I32 },       { "BOOL", 1, 0, AT_I32 },
};

/* Refuses headers whose nesting or number of values no table of tensors needs, before they are parsed. */
static at_status check_complexity(const char *path, const char *text, int64_t n) {
    int64_t marks = 0;
    int depth = 0, in_text = 0;
    for (int64_t i = 0; i < n; i++) {
        char c = text[i];
        if (in_text) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_text = 0;
            continue;
        }
        in_text = c == '"';
        int opens = c == '{' || c == '[';
        marks += opens || c == ',' || c == ':';
        depth += opens - (c == '}' || c == ']');
        if (depth > MAX_DEPTH)
            return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": the header nests %d deep, wanted at most %d", path, i + 8,
                           depth, MAX_DEPTH);
        if (marks > MAX_MARKS)
            return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": the header has more than %d values", path, i + 8,
                           MAX_MARKS);
    }
    return AT_OK;
}

/* Reads and parses the JSON object; *start is where the tensors' bytes begin. */
static at_status read_header(const struct at_input *input, json_t **header, int64_t *start) {
    uint8_t field[8];
    if (input->size < 8)
        return AT_FAIL(AT_USAGE, "%s: has %" PRId64 " bytes, wanted at least 8 for the header's length", input->path,
                       input->size);
    AT_TRY(at_input_read(input, 0, 8, field));
    uint64_t n = at_read_le(field, 8);
    int64_t room = input->size - 8;
    if (n < 2 || n > MAX_HEADER || n > (uint64_t)room)
        return AT_FAIL(AT_USAGE, "%s: offset 0: header length %" PRIu64 ", wanted 2 to %" PRId64, input->path, n,
                       room < MAX_HEADER ? room : (int64_t)MAX_HEADER);
    char *text = malloc(n);
    if (!text)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for a header of %" PRIu64 " bytes", input->path, n);
    at_status status = at_input_read(input, 8, (int64_t)n, text);
    if (status == AT_OK && text[0] != '{')
        status = AT_FAIL(AT_USAGE, "%s: offset 8: found byte 0x%02x, wanted '{', the start of the header", input->path,
                         (unsigned)(unsigned char)text[0]);
    if (status == AT_OK)
        status = check_complexity(input->path, text, (int64_t)n);
    json_error_t error;
    if (status == AT_OK && !(*header = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error)))
        status = AT_FAIL(AT_USAGE, "%s: offset %d: the header is not JSON: %.200s", input->path, error.position + 8,
                         error.text);
    free(text);
    *start = 8 + (int64_t)n;
    return status;
}

/* A non-negative integer of a tensor's entry. */
static at_status get_size(const char *where, const char *field, const json_t *value, int64_t *out) {
    if (!json_is_integer(value))
        return AT_FAIL(AT_USAGE, "%s: %s holds something that is not an integer", where, field);
    *out = json_integer_value(value);
    if (*out < 0)
        return AT_FAIL(AT_USAGE, "%s: %s holds %" PRId64 ", wanted 0 or more", where, field, *out);
    return AT_OK;
}

static at_status get_shape(const char *where, const json_t *value, struct at_file_tensor *tensor) {
    if (!json_is_array(value))
        return AT_FAIL(AT_USAGE, "%s: shape is missing or not a list", where);
    int64_t rank = (int64_t)json_array_size(value), shape[AT_READER_MAX_RANK];
    for (int64_t i = 0; i < rank && i < AT_READER_MAX_RANK; i++)
        AT_TRY(get_size(where, "shape", json_array_get(value, (size_t)i), &shape[i]));
    AT_TRY(at_shape_set(where, tensor, rank, shape));
    return AT_OK;
}

/* The element type; *element is 0 for words that are not known here. */
static at_status get_dtype(const char *where, const json_t *value, struct at_file_tensor *tensor, int *element) {
    const char *word = json_string_value(value);
    size_t n = word ? strlen(word) : 0;
    if (n == 0 || n >= sizeof tensor->type_name)
        return AT_FAIL(AT_USAGE, "%s: dtype is missing or not a word of 1 to %zu bytes", where,
                       sizeof tensor->type_name - 1);
    if (strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != n)
        return AT_FAIL(AT_USAGE, "%s: dtype holds other characters than A-Z, 0-9 and _", where);
    memcpy(tensor->type_name, word, n + 1);
    *element = 0;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].word, word) == 0) {
            *element = dtypes[i].bytes;
            tensor->supported = dtypes[i].supported;
            tensor->format = dtypes[i].format;
        }
    return AT_OK;
}

static at_status parse_entry(const char *path, const char *name, const json_t *value, int64_t room,
                             struct entry *entry) {
    char where[1024];
    AT_TRY(at_name_set(path, &entry->tensor, name, strlen(name)));
    snprintf(where, sizeof where, "%s: tensor '%s'", path, name);
    if (!json_is_object(value))
        return AT_FAIL(AT_USAGE, "%s: its entry is not an object with dtype, shape and data_offsets", where);
    int element = 0;
    AT_TRY(get_dtype(where, json_object_get(value, "dtype"), &entry->tensor, &element));
    AT_TRY(get_shape(where, json_object_get(value, "shape"), &entry->tensor));
    const json_t *offsets = json_object_get(value, "data_offsets");
    if (!json_is_array(offsets) || json_array_size(offsets) != 2)
        return AT_FAIL(AT_USAGE, "%s: data_offsets is missing or not a list of two", where);
    AT_TRY(get_size(where, "data_offsets", json_array_get(offsets, 0), &entry->begin));
    AT_TRY(get_size(where, "data_offsets", json_array_get(offsets, 1), &entry->end));
    if (entry->begin > entry->end || entry->end > room)
        return AT_FAIL(AT_USAGE,
                       "%s: data_offsets are [%" PRId64 ", %" PRId64 "], wanted ascending and at most %" PRId64, where,
                       entry->begin, entry->end, room);
    int64_t held = entry->end - entry->begin;
    entry->tensor.bytes = held;
    if (element)
        AT_TRY(at_shape_bytes(where, &entry->tensor, element, &entry->tensor.bytes));
    if (entry->tensor.bytes != held)
        return AT_FAIL(AT_USAGE, "%s: data_offsets hold %" PRId64 " bytes, its shape and dtype %s want %" PRId64, where,
                       held, entry->tensor.type_name, entry->tensor.bytes);
    return AT_OK;
}

static at_status check_metadata(const char *path, json_t *value) {
    const char *key;
    json_t *text;
    if (!json_is_object(value))
        return AT_FAIL(AT_USAGE, "%s: __metadata__ is not an object", path);
    json_object_foreach(value, key, text) if (!json_is_string(text)) return AT_FAIL(
        AT_USAGE, "%s: __metadata__ holds a value that is not text", path);
    return AT_OK;
}

static int by_offset(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->tensor.name, y->tensor.name);
}

/* Entries in the order of their bytes: each begins where the one before ended, the last ends the file. */
static at_status check_cover(const char *path, const struct entry *entries, int n, int64_t room) {
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i].begin != at)
            return AT_FAIL(AT_USAGE, "%s: tensor '%s': begins at %" PRId64 ", wanted %" PRId64 ": %s", path,
                           entries[i].tensor.name, entries[i].begin, at,
                           entries[i].begin < at ? "it overlaps the one before" : "the bytes between belong to none");
        at = entries[i].end;
    }
    if (at != room)
        return AT_FAIL(AT_USAGE, "%s: the tensors end at %" PRId64 ", the file has %" PRId64 " bytes of them", path, at,
                       room);
    return AT_OK;
}

/* All entries of the header, checked and in the order of their bytes; the caller frees *entries. */
static at_status parse_entries(const char *path, json_t *header, int64_t room, struct entry **entries, int *n) {
    const char *name;
    json_t *value;
    at_status status = AT_OK;
    *n = 0;
    *entries = calloc(json_object_size(header) + 1, sizeof **entries);
    if (!*entries)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %zu tensors", path, json_object_size(header));
    json_object_foreach(header, name, value) {
        if (strcmp(name, "__metadata__") == 0)
            status = check_metadata(path, value);
        else
            status = parse_entry(path, name, value, room, &(*entries)[(*n)++]);
        if (status != AT_OK)
            return status;
    }
    qsort(*entries, (size_t)*n, sizeof **entries, by_offset);
    return check_cover(path, *entries, *n, room);
}

static void close_file(void *opaque) {
    struct handle *handle = opaque;
    if (!handle)
        return;
    at_input_close(&handle->input);
    free(handle->begin);
    free(handle);
}

/* Opens, parses, and splits the entries into what the caller sees and where the bytes are. */
static at_status open_file(const char *path, void **opaque, struct at_file_tensor **tensors, int *n) {
    at_status status = AT_OK;
    json_t *header = NULL;
    struct entry *entries = NULL;
    int64_t start = 0;
    *tensors = NULL;
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its reader", path);
    handle->input.fd = -1;
    AT_TRY_OUT(at_input_open(path, &handle->input));
    AT_TRY_OUT(read_header(&handle->input, &header, &start));
    AT_TRY_OUT(parse_entries(path, header, handle->input.size - start, &entries, n));
    handle->begin = calloc((size_t)*n + 1, sizeof *handle->begin);
    *tensors = calloc((size_t)*n + 1, sizeof **tensors);
    if (!handle->begin || !*tensors)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %d tensors", path, *n);
    for (int i = 0; i < *n; i++) {
        (*tensors)[i] = entries[i].tensor;
        handle->begin[i] = start + entries[i].begin;
    }
    *opaque = handle;
out:
    free(entries);
    json_decref(header);
    if (status != AT_OK) {
        free(*tensors);
        close_file(handle);
    }
    return status;
}

static at_status read_tensor(void *opaque, const struct at_file_tensor *tensors, int i, int64_t first, int64_t n,
                             void *out) {
    const struct handle *handle = opaque;
    int64_t element = (int64_t)at_format_info(tensors[i].format)->bytes;
    AT_TRY(at_input_read(&handle->input, handle->begin[i] + first * element, n * element, out));
    return AT_OK;
}

const struct at_reader_type at_reader_safetensors = {
    .name = "safetensors",
    .suffixes = { ".safetensors" },
    .open = open_file,
    .read = read_tensor,
    .close = close_file,
};
