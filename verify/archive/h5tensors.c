/* The datasets of an HDF5 file as tensors: listing and reading, without conversion.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/h5tensors.h"
#include "verify/archive/h5float.h"
#include "verify/archive/h5util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

/* A chunk is unpacked in one piece; one tensor's cache holds a few of them. */
enum { MAX_CHUNK_BYTES = 256 << 20, CACHE_BYTES = 64 << 20, CACHE_SLOTS = 1009 };

struct at_h5_file {
    const char *path;
    hid_t file;
    int64_t size; /* bytes of the file */
    char **names; /* HDF5 paths of the tensors */
    int n, capacity;
    struct at_file_tensor *tensors;
    at_status status; /* of the visit */
    int open_index;   /* tensor whose dataset is open; -1 none */
    hid_t dataset, type;
};

static void match_type(hid_t type, struct at_file_tensor *tensor) {
    static const char *const classes[] = { "integer",  "float",     "time", "string",          "bitfield", "opaque",
                                           "compound", "reference", "enum", "variable-length", "array" };
    H5T_class_t class = H5Tget_class(type);
    size_t bits = 8 * H5Tget_size(type);
    int swapped = (class == H5T_INTEGER || class == H5T_FLOAT) && H5Tget_order(type) == H5T_ORDER_BE;
    tensor->format = AT_I32;
    if (class == H5T_INTEGER)
        tensor->supported = bits == 32 && H5Tget_order(type) == H5T_ORDER_LE && H5Tget_sign(type) == H5T_SGN_2 &&
                            H5Tget_precision(type) == 32;
    else if (class == H5T_FLOAT)
        tensor->supported = at_h5_float_match(type, &tensor->format);
    if (tensor->supported)
        snprintf(tensor->type_name, sizeof tensor->type_name, "%s", at_format_info(tensor->format)->name);
    else
        snprintf(tensor->type_name, sizeof tensor->type_name, "%s%s of %zu bits", swapped ? "big-endian " : "",
                 class >= 0 && class < H5T_NCLASSES ? classes[class] : "unknown", bits);
}

static const char *filter_problem(hid_t plist) {
    for (int i = 0; i < H5Pget_nfilters(plist); i++) {
        size_t n_values = 0;
        unsigned flags;
        H5Z_filter_t filter = H5Pget_filter2(plist, (unsigned)i, &flags, &n_values, NULL, 0, NULL, NULL);
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
            return "other filter";
    }
    return NULL;
}

/* Every chunk is there: one that was never written would read as fill values, without an error. (The space
 * status of 1.10.8 compares packed bytes with unpacked ones and cannot tell.) */
static const char *chunk_problem(hid_t dataset, hid_t plist, const struct at_file_tensor *tensor) {
    hsize_t chunk[H5S_MAX_RANK], found = 0;
    int64_t bytes = tensor->bytes / tensor->count, wanted = 1;
    if (H5Pget_chunk(plist, H5S_MAX_RANK, chunk) != tensor->rank)
        return "unknown chunks";
    for (int i = 0; i < tensor->rank; i++) {
        if (chunk[i] == 0 || __builtin_mul_overflow(bytes, chunk[i], &bytes) || bytes > MAX_CHUNK_BYTES)
            return "huge chunks";
        int64_t along = (tensor->shape[i] - 1) / (int64_t)chunk[i] + 1;
        wanted *= along; /* at most the tensor's count */
    }
    hid_t space = H5Dget_space(dataset);
    herr_t counted = H5Dget_num_chunks(dataset, space, &found);
    at_h5_close(space);
    return counted >= 0 && found == (hsize_t)wanted ? NULL : "not all written";
}

/* NULL, or why the dataset's bytes are not read. */
static const char *storage_problem(const struct at_h5_file *f, hid_t dataset, hid_t plist,
                                   const struct at_file_tensor *tensor) {
    H5D_layout_t layout = H5Pget_layout(plist);
    if (layout == H5D_VIRTUAL)
        return "virtual";
    if (H5Pget_external_count(plist) != 0)
        return "stored elsewhere";
    const char *problem = filter_problem(plist);
    if (problem || tensor->count == 0)
        return problem;
    if (layout == H5D_COMPACT) /* the library reads past a smaller one */
        return H5Dget_storage_size(dataset) >= (hsize_t)tensor->bytes ? NULL : "not all written";
    if (layout == H5D_CHUNKED)
        return chunk_problem(dataset, plist, tensor);
    haddr_t at = H5Dget_offset(dataset);
    if (at == HADDR_UNDEF)
        return "not all written";
    return at <= (haddr_t)f->size && tensor->bytes <= f->size - (int64_t)at ? NULL : "past the file";
}

static at_status describe_shape(const struct at_h5_file *f, hid_t dataset, size_t element,
                                struct at_file_tensor *tensor) {
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(dataset);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);
    int null = space >= 0 && H5Sget_simple_extent_type(space) == H5S_NULL;
    at_h5_close(space);
    if (rank < 0)
        return at_h5_fail(AT_USAGE, f->path, "read the shape of", tensor->name);
    if (rank > AT_READER_MAX_RANK)
        return AT_FAIL(AT_USAGE, "%s: tensor '%s': has %d dimensions, wanted at most %d", f->path, tensor->name, rank,
                       AT_READER_MAX_RANK);
    int64_t product = 1;
    int empty = null;
    tensor->rank = rank;
    for (int i = 0; i < rank; i++) {
        empty |= dims[i] == 0;
        if (dims[i] > INT64_MAX || (dims[i] != 0 && __builtin_mul_overflow(product, (int64_t)dims[i], &product)))
            return AT_FAIL(AT_USAGE, "%s: tensor '%s': dimension %d: the shape's product is beyond 2^63 elements",
                           f->path, tensor->name, i);
        tensor->shape[i] = (int64_t)dims[i];
    }
    tensor->count = empty ? 0 : product;
    if (element > INT64_MAX || __builtin_mul_overflow(tensor->count, (int64_t)element, &tensor->bytes))
        return AT_FAIL(AT_USAGE, "%s: tensor '%s': %" PRId64 " elements of %zu bytes are beyond 2^63 bytes", f->path,
                       tensor->name, tensor->count, element);
    return AT_OK;
}

static at_status describe(const struct at_h5_file *f, hid_t dataset, struct at_file_tensor *tensor) {
    hid_t type = H5Dget_type(dataset), plist = H5Dget_create_plist(dataset);
    at_status status = AT_OK;
    if (type < 0 || plist < 0) {
        status = at_h5_fail(AT_USAGE, f->path, "read the type of", tensor->name);
    } else {
        match_type(type, tensor);
        status = describe_shape(f, dataset, H5Tget_size(type), tensor);
    }
    const char *problem = status == AT_OK ? storage_problem(f, dataset, plist, tensor) : NULL;
    if (problem) {
        size_t used = strlen(tensor->type_name);
        snprintf(tensor->type_name + used, sizeof tensor->type_name - used, ", %s", problem);
        tensor->supported = 0;
    }
    at_h5_close(type);
    at_h5_close(plist);
    return status;
}

/* The name with '.' for '/'; HDF5 does not check that names are UTF-8. */
static at_status set_name(const struct at_h5_file *f, const char *name, struct at_file_tensor *tensor) {
    size_t n = strlen(name);
    json_t *text = json_stringn(name, n);
    int good = text != NULL && n < sizeof tensor->name;
    json_decref(text);
    for (size_t i = 0; i < n && good; i++) {
        good = (unsigned char)name[i] >= 0x20 && name[i] != 0x7f;
        tensor->name[i] = name[i] == '/' ? '.' : name[i];
    }
    if (!good)
        return AT_FAIL(AT_USAGE,
                       "%s: a dataset's name of %zu bytes: wanted UTF-8 without control characters, at most "
                       "%zu bytes",
                       f->path, n, sizeof tensor->name - 1);
    return AT_OK;
}

static at_status grow(struct at_h5_file *f) {
    if (f->n < f->capacity)
        return AT_OK;
    if (f->n >= AT_H5_MAX_TENSORS)
        return AT_FAIL(AT_USAGE, "%s: has more than %d datasets", f->path, AT_H5_MAX_TENSORS);
    int capacity = f->capacity ? 2 * f->capacity : 64;
    struct at_file_tensor *tensors = realloc(f->tensors, (size_t)capacity * sizeof *tensors);
    f->tensors = tensors ? tensors : f->tensors;
    char **names = realloc(f->names, (size_t)capacity * sizeof *names);
    f->names = names ? names : f->names;
    if (!tensors || !names)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %d datasets", f->path, capacity);
    f->capacity = capacity;
    return AT_OK;
}

static at_status add_dataset(struct at_h5_file *f, hid_t root, const char *name) {
    AT_TRY(grow(f));
    struct at_file_tensor *tensor = &f->tensors[f->n];
    *tensor = (struct at_file_tensor){ 0 };
    AT_TRY(set_name(f, name, tensor));
    hid_t dataset = H5Dopen2(root, name, H5P_DEFAULT);
    if (dataset < 0)
        return at_h5_fail(AT_USAGE, f->path, "open dataset", tensor->name);
    at_status status = describe(f, dataset, tensor);
    at_h5_close(dataset);
    AT_TRY(status);
    if (!(f->names[f->n] = strdup(name)))
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for a name", f->path);
    f->n++;
    return AT_OK;
}

static herr_t visit(hid_t root, const char *name, const H5O_info_t *info, void *context) {
    struct at_h5_file *f = context;
    if (info->type == H5O_TYPE_DATASET)
        f->status = add_dataset(f, root, name);
    return f->status == AT_OK ? 0 : -1;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* a/b and a.b would both be called a.b. */
static at_status check_names(const struct at_h5_file *f) {
    at_status status = AT_OK;
    const char **names = calloc((size_t)f->n + 1, sizeof *names);
    if (!names)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %d names", f->path, f->n);
    for (int i = 0; i < f->n; i++)
        names[i] = f->tensors[i].name;
    qsort(names, (size_t)f->n, sizeof *names, by_name);
    for (int i = 1; i < f->n && status == AT_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = AT_FAIL(AT_USAGE, "%s: two datasets are called '%s', with '/' read as '.'", f->path, names[i]);
    free(names);
    return status;
}

static at_status open_and_list(struct at_h5_file *f) {
    struct stat info;
    at_h5_quiet();
    H5PLset_loading_state(0); /* a file may not make the library load a plug-in */
    if (stat(f->path, &info) != 0)
        return AT_FAIL(AT_IO, "%s: cannot be looked at", f->path);
    f->size = info.st_size;
    f->file = H5Fopen(f->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (f->file < 0)
        return at_h5_fail(AT_USAGE, f->path, "open it as", "HDF5");
    herr_t visited = H5Ovisit2(f->file, H5_INDEX_NAME, H5_ITER_INC, visit, f, H5O_INFO_BASIC);
    AT_TRY(f->status);
    if (visited < 0)
        return at_h5_fail(AT_USAGE, f->path, "list", "its datasets");
    AT_TRY(check_names(f));
    return AT_OK;
}

static void release(struct at_h5_file *f) {
    if (f->file >= 0)
        H5Fclose(f->file);
    for (int i = 0; i < f->n; i++)
        free(f->names[i]);
    free(f->names);
    free(f->tensors);
    free(f);
}

at_status at_h5_file_open(const char *path, struct at_h5_file **file, struct at_file_tensor **tensors, int *n) {
    struct at_h5_file *f = calloc(1, sizeof *f);
    if (!f)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its reader", path);
    *f = (struct at_h5_file){ .path = path, .file = -1, .open_index = -1, .dataset = -1, .type = -1 };
    at_status status = open_and_list(f);
    if (status != AT_OK) {
        release(f);
        return status;
    }
    *file = f;
    *tensors = f->tensors;
    *n = f->n;
    return AT_OK;
}

/* Opens tensor i's dataset with a chunk cache for reading it piece by piece; closes the one before. */
static at_status use_dataset(struct at_h5_file *f, int i) {
    if (f->open_index == i)
        return AT_OK;
    at_h5_close(f->type);
    at_h5_close(f->dataset);
    f->open_index = -1;
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(access, CACHE_SLOTS, CACHE_BYTES, 1.0);
    f->dataset = H5Dopen2(f->file, f->names[i], access);
    f->type = f->dataset < 0 ? -1 : H5Dget_type(f->dataset);
    at_h5_close(access);
    if (f->type < 0)
        return at_h5_fail(AT_USAGE, f->path, "open dataset", f->names[i]);
    f->open_index = i;
    return AT_OK;
}

/* The largest block of the form x x x [a, a + c) : : that begins at element `first` and has at most n
 * elements: start and count of each dimension. Returns its elements. */
static int64_t next_block(const struct at_file_tensor *t, int64_t first, int64_t n, hsize_t *start, hsize_t *count) {
    int64_t place[AT_READER_MAX_RANK], inner = 1, rest = first;
    for (int i = t->rank - 1; i >= 0; i--) {
        place[i] = rest % t->shape[i];
        rest /= t->shape[i];
        count[i] = 1;
        start[i] = (hsize_t)place[i];
    }
    int k = t->rank - 1;
    for (; k > 0 && place[k] == 0 && inner * t->shape[k] <= n; k--) {
        count[k] = (hsize_t)t->shape[k];
        inner *= t->shape[k];
    }
    int64_t left = t->shape[k] - place[k], fit = n / inner;
    count[k] = (hsize_t)(left < fit ? left : fit);
    return (int64_t)count[k] * inner;
}

static at_status read_block(struct at_h5_file *f, int i, int rank, const hsize_t *start, const hsize_t *count,
                            void *out) {
    hid_t in_file = H5Dget_space(f->dataset), in_memory = H5Screate_simple(rank, count, NULL);
    int bad = rank > 0 && H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL) < 0;
    bad |= in_memory < 0 || H5Dread(f->dataset, f->type, in_memory, in_file, H5P_DEFAULT, out) < 0;
    at_status status = bad ? at_h5_fail(AT_USAGE, f->path, "read dataset", f->names[i]) : AT_OK;
    at_h5_close(in_file);
    at_h5_close(in_memory);
    return status;
}

at_status at_h5_file_read(struct at_h5_file *f, const struct at_file_tensor *tensors, int i, int64_t first, int64_t n,
                          void *out) {
    const struct at_file_tensor *t = &tensors[i];
    int64_t element = (int64_t)at_format_info(t->format)->bytes;
    hsize_t start[AT_READER_MAX_RANK] = { 0 }, count[AT_READER_MAX_RANK] = { 0 };
    AT_TRY(use_dataset(f, i));
    uint8_t *to = out;
    while (n > 0) {
        int64_t block = t->rank > 0 ? next_block(t, first, n, start, count) : 1;
        AT_TRY(read_block(f, i, t->rank, start, count, to));
        first += block;
        n -= block;
        to += block * element;
    }
    return AT_OK;
}
