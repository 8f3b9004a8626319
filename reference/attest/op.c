/* What every operator's table answers: tensors by name, sizes of dimensions, shapes of a problem.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/op.h"

#include <string.h>

int at_op_tensor_index(const struct at_op *op, const char *name) {
    for (int i = 0; i < op->n_tensors; i++)
        if (op->tensors[i].name[0] == name[0] && strcmp(op->tensors[i].name, name) == 0) /* asked for every row */
            return i;
    return -1;
}

int64_t at_dim_size(const struct at_sizes *sizes, enum at_dim dim) {
    switch (dim) {
#define X(name, meaning) \
    case AT_DIM_##name: \
        return sizes->name;
        AT_SIZE_LIST(X)
#undef X
    case AT_DIM_b_plus_1:
        return sizes->b + 1;
    case AT_DIM_code_slots:
        return AT_CODE_SLOTS;
    case AT_DIM_head_sums:
        return AT_HEAD_SUMS;
    case AT_DIM_kv_sums:
        return AT_KV_SUMS;
    case AT_DIM_NONE:
        break;
    }
    return 0;
}

const char *at_dim_word(enum at_dim dim) {
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
    case AT_DIM_m:
        return "row";
    case AT_DIM_n:
        return "column";
    case AT_DIM_k:
        return "factor";
    case AT_DIM_quantities:
        return "quantity";
    case AT_DIM_kv_quantities:
        return "kv quantity";
    case AT_DIM_code_slots:
        return "code";
    case AT_DIM_head_sums:
        return "sum";
    case AT_DIM_kv_sums:
        return "kv sum";
    default:
        return "index";
    }
}

static enum at_format format_of(enum at_format_rule rule, const struct at_problem *problem) {
    switch (rule) {
    case AT_FORMAT_OUT:
        return (enum at_format)problem->params.out;
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

/* key_start says where a request's keys begin in contiguous k and v; with pages the block table does,
 * and no size of the problem is 0 to tell it. */
static int absent(const struct at_tensor_spec *spec, const struct at_sizes *sizes) {
    return sizes->page > 0 && strcmp(spec->name, "key_start") == 0;
}

void at_problem_shape(struct at_problem *problem) {
    const struct at_op *op = problem->op;
    for (int i = 0; i < op->n_tensors; i++) {
        const struct at_tensor_spec *spec = &op->tensors[i];
        struct at_tensor *tensor = &problem->tensors[i];
        int empty = absent(spec, &problem->sizes);
        tensor->format = format_of(spec->format, problem);
        tensor->rank = 0;
        memset(tensor->shape, 0, sizeof tensor->shape);
        for (int r = 0; r < AT_MAX_RANK && spec->dims[r] != AT_DIM_NONE; r++) {
            tensor->shape[r] = at_dim_size(&problem->sizes, spec->dims[r]);
            empty |= tensor->shape[r] == 0;
            tensor->rank = r + 1;
        }
        if (empty) {
            tensor->rank = 0;
            memset(tensor->shape, 0, sizeof tensor->shape);
        }
    }
}
