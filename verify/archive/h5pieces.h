/* Datasets of integers or values that are filled piece by piece, deflated.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_H5PIECES_H
#define AT_H5PIECES_H

#include "verify/archive/h5util.h"

/* A dataset of rank 1 to 4 with an open scale for each axis. Chunks that are never written read as zeros. */
struct at_h5_pieces {
    const char *name, *long_name;
    int rank;
    hsize_t dims[AT_H5_RANK], chunk[AT_H5_RANK];
    hid_t scales[AT_H5_RANK];
    int level; /* of deflate; 0: as columns have it */
    int bare;  /* as columns are: without scales and attributes */
};

/* An empty dataset with long_name and units; *dataset stays open. */
at_status at_h5_create_pieces(const char *file, hid_t group, enum at_h5_type type, const struct at_h5_pieces *pieces,
                              hid_t *dataset);
/* The values of [start, start + count) along each axis, as uint64. */
at_status at_h5_put_piece(const char *file, hid_t dataset, int rank, const hsize_t *start, const hsize_t *count,
                          const uint64_t *values);

#endif
