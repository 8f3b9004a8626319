/* Tensor views: a name, a number format, a shape, and memory that somebody else owns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TENSOR_H
#define AT_TENSOR_H

#include <stdint.h>

#include "attest/format.h"

enum { AT_MAX_RANK = 4 };

/* Contiguous, row-major (last dimension fastest). `data` is NULL for a tensor that the problem does
 * not have (the block table of a contiguous layout, for example); it then has rank 0
 * (at_problem_shape()), and rank 0 counts 0 elements. */
struct at_tensor {
    void *data;
    enum at_format format;
    int rank;
    int64_t shape[AT_MAX_RANK];
};

static inline int64_t at_tensor_count(const struct at_tensor *t) {
    if (t->rank == 0)
        return 0;
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}

/* Bytes of the tensor's elements. */
static inline int64_t at_tensor_bytes(const struct at_tensor *t) {
    return at_tensor_count(t) * (int64_t)at_format_info(t->format)->bytes;
}

static inline double at_tensor_get(const struct at_tensor *t, int64_t i) {
    return at_load(t->format, t->data, (size_t)i);
}

static inline int32_t at_tensor_i32(const struct at_tensor *t, int64_t i) { return ((const int32_t *)t->data)[i]; }

#endif
