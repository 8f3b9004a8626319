/* HDF5 with this project's rules built in: files, groups, attributes, columns being written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/h5util.h"

#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/h5float.h"
#include "verify/archive/h5type.h"
#include "verify/archive/layout.h"
#include "verify/result/record.h"

/* A chunk index takes 2.6 KB, so that a smaller column is not worth deflating. (Smaller nodes of the index,
 * H5Pset_istore_k, are no way out: they bring a superblock extension that has the time in it.) */
enum { CHUNK_VALUES = 1 << 15, DEFLATE_LEVEL = 6, DEFLATE_FROM_BYTES = 4096 };

void at_h5_quiet(void) { H5Eset_auto2(H5E_DEFAULT, NULL, NULL); }

static herr_t innermost(unsigned n, const H5E_error2_t *error, void *text) {
    if (n == 0)
        snprintf(text, 256, "%s (%s)", error->desc ? error->desc : "no reason given", error->func_name);
    return 0;
}

at_status at_h5_fail(at_status status, const char *file, const char *action, const char *name) {
    char reason[256] = "HDF5 gives no reason";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, reason);
    return AT_FAIL(status, "%s: cannot %s %s: %s", file, action, name, reason);
}

void at_h5_close(hid_t id) {
    if (id >= 0)
        H5Idec_ref(id);
}

size_t at_h5_type_bytes(enum at_h5_type type) {
    switch (type) {
    case AT_H5_TEXT:
        return sizeof(char *);
    case AT_H5_I8:
        return 1;
    case AT_H5_F16:
    case AT_H5_BF16:
        return 2;
    case AT_H5_I32:
    case AT_H5_F32:
        return 4;
    case AT_H5_I64:
    case AT_H5_U64:
    case AT_H5_F64:
        return 8;
    }
    return 0;
}

hid_t at_h5_make_type(enum at_h5_type type) {
    switch (type) {
    case AT_H5_TEXT: {
        hid_t text = H5Tcopy(H5T_C_S1);
        if (text >= 0 && (H5Tset_size(text, H5T_VARIABLE) < 0 || H5Tset_cset(text, H5T_CSET_UTF8) < 0)) {
            H5Tclose(text);
            return H5I_INVALID_HID;
        }
        return text;
    }
    case AT_H5_I8:
        return H5Tcopy(H5T_STD_I8LE);
    case AT_H5_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case AT_H5_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case AT_H5_U64:
        return H5Tcopy(H5T_STD_U64LE);
    case AT_H5_F64:
        return at_h5_float_make(AT_F64);
    case AT_H5_F32:
        return at_h5_float_make(AT_F32);
    case AT_H5_F16:
        return at_h5_float_make(AT_F16);
    case AT_H5_BF16:
        return at_h5_float_make(AT_BF16);
    }
    return H5I_INVALID_HID;
}

/* ---- files ---- */

static int set_order_and_times(hid_t list, int is_group) {
    unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    if (H5Pset_obj_track_times(list, 0) < 0 || H5Pset_attr_creation_order(list, order) < 0)
        return -1;
    return is_group ? H5Pset_link_creation_order(list, order) : 0;
}

/* Memory of the file in the making, which HDF5 hands over instead of freeing it. (H5Fget_file_image of 1.10.8
 * clears a byte of the superblock after its checksum was made, and nothing opens the result.) */
static void *image_malloc(size_t size, H5FD_file_image_op_t op, void *image) {
    (void)op;
    (void)image;
    return malloc(size);
}

static void *image_memcpy(void *to, const void *from, size_t size, H5FD_file_image_op_t op, void *image) {
    (void)op;
    (void)image;
    return memcpy(to, from, size);
}

static void *image_realloc(void *bytes, size_t size, H5FD_file_image_op_t op, void *image) {
    (void)op;
    (void)image;
    return realloc(bytes, size);
}

static herr_t image_free(void *bytes, H5FD_file_image_op_t op, void *image) {
    struct at_h5_image *keep = image;
    if (op == H5FD_FILE_IMAGE_OP_FILE_CLOSE)
        keep->bytes = bytes;
    else
        free(bytes);
    return 0;
}

static void *image_same(void *image) { return image; }

static herr_t image_stays(void *image) {
    (void)image;
    return 0;
}

static at_status keep_in_memory(const char *file, hid_t access, void *image) {
    H5FD_file_image_callbacks_t callbacks = { image_malloc, image_memcpy, image_realloc, image_free,
                                              image_same,   image_stays,  image };
    if (H5Pset_fapl_core(access, 1 << 20, 0) < 0 || H5Pset_file_image_callbacks(access, &callbacks) < 0)
        return at_h5_fail(AT_IO, file, "set up", "an archive");
    return AT_OK;
}

at_status at_h5_create_on(const char *file, at_status (*set_driver)(const char *file, hid_t access, void *context),
                          void *context, hid_t *id) {
    at_status status = AT_OK;
    /* HDF5 first opens what already has the name of a new file, and reads all of it into memory, which would stay for
     * good in place of the new image: this name is nobody's, and no other image's, since two may be open at a time. */
    char no_file[64];
    snprintf(no_file, sizeof no_file, "/dev/null/%p", context);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    *id = H5I_INVALID_HID;
    if (access >= 0)
        status = set_driver(file, access, context);
    if (status == AT_OK &&
        (access < 0 || create < 0 || H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0 ||
         H5Pset_fclose_degree(access, H5F_CLOSE_SEMI) < 0 || set_order_and_times(create, 1) < 0))
        status = at_h5_fail(AT_IO, file, "set up", "an archive");
    if (status == AT_OK && (*id = H5Fcreate(no_file, H5F_ACC_TRUNC, create, access)) < 0)
        status = at_h5_fail(AT_IO, file, "create", "an archive");
    at_h5_close(access);
    at_h5_close(create);
    return status;
}

at_status at_h5_create(const char *file, struct at_h5_image *image, hid_t *id) {
    *image = (struct at_h5_image){ 0 };
    return at_h5_create_on(file, keep_in_memory, image, id);
}

static at_status close_image(const char *file, hid_t id, struct at_h5_image *image) {
    at_status status = AT_OK;
    /* asked for its size only; H5Fget_filesize would count what memory was taken in reserve */
    ssize_t size = H5Fflush(id, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(id, NULL, 0);
    if (size < 0)
        status = at_h5_fail(AT_IO, file, "finish", "the archive");
    if (H5Fclose(id) < 0 && status == AT_OK)
        status = at_h5_fail(AT_BUG, file, "close", "the archive");
    image->n = size < 0 ? 0 : (size_t)size;
    if (status == AT_OK && !image->bytes)
        status = AT_FAIL(AT_BUG, "%s: HDF5 kept the archive to itself", file);
    return status;
}

at_status at_h5_save(const char *path, hid_t id, struct at_h5_image *image) {
    struct at_atomic_file out;
    at_status status = close_image(path, id, image);
    if (status == AT_OK)
        status = at_atomic_open(path, &out);
    if (status == AT_OK) {
        fwrite(image->bytes, 1, image->n, out.stream); /* a failure stays with the stream, and commit reports it */
        status = at_atomic_commit(&out);
    }
    free(image->bytes);
    image->bytes = NULL;
    return status;
}

void at_h5_abandon(hid_t id, struct at_h5_image *image) {
    if (id >= 0)
        H5Fclose(id);
    free(image->bytes);
    image->bytes = NULL;
}

at_status at_h5_group(const char *file, hid_t parent, const char *name, const char *type, const char *nx_class,
                      hid_t *group) {
    at_status status = AT_OK;
    hid_t create = H5Pcreate(H5P_GROUP_CREATE);
    *group = H5I_INVALID_HID;
    if (create < 0 || set_order_and_times(create, 1) < 0 ||
        (*group = H5Gcreate2(parent, name, H5P_DEFAULT, create, H5P_DEFAULT)) < 0)
        status = at_h5_fail(AT_IO, file, "create group", name);
    at_h5_close(create);
    AT_TRY(status);
    AT_TRY(at_h5_attr_text(file, *group, "NX_class", nx_class));
    AT_TRY(at_h5_attr_text(file, *group, "encoding-type", type));
    return at_h5_attr_text(file, *group, "encoding-version", AT_ARCHIVE_VERSION);
}

/* ---- attributes ---- */

static at_status write_attribute(const char *file, hid_t object, const char *name, enum at_h5_type type, hid_t space,
                                 const void *data) {
    at_status status = AT_OK;
    hid_t memory = at_h5_make_type(type);
    hid_t attribute = H5Acreate2(object, name, memory, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0 || H5Awrite(attribute, memory, data) < 0)
        status = at_h5_fail(AT_IO, file, "write attribute", name);
    at_h5_close(attribute);
    at_h5_close(memory);
    at_h5_close(space);
    return status;
}

at_status at_h5_attr_text(const char *file, hid_t object, const char *name, const char *text) {
    return write_attribute(file, object, name, AT_H5_TEXT, H5Screate(H5S_SCALAR), &text);
}

at_status at_h5_attr_texts(const char *file, hid_t object, const char *name, int n, const char *const *texts) {
    hsize_t dims[1] = { (hsize_t)n };
    return write_attribute(file, object, name, AT_H5_TEXT, H5Screate_simple(1, dims, NULL), texts);
}

static at_status write_flags(const char *file, hid_t dataset, const struct at_h5_column *column) {
    int8_t values[128];
    if (column->n_flags < 1 || column->n_flags > 127 || column->type != AT_H5_I8)
        return AT_FAIL(AT_BUG, "column %s: flags belong to int8 columns and are at most 127", column->name);
    for (int i = 0; i < column->n_flags; i++)
        values[i] = (int8_t)i;
    hsize_t dims[1] = { (hsize_t)column->n_flags };
    AT_TRY(write_attribute(file, dataset, "flag_values", AT_H5_I8, H5Screate_simple(1, dims, NULL), values));
    return at_h5_attr_text(file, dataset, "flag_meanings", column->flag_meanings);
}

/* netCDF wants _FillValue to be an array of one value. */
static at_status write_missing(const char *file, hid_t dataset, const struct at_h5_column *column) {
    int64_t wide = -1;
    hsize_t dims[1] = { 1 };
    return write_attribute(file, dataset, "_FillValue", column->type, H5Screate_simple(1, dims, NULL), &wide);
}

static at_status write_attributes(const char *file, hid_t dataset, const struct at_h5_column *column) {
    AT_TRY(at_h5_attr_text(file, dataset, "long_name", column->long_name));
    AT_TRY(at_h5_attr_text(file, dataset, "units", column->units));
    if (column->missing)
        AT_TRY(write_missing(file, dataset, column));
    return column->flag_meanings ? write_flags(file, dataset, column) : AT_OK;
}

/* ---- columns ---- */

/* Large columns of integers are chunked, shuffled and deflated; floats and tensors gain too little and texts lie in the
 * heap. */
static int set_storage(hid_t create, const struct at_h5_column *column) {
    hsize_t values = column->dims[0], chunk[2] = { column->dims[0], column->dims[1] };
    int64_t missing = -1;
    if (set_order_and_times(create, 0) < 0)
        return -1;
    if (column->missing) {
        hid_t type = at_h5_make_type(column->type);
        herr_t failed = H5Pset_fill_value(create, type, &missing);
        at_h5_close(type);
        if (failed < 0)
            return -1;
    }
    if (column->rank == 2)
        values *= column->dims[1];
    if (values * at_h5_type_bytes(column->type) < DEFLATE_FROM_BYTES || column->type == AT_H5_TEXT ||
        column->type >= AT_H5_F64 || column->is_tensor)
        return 0;
    hsize_t row = column->rank == 2 ? column->dims[1] : 1, rows = CHUNK_VALUES / row;
    if (rows < 1)
        rows = 1;
    if (chunk[0] > rows)
        chunk[0] = rows;
    if (H5Pset_chunk(create, column->rank, chunk) < 0 || H5Pset_shuffle(create) < 0)
        return -1;
    return H5Pset_deflate(create, DEFLATE_LEVEL);
}

/* Rows in pieces: chunks and texts come in the order that one write would give them. */
static at_status write_pieces(const char *file, hid_t dataset, hid_t type, hid_t space,
                              const struct at_h5_column *column) {
    at_status status = AT_OK;
    for (hsize_t at = 0; at < column->dims[0] && status == AT_OK; at += AT_H5_PIECE_ROWS) {
        const hsize_t left = column->dims[0] - at, start[2] = { at, 0 };
        const hsize_t count[2] = { left < AT_H5_PIECE_ROWS ? left : AT_H5_PIECE_ROWS, column->dims[1] };
        const void *data;
        AT_TRY(column->piece(column->context, at, &data));
        hid_t memory = H5Screate_simple(column->rank, count, NULL);
        if (memory < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
            H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, data) < 0)
            status = at_h5_fail(AT_IO, file, "write a piece of column", column->name);
        at_h5_close(memory);
    }
    return status;
}

static at_status write_dataset(const char *file, hid_t group, const struct at_h5_column *column, hid_t *dataset) {
    at_status status = AT_OK;
    hid_t type = at_h5_make_type(column->type), create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(column->rank, column->dims, NULL);
    *dataset = H5I_INVALID_HID;
    if (type < 0 || create < 0 || space < 0 || set_storage(create, column) < 0)
        AT_FAIL_OUT(AT_IO, "%s: cannot set up column %s", file, column->name);
    *dataset = H5Dcreate2(group, column->name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (*dataset >= 0 && column->piece) {
        status = write_pieces(file, *dataset, type, space, column);
        goto out;
    }
    if (*dataset < 0 || (column->dims[0] && H5Dwrite(*dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, column->data) < 0))
        status = at_h5_fail(AT_IO, file, "write column", column->name);
out:
    at_h5_close(type);
    at_h5_close(create);
    at_h5_close(space);
    return status;
}

at_status at_h5_write(const char *file, hid_t group, const struct at_h5_column *column) {
    at_status status = AT_OK;
    hid_t dataset = H5I_INVALID_HID;
    AT_TRY_OUT(write_dataset(file, group, column, &dataset));
    if (column->bare)
        goto out;
    for (int i = 0; i < column->rank; i++)
        if (H5DSattach_scale(dataset, column->scales[i], (unsigned)i) < 0) {
            status = at_h5_fail(AT_IO, file, "attach the scale of column", column->name);
            goto out;
        }
    AT_TRY_OUT(write_attributes(file, dataset, column));
out:
    at_h5_close(dataset);
    return status;
}

at_status at_h5_scale_of(const char *file, hid_t group, const char *name, hsize_t n, const int64_t *values,
                         const char *long_name, hid_t *scale) {
    at_status status = AT_OK;
    struct at_h5_column column = {
        .name = name, .type = AT_H5_I64, .rank = 1, .dims = { n }, .units = "1", .long_name = long_name, .data = values
    };
    *scale = H5I_INVALID_HID;
    AT_TRY_OUT(write_dataset(file, group, &column, scale));
    if (H5DSset_scale(*scale, name) < 0) {
        status = at_h5_fail(AT_IO, file, "make a scale of", name);
        goto out;
    }
    AT_TRY_OUT(write_attributes(file, *scale, &column));
out:
    return status;
}

at_status at_h5_scale(const char *file, hid_t group, const char *name, hsize_t n, int64_t first, const char *long_name,
                      hid_t *scale) {
    *scale = H5I_INVALID_HID;
    int64_t *values = malloc((n + 1) * sizeof *values);
    if (!values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for axis %s", file, name);
    for (hsize_t i = 0; i < n; i++)
        values[i] = first + (int64_t)i;
    const at_status status = at_h5_scale_of(file, group, name, n, values, long_name, scale);
    free(values);
    return status;
}

at_status at_h5_write_text(const char *file, hid_t group, const char *name, const char *text, const char *long_name) {
    at_status status = AT_OK;
    hid_t type = at_h5_make_type(AT_H5_TEXT), create = H5Pcreate(H5P_DATASET_CREATE), dataset = H5I_INVALID_HID;
    hid_t space = H5Screate(H5S_SCALAR);
    if (type < 0 || space < 0 || create < 0 || set_order_and_times(create, 0) < 0)
        AT_FAIL_OUT(AT_IO, "%s: cannot set up %s", file, name);
    dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (dataset < 0 || H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) < 0) {
        status = at_h5_fail(AT_IO, file, "write", name);
        goto out;
    }
    AT_TRY_OUT(at_h5_attr_text(file, dataset, "long_name", long_name));
    AT_TRY_OUT(at_h5_attr_text(file, dataset, "units", "1"));
out:
    at_h5_close(dataset);
    at_h5_close(space);
    at_h5_close(create);
    at_h5_close(type);
    return status;
}
