/* Integer expressions over a problem's sizes: how a launch file says grids, offsets and lengths.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers, names, + - * / %, comparisons and && || ! (1 or 0), min(x, y), max(x, y), cdiv(x, y): the quotient rounded up. / rounds
 * down, % is what that leaves. Names: the operator's sizes and whole-number parameters (b, h, hk, d, tokens, slots, page, causal, ...),
 * sq and sk for max_sq and max_sk, dtype_bytes of an activation, sms of the device, and names that the file defined before. All
 * in 64 bits; what does not fit is an error. Both sides of && and || are evaluated. */
#ifndef AT_EXPRESSION_H
#define AT_EXPRESSION_H

#include "attest/op.h"

enum { AT_EXPRESSION_STEPS = 48, AT_EXPRESSION_TEXT = 120, AT_NAMED_MAX = 16, AT_NAMED_BYTES = 32 };

enum at_launch_expression_do {
    AT_DO_NUMBER,
    AT_DO_SCALAR,
    AT_DO_NAMED,
    AT_DO_BYTES,
    AT_DO_SMS,
    AT_DO_ADD,
    AT_DO_SUBTRACT,
    AT_DO_MULTIPLY,
    AT_DO_DIVIDE,
    AT_DO_REMAINDER,
    AT_DO_DIVIDE_UP,
    AT_DO_MIN,
    AT_DO_MAX,
    AT_DO_EQUAL,
    AT_DO_LESS,
    AT_DO_NOT,
    AT_DO_AND,
    AT_DO_OR
};

/* In the order of a stack machine: operands, then what is done to them. */
struct at_launch_expression {
    int n;
    struct {
        enum at_launch_expression_do what;
        int64_t number;                 /* NUMBER: it; NAMED: which */
        const struct at_scalar *scalar; /* SCALAR */
    } steps[AT_EXPRESSION_STEPS];
    char text[AT_EXPRESSION_TEXT]; /* as it was written */
};

/* Names that an expression may have beside the operator's: those of a file's own, defined so far. */
struct at_launch_expression_scope {
    const struct at_op *op;
    int n;
    char named[AT_NAMED_MAX][AT_NAMED_BYTES];
};

/* What they stand for in one job. */
struct at_launch_expression_values {
    const struct at_problem *problem;
    int64_t sms;
    int64_t named[AT_NAMED_MAX];
};

/* AT_USAGE with the text, the place (1: the first letter) and what is wanted there; of an unknown name, the nearest. */
at_status at_launch_expression_parse(const char *text, const struct at_launch_expression_scope *scope,
                                     struct at_launch_expression *out);
/* AT_USAGE for a division by 0 and for what 64 bits do not hold. */
at_status at_launch_expression_value(const struct at_launch_expression *expression,
                                     const struct at_launch_expression_values *values, int64_t *value);
/* A number as an expression. */
struct at_launch_expression at_launch_expression_number(int64_t number);
/* "b h hk ...": every name that stands for a number in `scope`, cut to the room there is. */
void at_launch_expression_names(const struct at_launch_expression_scope *scope, char *text, size_t size);

#endif
