/* What a tensor map cannot say: host code of both implementations of the kernels' language.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/device/tensor_box.h"

static const char *dimension_wrong(const struct at_tensor_box *t, int i) {
    if (t->size[i] < 1 || t->size[i] > (int64_t)1 << 32)
        return "1 to 2^32 elements in each dimension";
    if (t->box[i] < 1 || t->box[i] > AT_TENSOR_BOX_MAX)
        return "a box of 1 to 256 elements in each dimension";
    if (i > 0 && (t->stride[i] < 0 || t->stride[i] % 16 || t->stride[i] >= (int64_t)1 << 40))
        return "strides are multiples of 16, less than 2^40";
    return NULL;
}

const char *at_tensor_box_wrong(const struct at_tensor_box *t) {
    const int e = t->element_bytes;
    if (t->rank < 1 || t->rank > AT_TENSOR_DIMS)
        return "1 to 5 dimensions";
    if (e != 1 && e != 2 && e != 4 && e != 8)
        return "elements of 1, 2, 4 or 8 bytes";
    if (!t->base || (uintptr_t)t->base % 16)
        return "the tensor begins at a multiple of 16";
    for (int i = 0; i < t->rank; i++)
        if (dimension_wrong(t, i))
            return dimension_wrong(t, i);
    if (t->box[0] * e % 16)
        return "rows of a box are multiples of 16 bytes";
    if (t->swizzle != 0 && t->swizzle != 32 && t->swizzle != 64 && t->swizzle != 128)
        return "a swizzle of 0, 32, 64 or 128 bytes";
    if (t->swizzle && t->box[0] * e != t->swizzle)
        return "swizzled rows of a box have as many bytes as the swizzle";
    return NULL;
}
