/* A tensor in global memory and the box of it that one copy moves: the content of a tensor map. For C and C++.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TENSOR_BOX_H
#define AT_TENSOR_BOX_H

#include <stddef.h>
#include <stdint.h>

enum { AT_TENSOR_DIMS = 5, AT_TENSOR_BOX_MAX = 256 };

/* Dimension 0 is the innermost. */
struct at_tensor_box {
    const void *base;
    int rank, element_bytes;        /* 1 to 5; 1, 2, 4 or 8 */
    int64_t size[AT_TENSOR_DIMS];   /* elements */
    int64_t stride[AT_TENSOR_DIMS]; /* bytes from one element to the next; [0] is not looked at: they are neighbours */
    int box[AT_TENSOR_DIMS];        /* elements */
    int swizzle;                    /* 0, 32, 64 or 128: bytes of the box's dimension 0 */
};

#ifdef __cplusplus
extern "C" {
#endif

/* What a tensor map cannot say; NULL: it can. The hardware takes swizzled rows shorter than the swizzle, too; how they
 * lie then nobody needs here. */
const char *at_tensor_box_wrong(const struct at_tensor_box *t);

#ifdef __cplusplus
}
#endif

#endif
