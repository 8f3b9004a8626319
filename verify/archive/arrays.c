/* Arrays to HDF5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/arrays.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/h5array.h"

/* The scale called `name` of this group, made when it is not there yet. */
static at_status scale_of(const char *path, hid_t group, const char *name, int64_t n, hid_t *scale) {
    hsize_t length = 0;
    *scale = H5I_INVALID_HID;
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
        return at_h5_scale(path, group, name, (hsize_t)n, 0, name, scale);
    AT_TRY(at_h5_length(path, group, name, &length));
    if (length != (hsize_t)n)
        return AT_FAIL(AT_BUG, "%s: axis %s has %lld places in one array and %lld in another", path, name,
                       (long long)length, (long long)n);
    *scale = H5Dopen2(group, name, H5P_DEFAULT);
    return *scale < 0 ? at_h5_fail(AT_IO, path, "open scale", name) : AT_OK;
}

static at_status type_of(const struct at_array *a, enum at_h5_type *type) {
    switch (a->format) {
    case AT_F64:
        *type = AT_H5_F64;
        return AT_OK;
    case AT_F32:
        *type = AT_H5_F32;
        return AT_OK;
    case AT_E4M3: /* HDF5 has no type that reads them: to it, the largest exponent is that of infinities */
    case AT_E5M2:
    case AT_F16:
        *type = AT_H5_F16;
        return AT_OK;
    case AT_BF16:
        *type = AT_H5_BF16;
        return AT_OK;
    case AT_I32:
        *type = AT_H5_I32;
        return AT_OK;
    default:
        return AT_FAIL(AT_BUG, "array %s: format %s has no type in the archive", a->name,
                       at_format_info(a->format)->name);
    }
}

/* Codes of 8 bits as those of f16; NULL without memory. */
static uint16_t *widened(const struct at_array *a) {
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->shape[i];
    uint16_t *codes = malloc(((size_t)n + 1) * sizeof *codes);
    for (int64_t i = 0; codes && i < n; i++)
        codes[i] = (uint16_t)at_encode(AT_F16, at_load(a->format, a->data, (size_t)i));
    return codes;
}

at_status at_h5_write_array(const char *path, hid_t group, const struct at_array *a) {
    at_status status = AT_OK;
    uint16_t *wide = NULL;
    struct at_h5_column column = { .name = a->name,
                                   .rank = a->rank,
                                   .scales = { H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID },
                                   .units = a->units,
                                   .long_name = a->long_name,
                                   .is_tensor = 1,
                                   .data = a->data };
    AT_TRY(type_of(a, &column.type));
    if (at_format_info(a->format)->bytes == 1) {
        column.data = wide = widened(a);
        if (!wide)
            return AT_FAIL(AT_NO_MEMORY, "%s: no memory for array %s", path, a->name);
    }
    for (int i = 0; i < a->rank; i++) {
        column.dims[i] = (hsize_t)a->shape[i];
        AT_TRY_OUT(scale_of(path, group, a->axes[i], a->shape[i], &column.scales[i]));
    }
    AT_TRY_OUT(at_h5_write(path, group, &column));
out:
    free(wide);
    for (int i = 0; i < a->rank; i++)
        at_h5_close(column.scales[i]);
    return status;
}

static at_status write_all(const char *path, hid_t file, const struct at_array *arrays, int n) {
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    for (int i = 0; i < n; i++) {
        if (i == 0 || strcmp(arrays[i].group, arrays[i - 1].group) != 0) {
            at_h5_close(group);
            AT_TRY_OUT(at_h5_group(path, file, arrays[i].group, "dump", "NXcollection", &group));
        }
        AT_TRY_OUT(at_h5_write_array(path, group, &arrays[i]));
    }
out:
    at_h5_close(group);
    return status;
}

static at_status write_file(const char *path, const struct at_array *arrays, int n) {
    struct at_h5_image image;
    hid_t file;
    at_h5_quiet();
    AT_TRY(at_h5_create(path, &image, &file));
    at_status status = write_all(path, file, arrays, n);
    if (status == AT_OK)
        return at_h5_save(path, file, &image);
    at_h5_abandon(file, &image);
    return status;
}

/* Debian's HDF5 takes calls from several threads; others need not. */
at_status at_arrays_write(const char *path, const struct at_array *arrays, int n) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    at_status status = write_file(path, arrays, n);
    pthread_mutex_unlock(&lock);
    return status;
}
