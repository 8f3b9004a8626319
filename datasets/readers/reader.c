/* Tensor files: which reader takes a file, and the checks that hold for all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/readers/reader.h"
#include "datasets/readers/reader_internal.h"

#include <inttypes.h>
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

enum { MAX_TYPES = 8 };
static const struct at_reader_type *types[MAX_TYPES] = { &at_reader_safetensors, &at_reader_npy, &at_reader_npz,
                                                         &at_reader_npy_folder };
static int n_types = 4;

void at_reader_register(const struct at_reader_type *type) {
    for (int i = 0; i < n_types; i++)
        if (strcmp(types[i]->name, type->name) == 0) {
            types[i] = type;
            return;
        }
    if (n_types < MAX_TYPES)
        types[n_types++] = type;
}

/* The type a file's first bytes name; NULL when they name none (safetensors has no magic number). */
static const char *name_by_content(const uint8_t *bytes, int64_t n) {
    static const struct {
        const char *magic;
        int64_t n;
        const char *name;
    } known[] = {
        { "\x93NUMPY", 6, "npy" },
        { "PK\x03\x04", 4, "npz" },
        { "PK\x05\x06", 4, "npz" },
        { "\x89HDF\r\n\x1a\n", 8, "hdf5" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= known[i].n && memcmp(bytes, known[i].magic, (size_t)known[i].n) == 0)
            return known[i].name;
    return NULL;
}

static const struct at_reader_type *find_type(const char *name) {
    for (int i = 0; i < n_types; i++)
        if (strcmp(types[i]->name, name) == 0)
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

/* Content decides where it can; the suffix decides the rest, so that a damaged file is judged as what its
 * name says it is. */
static at_status choose_type(const char *path, const struct at_reader_type **type) {
    struct at_input input;
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        *type = &at_reader_npy_folder;
        return AT_OK;
    }
    AT_TRY(at_input_open(path, &input));
    uint8_t first[8];
    int64_t n = input.size < (int64_t)sizeof first ? input.size : (int64_t)sizeof first;
    at_status status = at_input_read(&input, 0, n, first);
    at_input_close(&input);
    AT_TRY(status);
    const char *name = name_by_content(first, n);
    *type = name ? find_type(name) : find_suffix(path);
    if (!*type && name)
        return AT_FAIL(AT_UNSUPPORTED, "%s: is a file of type %s, and this program has no reader of it", path, name);
    if (!*type)
        return AT_FAIL(AT_USAGE,
                       "%s: not a tensor file: neither its first bytes nor its suffix are known; wanted "
                       ".safetensors, .npy, .npz, .h5 or .hdf5, or a folder of .npy files",
                       path);
    return AT_OK;
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
