/* The HDF5 type of a column's values; shared by writing and reading.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_H5TYPE_H
#define AT_H5TYPE_H

#include "verify/archive/h5util.h"

/* A new id, little-endian; close it. Negative on failure. */
hid_t at_h5_make_type(enum at_h5_type type);

#endif
