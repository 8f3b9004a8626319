/* Tables of doubles to HDF5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/arrays.h"

#include <string.h>

#include "verify/archive/h5util.h"

/* The scale called `name` of this group, made when it is not there yet. */
static at_status scale_of(const char *path, hid_t group, const char *name, int64_t n, hid_t *scale) {
    *scale = H5I_INVALID_HID;
    if (H5Lexists(group, name, H5P_DEFAULT) > 0) {
        *scale = H5Dopen2(group, name, H5P_DEFAULT);
        return *scale < 0 ? at_h5_fail(AT_IO, path, "open scale", name) : AT_OK;
    }
    return at_h5_scale(path, group, name, (hsize_t)n, 0, name, scale);
}

static at_status write_array(const char *path, hid_t group, const struct at_array *a) {
    at_status status = AT_OK;
    struct at_h5_column column = { .name = a->name,
                                   .type = AT_H5_F64,
                                   .rank = 2,
                                   .dims = { (hsize_t)a->shape[0], (hsize_t)a->shape[1] },
                                   .scales = { H5I_INVALID_HID, H5I_INVALID_HID },
                                   .units = a->units,
                                   .long_name = a->long_name,
                                   .data = a->data };
    for (int i = 0; i < 2; i++)
        AT_TRY_OUT(scale_of(path, group, a->axes[i], a->shape[i], &column.scales[i]));
    AT_TRY_OUT(at_h5_write(path, group, &column));
out:
    for (int i = 0; i < 2; i++)
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
        AT_TRY_OUT(write_array(path, group, &arrays[i]));
    }
out:
    at_h5_close(group);
    return status;
}

at_status at_arrays_write(const char *path, const struct at_array *arrays, int n) {
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
