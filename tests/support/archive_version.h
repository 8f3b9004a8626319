/* An archive whose groups say that they are of another version.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARCHIVE_VERSION_H
#define AT_ARCHIVE_VERSION_H

#include <hdf5.h>

#include "tests/at_test.h"

static inline void set_version(hid_t file, const char *object, const char *version) {
    /* H5Aopen_by_name of 1.10.8 gives the root's attribute, whatever object is named */
    hid_t id = H5Oopen(file, object, H5P_DEFAULT), at = H5Aopen(id, "encoding-version", H5P_DEFAULT);
    hid_t type = H5Aget_type(at);
    assert_true(H5Awrite(at, type, &version) >= 0);
    H5Tclose(type);
    H5Aclose(at);
    H5Oclose(id);
}

#endif
