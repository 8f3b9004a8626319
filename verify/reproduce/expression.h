/* Arithmetic of claims: numbers, names, + - * / and parentheses.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_EXPRESSION_H
#define AT_EXPRESSION_H

#include "attest/status.h"

struct at_names {
    const char *const *names;
    const double *values;
    int n;
};

/* The value of `text`, where names[i] stands for values[i]. AT_USAGE with `where`, the column and what is wanted there; a
 * division by zero is NaN. */
at_status at_expression_value(const char *text, const char *where, const struct at_names *names, double *value);

#endif
