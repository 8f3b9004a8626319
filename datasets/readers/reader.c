/* Tensor files: which reader takes a file, and the checks that hold for all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/readers/reader.h"
#include "datasets/readers/reader_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

struct at_reader {
    const struct at_reader_type *type;
    char *path;
    void *handle;
    struct at_file_tensor *tensors; /* owned; made by the type's open */
    int n;
};

#define X(name) +1
enum { OWN = 0 AT_READER_LIST(X), MAX = OWN + 4 }; /* and some that others register */
#undef X
#define X(name) &at_reader_##name,
static const struct at_reader_type *types[MAX] = { AT_READER_LIST(X) };
#undef X
static int n_types = OWN;

void at_reader_register(const struct at_reader_type *type) {
    for (int i = 0; i < n_types; i++)
        if (strcmp(types[i]->name, type->name) == 0) {
            types[i] = type;
            return;
        }
    if (n_types < MAX)
        types[n_types++] = type;
}

/* 1: the n bytes are the file's first, and as many of them as there are in `magic`. */
static int begins_with(const uint8_t *bytes, int64_t n, const char *magic) {
    const size_t length = strlen(magic);
    return (size_t)n >= length && memcmp(bytes, magic, length) == 0;
}

/* The type that a file's first bytes name; NULL when they name none (safetensors has no magic number). */
static const struct at_reader_type *find_content(const uint8_t *bytes, int64_t n) {
    for (int i = 0; i < n_types; i++)
        for (int m = 0; m < 2 && types[i]->magics[m]; m++)
            if (begins_with(bytes, n, types[i]->magics[m]))
                return types[i];
    return NULL;
}

static const struct at_reader_type *find_folder(void) {
    for (int i = 0; i < n_types; i++)
        if (types[i]->folders)
            return types[i];
    return NULL;
}

static const struct at_reader_type *find_suffix(const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < n_types; i++)
        for (int s = 0; s < 4 && types[i]->suffixes[s]; s++) {
            size_t n = strlen(types[i]->suffixes[s]);
            if (length > n && strcasecmp(path + length - n, types[i]->suffixes[s]) == 0)
                return types[i];
        }
    return NULL;
}

/* " .safetensors .npy ...": what is read. */
static void list_suffixes(char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < n_types; i++)
        for (int s = 0; s < 4 && types[i]->suffixes[s] && used < size; s++)
            used += (size_t)snprintf(text + used, size - used, " %s", types[i]->suffixes[s]);
}

/* Content decides where it can; the suffix decides the rest, so that a damaged file is judged as what its
 * name says it is. */
static at_status choose_type(const char *path, const struct at_reader_type **type) {
    static const char hdf5[] = "\x89HDF\r\n\x1a\n"; /* its reader is not in every program: the library is large */
    struct at_input input;
    struct stat info;
    char suffixes[256];
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        *type = find_folder();
        return AT_OK;
    }
    AT_TRY(at_input_open(path, &input));
    uint8_t first[8];
    int64_t n = input.size < (int64_t)sizeof first ? input.size : (int64_t)sizeof first;
    at_status status = at_input_read(&input, 0, n, first);
    at_input_close(&input);
    AT_TRY(status);
    *type = find_content(first, n);
    if (!*type && begins_with(first, n, hdf5))
        return AT_FAIL(AT_UNSUPPORTED, "%s: is a file of type hdf5, and this program has no reader of it", path);
    if (!*type)
        *type = find_suffix(path);
    if (*type)
        return AT_OK;
    list_suffixes(suffixes, sizeof suffixes);
    return AT_FAIL(AT_USAGE,
                   "%s: not a tensor file: neither its first bytes nor its suffix are known; wanted one of%s, or a "
                   "folder of .npy files",
                   path, suffixes);
}

at_status at_reader_open(const char *path, struct at_reader **reader) {
    *reader = NULL;
    const struct at_reader_type *type;
    AT_TRY(choose_type(path, &type));
    struct at_reader *made = calloc(1, sizeof *made);
    if (!made || !(made->path = strdup(path))) {
        free(made);
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its reader", path);
    }
    made->type = type;
    at_status status = type->open(path, &made->handle, &made->tensors, &made->n);
    if (status != AT_OK) {
        free(made->path);
        free(made);
        return at_frame_at(status, __FILE__, __LINE__, __func__, "%s reader", type->name);
    }
    *reader = made;
    return AT_OK;
}

void at_reader_close(struct at_reader *reader) {
    if (!reader)
        return;
    reader->type->close(reader->handle);
    free(reader->tensors);
    free(reader->path);
    free(reader);
}

int at_reader_count(const struct at_reader *reader) { return reader->n; }

const struct at_file_tensor *at_reader_tensor(const struct at_reader *reader, int i) { return &reader->tensors[i]; }

int at_reader_find(const struct at_reader *reader, const char *name) {
    for (int i = 0; i < reader->n; i++)
        if (strcmp(reader->tensors[i].name, name) == 0)
            return i;
    return -1;
}

static at_status check_range(const struct at_reader *reader, int i, int64_t first, int64_t n) {
    if (i < 0 || i >= reader->n)
        return AT_FAIL(AT_USAGE, "%s: tensor %d wanted, the file has %d", reader->path, i, reader->n);
    const struct at_file_tensor *t = &reader->tensors[i];
    if (!t->supported)
        return AT_FAIL(AT_UNSUPPORTED,
                       "%s: tensor '%s' is %s, which is not read; wanted little-endian, row-major f64 f32 f16 bf16 "
                       "e4m3 e5m2 or i32",
                       reader->path, t->name, t->type_name);
    if (first < 0 || n < 0 || first > t->count || n > t->count - first)
        return AT_FAIL(AT_USAGE, "%s: tensor '%s': %" PRId64 " elements from %" PRId64 " wanted, it has %" PRId64,
                       reader->path, t->name, n, first, t->count);
    return AT_OK;
}

at_status at_reader_read(struct at_reader *reader, int i, int64_t first, int64_t n, void *out) {
    AT_TRY(check_range(reader, i, first, n));
    if (n > 0)
        AT_TRY(reader->type->read(reader->handle, reader->tensors, i, first, n, out));
    return AT_OK;
}

at_status at_reader_read_f64(struct at_reader *reader, int i, int64_t first, int64_t n, double *out) {
    enum { PIECE = 4096 };
    _Alignas(8) uint8_t codes[PIECE * 8]; /* no format is wider than 8 bytes */
    AT_TRY(check_range(reader, i, first, n));
    for (int64_t done = 0; done < n;) {
        int64_t take = n - done < PIECE ? n - done : PIECE;
        AT_TRY(at_reader_read(reader, i, first + done, take, codes));
        at_decode_array(reader->tensors[i].format, (size_t)take, codes, out + done);
        done += take;
    }
    return AT_OK;
}
