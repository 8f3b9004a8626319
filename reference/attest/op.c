/* What every operator's table answers: tensors by name, sizes of dimensions, shapes of a problem.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/op.h"

#include <math.h>
#include <string.h>

void *at_op_prepare(const struct at_problem *problem) {
    return problem->op->prepare ? problem->op->prepare(problem) : NULL;
}

int at_op_tensor_index(const struct at_op *op, const char *name) {
    for (int i = 0; i < op->n_tensors; i++)
        if (op->tensors[i].name[0] == name[0] && strcmp(op->tensors[i].name, name) == 0) /* asked for every row */
            return i;
    return -1;
}

int at_op_filled_index(const struct at_op *op, enum at_fill fill) {
    for (int i = 0; i < op->n_tensors; i++)
        if (op->tensors[i].fill == fill)
            return i;
    return -1;
}

unsigned at_op_dtypes(const struct at_op *op) {
    return op->dtypes ? op->dtypes : 1u << AT_F32 | 1u << AT_F16 | 1u << AT_BF16;
}

/* ---- dimensions ---- */

static const struct at_scalar *own_dimension(const struct at_op *op, enum at_dim dim) {
    const int i = (int)dim - (int)AT_DIM_OWN_FIRST;
    return i >= 0 && i < op->n_own ? &op->own[i] : NULL;
}

/* A field of the shared ones, or of the operator's own table; NULL for the others. */
static const struct at_scalar *field_of(const struct at_op *op, enum at_dim dim) {
    if (dim > AT_DIM_NONE && dim < AT_DIM_b_plus_1)
        return at_shared_scalar((enum at_shared_index)((int)dim - 1));
    return own_dimension(op, dim);
}

int64_t at_dim_size(const struct at_problem *problem, enum at_dim dim) {
    const struct at_scalar *field = field_of(problem->op, dim);
    if (field)
        return (int64_t)at_scalar_get(problem, field);
    return dim == AT_DIM_b_plus_1 ? problem->sizes.b + 1 : 0;
}

void at_dim_set(struct at_problem *problem, enum at_dim dim, int64_t size) {
    const struct at_scalar *field = field_of(problem->op, dim);
    if (field)
        at_scalar_set(problem, field, (double)size);
}

const char *at_dim_word(const struct at_op *op, enum at_dim dim) {
    const struct at_scalar *own = own_dimension(op, dim);
    if (own)
        return own->word;
    switch (dim) {
    case AT_DIM_b:
        return "request";
    case AT_DIM_b_plus_1:
        return "bound";
    case AT_DIM_tokens:
        return "token";
    case AT_DIM_h:
        return "head";
    case AT_DIM_hk:
        return "kv head";
    case AT_DIM_d:
    case AT_DIM_channels:
        return "channel";
    case AT_DIM_slots:
        return "slot";
    case AT_DIM_max_pages:
        return "page";
    case AT_DIM_taps:
        return "tap";
    default:
        return "index";
    }
}

/* ---- shapes ---- */

static enum at_format format_of(const struct at_problem *problem, int tensor) {
    switch (problem->op->tensors[tensor].format) {
    case AT_FORMAT_OWN:
        return problem->op->own_format(problem, tensor);
    case AT_FORMAT_F32:
        return AT_F32;
    case AT_FORMAT_I32:
        return AT_I32;
    case AT_FORMAT_F64:
        return AT_F64;
    case AT_FORMAT_DTYPE:
        break;
    }
    return problem->dtype;
}

/* A key_start says where a request's keys begin in contiguous k and v; with pages the block table does, and no size of
 * the problem is 0 to tell it; nor is one where no bias is added to scores. */
static int absent(const struct at_problem *problem, const struct at_tensor_spec *spec) {
    if (spec->fill == AT_FILL_ALIBI)
        return !(fabs(at_scalar_get(problem, at_op_scalar(problem->op, "alibi"))) > 0);
    return problem->sizes.page > 0 && spec->fill == AT_FILL_KEY_START;
}

void at_problem_shape(struct at_problem *problem) {
    const struct at_op *op = problem->op;
    for (int i = 0; i < op->n_tensors; i++) {
        const struct at_tensor_spec *spec = &op->tensors[i];
        struct at_tensor *tensor = &problem->tensors[i];
        int empty = absent(problem, spec);
        tensor->format = format_of(problem, i);
        tensor->rank = 0;
        memset(tensor->shape, 0, sizeof tensor->shape);
        for (int r = 0; r < AT_MAX_RANK && spec->dims[r] != AT_DIM_NONE; r++) {
            tensor->shape[r] = at_dim_size(problem, spec->dims[r]);
            empty |= tensor->shape[r] == 0;
            tensor->rank = r + 1;
        }
        if (empty) {
            tensor->rank = 0;
            memset(tensor->shape, 0, sizeof tensor->shape);
        }
    }
}

void at_tensor_copy_rows(struct at_tensor *dst, int64_t to, const struct at_tensor *src, int64_t from, int64_t count) {
    int64_t row = (int64_t)at_format_info(src->format)->bytes;
    for (int i = 1; i < src->rank; i++)
        row *= src->shape[i];
    if (count > 0 && row > 0)
        memcpy((char *)dst->data + to * row, (const char *)src->data + from * row, (size_t)(count * row));
}

int at_tensor_finite(const struct at_tensor *tensor, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++)
        if (!isfinite(at_tensor_get(tensor, i)))
            return 0;
    return 1;
}
