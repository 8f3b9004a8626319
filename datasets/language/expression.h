/* Arithmetic in claims and stacks: numbers, names, + - * / and parentheses.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_EXPRESSION_H
#define AT_EXPRESSION_H

#include "attest/status.h"

/* What names stand for: `at` begins with one of `length` characters (letters, digits, _). Any status but AT_OK ends the
 * reading. */
struct at_expression_names {
    at_status (*value)(const void *context, const char *at, int length, double *value);
    const void *context;
};

/* The value of `text`. AT_USAGE with `where`, the column and what is wanted there; a division by zero is NaN. */
at_status at_expression_value(const char *text, const char *where, const struct at_expression_names *names,
                              double *value);

#endif
