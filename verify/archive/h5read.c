/* HDF5 columns and texts being read, with every extent checked before memory is asked for.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "verify/archive/h5type.h"
#include "verify/archive/h5util.h"

enum { MAX_RANK = 2 };

at_status at_h5_open(const char *file, hid_t *id) {
    at_status status = AT_OK;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    *id = H5I_INVALID_HID;
    if (access < 0 || H5Pset_fclose_degree(access, H5F_CLOSE_SEMI) < 0)
        status = at_h5_fail(AT_IO, file, "set up", "reading");
    else if ((*id = H5Fopen(file, H5F_ACC_RDONLY, access)) < 0)
        status = at_h5_fail(AT_USAGE, file, "open", "it as HDF5");
    at_h5_close(access);
    return status;
}

static at_status open_column(const char *file, hid_t group, const char *name, hid_t *dataset) {
    *dataset = H5I_INVALID_HID;
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
        return AT_FAIL(AT_USAGE, "%s: column %s is missing", file, name);
    *dataset = H5Dopen2(group, name, H5P_DEFAULT);
    return *dataset >= 0 ? AT_OK : at_h5_fail(AT_USAGE, file, "open column", name);
}

/* Rank and extents of a dataset of rank 0 to 2. */
static at_status get_dims(const char *file, hid_t dataset, const char *name, int *rank, hsize_t dims[MAX_RANK]) {
    at_status status = AT_OK;
    hid_t space = H5Dget_space(dataset);
    *rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    if (*rank < 0)
        status = at_h5_fail(AT_USAGE, file, "read the extent of", name);
    else if (*rank > MAX_RANK)
        status = AT_FAIL(AT_USAGE, "%s: %s has %d axes, wanted at most %d", file, name, *rank, MAX_RANK);
    else
        H5Sget_simple_extent_dims(space, dims, NULL);
    at_h5_close(space);
    return status;
}

at_status at_h5_length(const char *file, hid_t group, const char *name, hsize_t *n) {
    hid_t dataset;
    hsize_t dims[MAX_RANK] = { 0 };
    int rank = 0;
    AT_TRY(open_column(file, group, name, &dataset));
    at_status status = get_dims(file, dataset, name, &rank, dims);
    at_h5_close(dataset);
    AT_TRY(status);
    if (rank != 1)
        return AT_FAIL(AT_USAGE, "%s: %s has %d axes, wanted 1", file, name, rank);
    *n = dims[0];
    return AT_OK;
}

/* A contiguous dataset stores all that its extent claims, or the extent is a lie. */
static at_status check_stored(const char *file, hid_t dataset, const char *name, hsize_t values, size_t bytes) {
    hid_t list = H5Dget_create_plist(dataset);
    int contiguous = list >= 0 && H5Pget_layout(list) == H5D_CONTIGUOUS;
    at_h5_close(list);
    if (contiguous && H5Dget_storage_size(dataset) / bytes < values)
        return AT_FAIL(AT_USAGE, "%s: %s claims %llu values, but stores fewer", file, name, (unsigned long long)values);
    return AT_OK;
}

static at_status check_shape(const char *file, hid_t dataset, const char *name, int rank, const hsize_t *dims) {
    hsize_t have[MAX_RANK] = { 0 };
    int have_rank = 0;
    AT_TRY(get_dims(file, dataset, name, &have_rank, have));
    if (have_rank != rank)
        return AT_FAIL(AT_USAGE, "%s: %s has %d axes, wanted %d", file, name, have_rank, rank);
    for (int i = 0; i < rank; i++)
        if (have[i] != dims[i])
            return AT_FAIL(AT_USAGE, "%s: axis %d of %s has length %llu, wanted %llu", file, i, name,
                           (unsigned long long)have[i], (unsigned long long)dims[i]);
    return AT_OK;
}

/* Text: any variable-length string, as other programs do not always say UTF-8. */
static at_status check_type(const char *file, hid_t dataset, const char *name, enum at_h5_type type) {
    hid_t have = H5Dget_type(dataset), want = at_h5_make_type(type);
    int same = type == AT_H5_TEXT ? H5Tis_variable_str(have) > 0 : H5Tequal(have, want) > 0;
    at_h5_close(have);
    at_h5_close(want);
    static const char *const names[] = {
        "variable-length text", "int8", "int32", "int64", "uint64", "float64", "float32", "float16", "bfloat16"
    };
    return same ? AT_OK : AT_FAIL(AT_USAGE, "%s: %s has another type than %s", file, name, names[type]);
}

static at_status read_values(const char *file, hid_t dataset, const char *name, enum at_h5_type type, hsize_t values,
                             void *data) {
    at_status status = AT_OK;
    size_t stored = type == AT_H5_TEXT ? 16 : at_h5_type_bytes(type); /* length, heap address, index */
    AT_TRY(check_type(file, dataset, name, type));
    AT_TRY(check_stored(file, dataset, name, values, stored));
    if (values == 0)
        return AT_OK;
    hid_t memory = type == AT_H5_TEXT ? H5Dget_type(dataset) : at_h5_make_type(type);
    if (H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        status = at_h5_fail(AT_USAGE, file, "read", name);
    at_h5_close(memory);
    return status;
}

at_status at_h5_read(const char *file, hid_t group, const char *name, enum at_h5_type type, int rank,
                     const hsize_t *dims, void *data) {
    at_status status = AT_OK;
    hid_t dataset;
    AT_TRY(open_column(file, group, name, &dataset));
    AT_TRY_OUT(check_shape(file, dataset, name, rank, dims));
    hsize_t values = 1;
    for (int i = 0; i < rank; i++)
        values *= dims[i];
    AT_TRY_OUT(read_values(file, dataset, name, type, values, data));
out:
    at_h5_close(dataset);
    return status;
}

/* ---- some rows ---- */

/* Opens a column of `width` values a row for reading through *space, which selects all of it. */
static at_status open_rows(const char *file, hid_t group, const char *name, enum at_h5_type type, int width,
                           hid_t *dataset, hid_t *memory, hid_t *space, hsize_t *n) {
    hsize_t dims[MAX_RANK] = { 0 };
    int rank = 0;
    *memory = *space = H5I_INVALID_HID;
    AT_TRY(open_column(file, group, name, dataset));
    AT_TRY(get_dims(file, *dataset, name, &rank, dims));
    if (rank != (width > 1 ? 2 : 1) || (width > 1 && dims[1] != (hsize_t)width))
        return AT_FAIL(AT_USAGE, "%s: %s has another shape than %d values a row", file, name, width);
    AT_TRY(check_type(file, *dataset, name, type));
    AT_TRY(
        check_stored(file, *dataset, name, dims[0] * (hsize_t)width, type == AT_H5_TEXT ? 16 : at_h5_type_bytes(type)));
    *memory = type == AT_H5_TEXT ? H5Dget_type(*dataset) : at_h5_make_type(type);
    *space = H5Dget_space(*dataset);
    *n = dims[0];
    return AT_OK;
}

at_status at_h5_read_rows(const char *file, hid_t group, const char *name, enum at_h5_type type, int width,
                          hsize_t first, hsize_t n, void *data) {
    at_status status = AT_OK;
    hid_t dataset, memory, space, room = H5I_INVALID_HID;
    const hsize_t start[2] = { first, 0 }, count[2] = { n, (hsize_t)width };
    hsize_t have = 0;
    AT_TRY_OUT(open_rows(file, group, name, type, width, &dataset, &memory, &space, &have));
    if (first > have || n > have - first)
        AT_FAIL_OUT(AT_USAGE, "%s: %s has %llu rows, wanted %llu", file, name, (unsigned long long)have,
                    (unsigned long long)(first + n));
    room = H5Screate_simple(width > 1 ? 2 : 1, count, NULL);
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(dataset, memory, room, space, H5P_DEFAULT, data) < 0)
        status = at_h5_fail(AT_USAGE, file, "read", name);
out:
    at_h5_close(room);
    at_h5_close(space);
    at_h5_close(memory);
    at_h5_close(dataset);
    return status;
}

at_status at_h5_pick(const char *file, hid_t group, const char *name, enum at_h5_type type, int width,
                     const int64_t *rows, int64_t n, void *data) {
    at_status status = AT_OK;
    hid_t dataset, memory, space, room = H5I_INVALID_HID;
    const hsize_t points = (hsize_t)n * (hsize_t)width;
    hsize_t have = 0, *at = calloc(2 * points + 2, sizeof *at);
    AT_TRY_OUT(open_rows(file, group, name, type, width, &dataset, &memory, &space, &have));
    if (!at)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for rows of %s", file, name);
    for (hsize_t i = 0, k = 0; i < points; i++) {
        const int64_t row = rows[i / (hsize_t)width];
        if (row < 0 || (hsize_t)row >= have)
            AT_FAIL_OUT(AT_USAGE, "%s: %s has %llu rows, wanted row %lld", file, name, (unsigned long long)have,
                        (long long)row);
        at[k++] = (hsize_t)row;
        if (width > 1)
            at[k++] = i % (hsize_t)width;
    }
    room = H5Screate_simple(1, &points, NULL);
    if (points && (H5Sselect_elements(space, H5S_SELECT_SET, points, at) < 0 ||
                   H5Dread(dataset, memory, room, space, H5P_DEFAULT, data) < 0))
        status = at_h5_fail(AT_USAGE, file, "read", name);
out:
    free(at);
    at_h5_close(room);
    at_h5_close(space);
    at_h5_close(memory);
    at_h5_close(dataset);
    return status;
}

void at_h5_free_texts(char **texts, hsize_t n) {
    for (hsize_t i = 0; i < n; i++)
        H5free_memory(texts[i]);
}

/* To our own allocator, so that the caller can free() it. */
static at_status own_text(const char *file, const char *name, char *from, char **text) {
    *text = strdup(from ? from : "");
    H5free_memory(from);
    return *text ? AT_OK : AT_FAIL(AT_NO_MEMORY, "%s: no memory for %s", file, name);
}

at_status at_h5_read_text(const char *file, hid_t group, const char *name, char **text) {
    char *read = NULL;
    *text = NULL;
    AT_TRY(at_h5_read(file, group, name, AT_H5_TEXT, 0, NULL, &read));
    return own_text(file, name, read, text);
}

at_status at_h5_read_attr(const char *file, hid_t object, const char *name, char **text) {
    at_status status = AT_OK;
    char *read = NULL;
    *text = NULL;
    hid_t attribute = H5I_INVALID_HID, type = H5I_INVALID_HID, space = H5I_INVALID_HID;
    if (H5Aexists(object, name) <= 0)
        return AT_FAIL(AT_USAGE, "%s: attribute %s is missing; this is no archive of attest", file, name);
    attribute = H5Aopen(object, name, H5P_DEFAULT);
    type = attribute >= 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    space = attribute >= 0 ? H5Aget_space(attribute) : H5I_INVALID_HID;
    if (type < 0 || H5Tis_variable_str(type) <= 0 || H5Sget_simple_extent_type(space) != H5S_SCALAR)
        AT_FAIL_OUT(AT_USAGE, "%s: attribute %s is no single text", file, name);
    if (H5Aread(attribute, type, &read) < 0) {
        status = at_h5_fail(AT_USAGE, file, "read attribute", name);
        goto out;
    }
    status = own_text(file, name, read, text);
out:
    at_h5_close(space);
    at_h5_close(type);
    at_h5_close(attribute);
    return status;
}
