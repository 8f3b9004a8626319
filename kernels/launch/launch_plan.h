/* What a launch file says: device code, the kernels of it that are launched, in which grids, with which arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LAUNCH_PLAN_H
#define AT_LAUNCH_PLAN_H

#include "attest/numerics.h"
#include "attest/sha256.h"
#include "kernels/launch/expression.h"

enum { AT_PLAN_KERNELS = 8, AT_PLAN_ARGS = 48, AT_PLAN_MAPS = 8, AT_PLAN_REQUIRES = 16, AT_PLAN_MAP_DIMS = 5 };

enum at_arg_kind { AT_ARG_POINTER, AT_ARG_NULL, AT_ARG_I32, AT_ARG_U32, AT_ARG_I64, AT_ARG_F32, AT_ARG_MAP };
enum { AT_ARG_WORKSPACE = -1 };

/* One argument of a kernel. */
struct at_plan_arg {
    enum at_arg_kind kind;
    int tensor;                        /* POINTER: index in the operator's table, or AT_ARG_WORKSPACE; MAP: which */
    struct at_launch_expression value; /* whole numbers: it; POINTER: bytes beyond */
    const struct at_scalar *param;     /* F32: this parameter times `factor`; NULL: the factor alone */
    double factor;
    char text[64]; /* as it was written */
};

struct at_plan_kernel {
    char name[256];
    struct at_launch_expression grid[3], block[3], cluster[3]; /* what is left out is 1 */
    struct at_launch_expression shared;                        /* bytes of dynamic shared memory */
    struct at_launch_expression when;                          /* 0: this job does without it */
    int has_cluster, pdl;
    int n_args;
    struct at_plan_arg args[AT_PLAN_ARGS];
};

/* A tensor map; dimension 0 is the innermost. */
struct at_plan_map {
    char name[64];
    int tensor, rank;
    struct at_launch_expression dims[AT_PLAN_MAP_DIMS];    /* elements */
    struct at_launch_expression strides[AT_PLAN_MAP_DIMS]; /* bytes, from dimension 1 on; [0] is not used */
    int has_strides;                                       /* 0: contiguous */
    struct at_launch_expression box[AT_PLAN_MAP_DIMS];     /* elements */
    int swizzle, l2;                                       /* bytes; 0: none */
    int oob_nan;                                           /* 1: what lies outside is read as NaN, else as 0 */
};

/* One launch file: one variant. */
struct at_plan {
    char path[512]; /* of the file, as it was given */
    char family[64], name[96], summary[256], source[64];
    const struct at_op *op;
    struct at_numerics numerics;
    unsigned dtypes; /* bit f: enum at_format f; 0: what the operator takes */
    /* The device code, a byte 0 behind it; code_name: its file as the launch file has it. */
    char *code;
    int64_t code_bytes;
    char code_name[256], sha256[AT_SHA256_TEXT];
    int is_ptx;
    int sm;        /* 90 */
    char sm_class; /* 0, or 'a', 'f' */
    struct at_launch_expression_scope scope;
    struct at_launch_expression
        named[AT_NAMED_MAX]; /* what the names of the scope stand for, each of those before it */
    int n_requires;
    struct at_launch_expression needs[AT_PLAN_REQUIRES]; /* 0: the job is declined */
    struct at_launch_expression workspace;               /* bytes */
    int n_maps, n_kernels;
    struct at_plan_map maps[AT_PLAN_MAPS];
    struct at_plan_kernel kernels[AT_PLAN_KERNELS];
};

/* Reads a launch file and the device code it names, which lies beside it unless its path is absolute. AT_USAGE with file, field,
 * what was found and what is wanted; AT_IO. The caller gives it back, also after a failure. */
at_status at_plan_read(const char *path, struct at_plan **plan);
void at_plan_free(struct at_plan *plan);

#endif
