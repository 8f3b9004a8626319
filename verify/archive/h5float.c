/* The bit layouts of number formats, told to HDF5 and recognised in its types.
 * SPDX-License-Identifier: Apache-2.0
 *
 * HDF5 is never asked to convert between them: 1.10.8 does that wrongly. */
#include "verify/archive/h5float.h"

/* fp8 types other than these two have other biases or widths. */
static const struct {
    enum at_format format;
    size_t bytes, exponent_at, exponent_bits, mantissa_bits, bias;
} layouts[] = {
    { AT_F64, 8, 52, 11, 52, 1023 }, { AT_F32, 4, 23, 8, 23, 127 }, { AT_F16, 2, 10, 5, 10, 15 },
    { AT_BF16, 2, 7, 8, 7, 127 },    { AT_E4M3, 1, 3, 4, 3, 7 },    { AT_E5M2, 1, 2, 5, 2, 15 },
};

int at_h5_float_match(hid_t type, enum at_format *format) {
    size_t sign, exponent_at, exponent_bits, mantissa_at, mantissa_bits, bytes = H5Tget_size(type);
    if (H5Tget_fields(type, &sign, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) < 0)
        return 0;
    if ((bytes > 1 && H5Tget_order(type) != H5T_ORDER_LE) || H5Tget_norm(type) != H5T_NORM_IMPLIED ||
        H5Tget_offset(type) != 0 || H5Tget_precision(type) != 8 * bytes || mantissa_at != 0 || sign != 8 * bytes - 1)
        return 0;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].bytes == bytes && layouts[i].exponent_at == exponent_at &&
            layouts[i].exponent_bits == exponent_bits && layouts[i].mantissa_bits == mantissa_bits &&
            layouts[i].bias == H5Tget_ebias(type)) {
            *format = layouts[i].format;
            return 1;
        }
    return 0;
}

hid_t at_h5_float_make(enum at_format format) {
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (layouts[i].format != format)
            continue;
        /* the fields first: a type cannot become smaller than they are */
        hid_t type = H5Tcopy(layouts[i].bytes == 8 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE);
        if (type >= 0 && (H5Tset_fields(type, 8 * layouts[i].bytes - 1, layouts[i].exponent_at,
                                        layouts[i].exponent_bits, 0, layouts[i].mantissa_bits) < 0 ||
                          H5Tset_size(type, layouts[i].bytes) < 0 || H5Tset_ebias(type, layouts[i].bias) < 0)) {
            H5Tclose(type);
            return H5I_INVALID_HID;
        }
        return type;
    }
    return H5I_INVALID_HID;
}
