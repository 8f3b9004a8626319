/* Number formats as HDF5 types: float16 as h5py calls it, bfloat16 and the two fp8 formats as types of our own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_H5FLOAT_H
#define AT_H5FLOAT_H

#include <hdf5.h>

#include "attest/format.h"

/* 1 and *format when the type's codes are those of a format of ours. */
int at_h5_float_match(hid_t type, enum at_format *format);
/* A new little-endian type with the codes of a format (f64, f32, f16, bf16, e4m3 or e5m2); close it. Negative on
 * failure, and for the other formats. */
hid_t at_h5_float_make(enum at_format format);

#endif
