/* The operator descriptor: everything the verifier knows of an operator, as one table.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder reference/<name>/ defines `const struct at_op at_op_<name>`; the build finds it by its
 * path and writes the table that at_op_find() searches. */
#ifndef AT_OP_H
#define AT_OP_H

#include "attest/ledger.h"
#include "attest/numerics.h"
#include "attest/problem.h"

enum at_role { AT_IN, AT_OUT, AT_INOUT };
/* The format of a tensor: the problem's activation type, its parameter `out`, or fixed. */
enum at_format_rule { AT_FORMAT_DTYPE, AT_FORMAT_F32, AT_FORMAT_I32, AT_FORMAT_OUT, AT_FORMAT_F64 };

struct at_tensor_spec {
    const char *name;
    enum at_role role;
    enum at_format_rule format;
    enum at_dim dims[AT_MAX_RANK]; /* AT_DIM_NONE ends the list */
    const char *meaning;
};

/* What an evaluation of rows is asked for and where it goes. Arrays are indexed by the operator's
 * tensor index and hold the whole output tensor, flat; an evaluation of rows [row0, row1) writes
 * those rows' elements only, so that row ranges can run on different threads. NULL: not wanted. */
struct at_eval {
    double *value[AT_MAX_TENSORS];
    double *limit[AT_MAX_TENSORS];
    struct at_ledger *ledger;
    /* Intermediates of a row (attention): n values over its visible keys, for the stages score,
     * scaled, gate_in and p. Called in ascending key order, one call per stage and row. */
    void (*trace)(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values);
    void *trace_context;
};

/* A way of being wrong that the comparison must be able to reject. */
struct at_decoy_spec {
    const char *name, *meaning;
};

struct at_op {
    const char *name, *summary, *source;
    const struct at_tensor_spec *tensors;
    int n_tensors;
    const struct at_decoy_spec *decoys; /* the operator's own, beside the general ones of verify */
    int n_decoys;

    /* Is this a problem of the operator: sizes, parameters, shapes, contents of index tensors.
     * AT_USAGE with what was found and what is wanted. Every other function assumes it passed. */
    at_status (*check)(const struct at_problem *problem);
    /* Independent rows: (token, query head) for attention, in that order; token for norms. */
    int64_t (*rows)(const struct at_problem *problem);
    /* The elements of output tensor `tensor` that belong to `row`: [*first, *first + *count). */
    void (*row_span)(const struct at_problem *problem, int tensor, int64_t row, int64_t *first, int64_t *count);
    /* Multiply-adds of one row, for planning and progress. */
    double (*row_work)(const struct at_problem *problem, int64_t row);

    /* Exact value in double of the operator on the stored inputs, not rounded to the output format.
     * With `limit` arrays: also the per-element limit of |kernel - value| for a kernel with these
     * numerics, rounding of the output and the reference's own error included; +inf where the
     * declared arithmetic has no limit (an f16 accumulator that can overflow: class RANGE).
     * `numerics` may be NULL when no limit is wanted. Non-finite values propagate. */
    at_status (*evaluate)(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                          int64_t row1, struct at_eval *eval);
    /* The value a kernel with these numerics must produce, rounded to the output's format, through
     * reference/tensor_core and never through kernel source. `limit` arrays receive the deviation
     * still allowed (0: to the bit). AT_UNSUPPORTED when the numerics declare no order. The ledger
     * is that of the declared arithmetic. */
    at_status (*model)(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                       struct at_eval *eval);
    /* The exact value of the operator made wrong in way `decoy` (index into decoys). Elements the
     * fault does not touch equal evaluate()'s. */
    at_status (*decoy)(const struct at_problem *problem, const struct at_numerics *numerics, int decoy, int64_t row0,
                       int64_t row1, struct at_eval *eval);
};

/* The operator of that name, NULL if none; at_op_count()/at_op_at() walk the table. */
const struct at_op *at_op_find(const char *name);
int at_op_count(void);
const struct at_op *at_op_at(int i);

/* Index of the tensor called `name` in op->tensors, -1 if none. */
int at_op_tensor_index(const struct at_op *op, const char *name);
/* Fills problem->tensors[i] shape and format from the operator's table and problem->sizes; data stays
 * as it is. A tensor with a dimension of size 0 gets rank 0 and counts 0 elements. */
void at_problem_shape(struct at_problem *problem);
/* Value of a dimension. */
int64_t at_dim_size(const struct at_sizes *sizes, enum at_dim dim);
/* What one place along a dimension is called: "token", "head". Different for the dimensions of one operator. */
const char *at_dim_word(enum at_dim dim);

/* A family of kernels: kernels/families.txt maps it to its operator and constraint. */
struct at_family {
    const char *name, *op;
    int decode; /* constraint sq=1: one query per request */
};
const struct at_family *at_family_find(const char *name);
int at_family_count(void);
const struct at_family *at_family_at(int i);

#endif
