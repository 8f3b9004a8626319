/* A dataset put into an archive by HDF5 itself.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARCHIVE_DATASET_H
#define AT_ARCHIVE_DATASET_H

#include <hdf5.h>

#include "tests/at_test.h"

/* Zeros. Small ones lie there as in files of attest, where what an extent claims is there; large ones only claim it. */
static inline void add_dataset(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims) {
    hid_t space = H5Screate_simple(rank, dims, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
    if (dims[0] < 100)
        H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY);
    hid_t data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    assert_true(data >= 0);
    H5Dclose(data);
    H5Pclose(create);
    H5Sclose(space);
}

#endif
