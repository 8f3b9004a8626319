/* Plain named tables of doubles in an HDF5 file, for dumps.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARRAYS_H
#define AT_ARRAYS_H

#include <stdint.h>

#include "attest/status.h"

struct at_array {
    char group[32], name[48];
    char units[32], long_name[96];
    char axes[2][32]; /* names of the dimension scales; equal names within a group mean one scale */
    int64_t shape[2];
    const double *data;
};

/* Writes a new file (in full or not at all): one dataset an array, in its group, with units, long_name and a dimension
 * scale on both axes. Arrays of one group follow one another. */
at_status at_arrays_write(const char *path, const struct at_array *arrays, int n);

#endif
