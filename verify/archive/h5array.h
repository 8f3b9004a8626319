/* One array into an open group; shared by dumps and the archive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_H5ARRAY_H
#define AT_H5ARRAY_H

#include "verify/archive/arrays.h"
#include "verify/archive/h5util.h"

/* Writes the array (its group's name does not matter) with the scales of its axes, made where they are not there. */
at_status at_h5_write_array(const char *path, hid_t group, const struct at_array *array);

#endif
