/* Datasets that are filled piece by piece.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/h5pieces.h"

#include <hdf5_hl.h>

#include "verify/archive/h5type.h"

enum { DEFLATE_LEVEL = 6 };

static hid_t storage(const struct at_h5_pieces *p) {
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (list >= 0 && (H5Pset_obj_track_times(list, 0) < 0 || H5Pset_attr_creation_order(list, order) < 0 ||
                      H5Pset_chunk(list, p->rank, p->chunk) < 0 || H5Pset_shuffle(list) < 0 ||
                      H5Pset_deflate(list, p->level ? (unsigned)p->level : DEFLATE_LEVEL) < 0)) {
        at_h5_close(list);
        return H5I_INVALID_HID;
    }
    return list;
}

at_status at_h5_create_pieces(const char *file, hid_t group, enum at_h5_type type, const struct at_h5_pieces *p,
                              hid_t *dataset) {
    at_status status = AT_OK;
    hid_t values = at_h5_make_type(type), list = storage(p), space = H5Screate_simple(p->rank, p->dims, NULL);
    *dataset = H5I_INVALID_HID;
    if (values < 0 || list < 0 || space < 0)
        AT_FAIL_OUT(AT_IO, "%s: cannot set up %s", file, p->name);
    *dataset = H5Dcreate2(group, p->name, values, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (*dataset < 0) {
        status = at_h5_fail(AT_IO, file, "create", p->name);
        goto out;
    }
    if (p->bare)
        goto out;
    for (int i = 0; i < p->rank; i++)
        if (H5DSattach_scale(*dataset, p->scales[i], (unsigned)i) < 0) {
            status = at_h5_fail(AT_IO, file, "attach the scale of", p->name);
            goto out;
        }
    AT_TRY_OUT(at_h5_attr_text(file, *dataset, "long_name", p->long_name));
    AT_TRY_OUT(at_h5_attr_text(file, *dataset, "units", "1"));
out:
    at_h5_close(values);
    at_h5_close(list);
    at_h5_close(space);
    return status;
}

at_status at_h5_put_piece(const char *file, hid_t dataset, int rank, const hsize_t *start, const hsize_t *count,
                          const uint64_t *values) {
    at_status status = AT_OK;
    hid_t type = at_h5_make_type(AT_H5_U64), space = H5Dget_space(dataset);
    hid_t memory = H5Screate_simple(rank, count, NULL);
    if (type < 0 || space < 0 || memory < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, values) < 0)
        status = at_h5_fail(AT_IO, file, "write", "a piece of a dataset");
    at_h5_close(memory);
    at_h5_close(space);
    at_h5_close(type);
    return status;
}
