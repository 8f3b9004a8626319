/* Plain named arrays in an HDF5 file, for dumps and witnesses.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARRAYS_H
#define AT_ARRAYS_H

#include <stdint.h>

#include "attest/tensor.h"

struct at_array {
    char group[32], name[48];
    char units[32], long_name[96];
    enum at_format format; /* e4m3 and e5m2 are written as f16, which has all of their values; not tf32 */
    int rank;
    char axes[AT_MAX_RANK][32]; /* names of the dimension scales; equal names within a group mean one scale */
    int64_t shape[AT_MAX_RANK];
    const void *data; /* codes of the format, row-major */
};

/* Writes a new file (in full or not at all): one dataset an array, in its group, with units, long_name and a dimension
 * scale on every axis. Arrays of one group follow one another. May be called from several threads. */
at_status at_arrays_write(const char *path, const struct at_array *arrays, int n);

#endif
