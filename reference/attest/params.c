/* Sizes and parameters of operators: the shared ones as a table, one operator's own behind it, their values.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "attest/op.h"

#define TYPE_OF(x) _Generic(x, float : AT_SCALAR_FLOAT, int32_t : AT_SCALAR_INT)

static const struct at_scalar shared[AT_SHARED_COUNT] = {
#define X(member, text) \
    { .name = #member, \
      .type = AT_SCALAR_SIZE, \
      .place = (int)(offsetof(struct at_problem, sizes) + offsetof(struct at_sizes, member)), \
      .meaning = (text) },
    AT_SIZE_LIST(X)
#undef X
#define X(c_type, member, number, text) \
    { .name = #member, \
      .type = TYPE_OF((c_type)0), \
      .place = (int)(offsetof(struct at_problem, params) + offsetof(struct at_params, member)), \
      .value = (double)(number), \
      .meaning = (text) },
        AT_PARAM_LIST(X)
#undef X
};

struct at_params at_params_default(void) {
    struct at_params params = {
#define X(type, name, value, meaning) .name = (value),
        AT_PARAM_LIST(X)
#undef X
    };
    return params;
}

const struct at_scalar *at_shared_scalar(enum at_shared_index which) { return &shared[which]; }

/* Place among the shared ones of the i-th that an operator uses. */
static int shared_at(const struct at_op *op, int i) {
    for (int place = 0; place < AT_SHARED_COUNT; place++)
        if (op->uses >> place & 1 && i-- == 0)
            return place;
    return -1;
}

const struct at_scalar *at_op_scalar_at(const struct at_op *op, int i) {
    const int n_shared = __builtin_popcountll(op->uses);
    if (i < 0)
        return NULL;
    if (i < n_shared)
        return &shared[shared_at(op, i)];
    for (int own = 0, left = i - n_shared; own < op->n_own; own++)
        if (op->own[own].type != AT_SCALAR_FIXED && left-- == 0)
            return &op->own[own];
    return NULL;
}

const struct at_scalar *at_op_scalar(const struct at_op *op, const char *name) {
    const struct at_scalar *field;
    for (int i = 0; (field = at_op_scalar_at(op, i)); i++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

int at_scalar_is_size(const struct at_scalar *field) { return field->type == AT_SCALAR_SIZE; }

double at_scalar_get(const struct at_problem *problem, const struct at_scalar *field) {
    const char *at = (const char *)problem + field->place;
    int64_t size;
    float real;
    int32_t whole;
    switch (field->type) {
    case AT_SCALAR_FIXED:
        return field->value;
    case AT_SCALAR_SIZE:
        memcpy(&size, at, sizeof size);
        return (double)size;
    case AT_SCALAR_FLOAT:
        memcpy(&real, at, sizeof real);
        return (double)real;
    default:
        memcpy(&whole, at, sizeof whole);
        return whole;
    }
}

void at_scalar_set(struct at_problem *problem, const struct at_scalar *field, double value) {
    char *at = (char *)problem + field->place;
    const int64_t size = field->type == AT_SCALAR_SIZE ? (int64_t)value : 0;
    const float real = (float)value;
    switch (field->type) {
    case AT_SCALAR_FIXED:
        return;
    case AT_SCALAR_SIZE:
        memcpy(at, &size, sizeof size);
        return;
    case AT_SCALAR_FLOAT:
        memcpy(at, &real, sizeof real);
        return;
    default:
        memcpy(at, &(int32_t){ (int32_t)value }, sizeof(int32_t));
    }
}

void at_problem_init(struct at_problem *problem, const struct at_op *op, enum at_format dtype) {
    *problem = (struct at_problem){ .op = op, .params = at_params_default(), .dtype = dtype };
    for (int i = 0; i < op->n_own; i++)
        at_scalar_set(problem, &op->own[i], op->own[i].value);
}
