/* Arithmetic in claims and stacks, by recursive descent.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/expression.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32 };

struct reading {
    const char *text, *at, *where;
    const struct at_expression_names *names;
    int depth;
};

static at_status sum(struct reading *r, double *value);

static void skip_space(struct reading *r) { r->at += strspn(r->at, " \t"); }

static at_status misread(const struct reading *r, const char *wanted) {
    return AT_FAIL(AT_USAGE, "%s: found \"%.24s\" at column %d of \"%.120s\", wanted %s", r->where,
                   *r->at ? r->at : "the end", (int)(r->at - r->text) + 1, r->text, wanted);
}

static at_status name_value(struct reading *r, double *value) {
    int length = 0;
    while (isalnum((unsigned char)r->at[length]) || r->at[length] == '_')
        length++;
    AT_TRY(r->names->value(r->names->context, r->at, length, value));
    r->at += length;
    return AT_OK;
}

static at_status factor(struct reading *r, double *value) {
    char *end;
    *value = 0;
    skip_space(r);
    if (isalpha((unsigned char)*r->at))
        return name_value(r, value);
    if (*r->at == '(') {
        if (++r->depth > DEEPEST)
            return misread(r, "at most 32 parentheses in each other");
        r->at++;
        AT_TRY(sum(r, value));
        skip_space(r);
        if (*r->at != ')')
            return misread(r, "a closing parenthesis");
        r->at++;
        r->depth--;
        return AT_OK;
    }
    if (!isdigit((unsigned char)*r->at))
        return misread(r, "a number, a name or a parenthesis");
    *value = strtod(r->at, &end);
    r->at = end;
    return AT_OK;
}

static at_status product(struct reading *r, double *value) {
    double right;
    AT_TRY(factor(r, value));
    for (skip_space(r); *r->at == '*' || *r->at == '/'; skip_space(r)) {
        const char operation = *r->at++;
        AT_TRY(factor(r, &right));
        /* What is divided by nothing is no figure, and NaN is "not seen"; infinity would be above every bound. */
        *value = operation == '*' ? *value * right : right == 0 ? NAN : *value / right;
    }
    return AT_OK;
}

static at_status sum(struct reading *r, double *value) {
    double right;
    AT_TRY(product(r, value));
    for (skip_space(r); *r->at == '+' || *r->at == '-'; skip_space(r)) {
        const char operation = *r->at++;
        AT_TRY(product(r, &right));
        *value = operation == '+' ? *value + right : *value - right;
    }
    return AT_OK;
}

at_status at_expression_value(const char *text, const char *where, const struct at_expression_names *names,
                              double *value) {
    struct reading r = { .text = text, .at = text, .where = where, .names = names };
    AT_TRY(sum(&r, value));
    return *r.at ? misread(&r, "an operation or the end") : AT_OK;
}
