/* Parsing and evaluation of a launch file's integer expressions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/expression.h"

#include "attest/names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 24, NAMES_MAX = 96 };

/* ---- names ---- */

static int is_whole(const struct at_scalar *s) { return s->type != AT_SCALAR_FLOAT; }

/* Short names of the case language for what a launch sees of many requests. */
static const struct { const char *name, *stands_for; } also[] = { { "sq", "max_sq" }, { "sk", "max_sk" } };
enum { ALSO = sizeof also / sizeof also[0] };
static const char *const functions[] = { "min", "max", "cdiv" };

static int list_names(const struct at_launch_expression_scope *scope, const char **names) {
    int n = 0;
    for (int i = 0; i < scope->n && n < NAMES_MAX; i++)
        names[n++] = scope->named[i];
    const struct at_scalar *s;
    for (int i = 0; n < NAMES_MAX && (s = at_op_scalar_at(scope->op, i)) != NULL; i++)
        if (is_whole(s))
            names[n++] = s->name;
    for (int i = 0; i < ALSO && n < NAMES_MAX; i++)
        if (at_op_scalar(scope->op, also[i].stands_for))
            names[n++] = also[i].name;
    if (n + 2 <= NAMES_MAX) {
        names[n++] = "dtype_bytes";
        names[n++] = "sms";
    }
    return n;
}

void at_launch_expression_names(const struct at_launch_expression_scope *scope, char *text, size_t size) {
    const char *names[NAMES_MAX];
    const int n = list_names(scope, names);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", names[i]);
}

/* ---- parsing ---- */

struct parser {
    const char *text, *at;
    const struct at_launch_expression_scope *scope;
    struct at_launch_expression *out;
    int depth;
};

static at_status wanted(const struct parser *p, const char *what) {
    return AT_FAIL(AT_USAGE, "\"%.100s\": at place %d, found %s%.12s, wanted %s", p->text, (int)(p->at - p->text) + 1,
                   *p->at ? "" : "the end", p->at, what);
}

static at_status put(struct parser *p, enum at_launch_expression_do what, int64_t number,
                     const struct at_scalar *scalar) {
    struct at_launch_expression *out = p->out;
    if (out->n == AT_EXPRESSION_STEPS)
        return AT_FAIL(AT_USAGE, "\"%.100s\": more than %d numbers, names and operations", p->text,
                       (int)AT_EXPRESSION_STEPS);
    out->steps[out->n].what = what;
    out->steps[out->n].number = number;
    out->steps[out->n++].scalar = scalar;
    return AT_OK;
}

static void skip_spaces(struct parser *p) {
    while (*p->at == ' ')
        p->at++;
}

/* Passes over `token` when it comes next. */
static int comes(struct parser *p, const char *token) {
    skip_spaces(p);
    const size_t n = strlen(token);
    if (strncmp(p->at, token, n) != 0)
        return 0;
    p->at += n;
    return 1;
}

static at_status parse_or(struct parser *p);

static at_status parse_number(struct parser *p) {
    char *end;
    errno = 0;
    const long long value = strtoll(p->at, &end, 10);
    if (errno)
        return wanted(p, "a number of 64 bits");
    p->at = end;
    return put(p, AT_DO_NUMBER, value, NULL);
}

static at_status parse_call(struct parser *p, enum at_launch_expression_do what) {
    if (!comes(p, "("))
        return wanted(p, "( and two arguments");
    AT_TRY(parse_or(p));
    if (!comes(p, ","))
        return wanted(p, ", and the second argument");
    AT_TRY(parse_or(p));
    if (!comes(p, ")"))
        return wanted(p, ")");
    return put(p, what, 0, NULL);
}

static at_status unknown(const struct parser *p, const char *name) {
    const char *names[NAMES_MAX + 3];
    char all[360];
    int n = list_names(p->scope, names);
    at_launch_expression_names(p->scope, all, sizeof all);
    for (int i = 0; i < 3; i++)
        names[n++] = functions[i];
    const char *near = at_nearest_name(name, names, n);
    return AT_FAIL(AT_USAGE, "\"%.100s\": nothing is called %.40s%s%s; names are %s, functions min max cdiv", p->text,
                   name, near ? "; did you mean " : "", near ? near : "", all);
}

static at_status parse_name(struct parser *p) {
    static const enum at_launch_expression_do calls[] = { AT_DO_MIN, AT_DO_MAX, AT_DO_DIVIDE_UP };
    char name[64];
    size_t n = 0;
    for (; isalnum((unsigned char)*p->at) || *p->at == '_'; p->at++)
        if (n + 1 < sizeof name)
            name[n++] = *p->at;
    name[n] = 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(name, functions[i]) == 0)
            return parse_call(p, calls[i]);
    for (int i = 0; i < p->scope->n; i++)
        if (strcmp(name, p->scope->named[i]) == 0)
            return put(p, AT_DO_NAMED, i, NULL);
    if (strcmp(name, "dtype_bytes") == 0)
        return put(p, AT_DO_BYTES, 0, NULL);
    if (strcmp(name, "sms") == 0)
        return put(p, AT_DO_SMS, 0, NULL);
    const struct at_scalar *scalar = at_op_scalar(p->scope->op, name);
    for (int i = 0; i < ALSO && !scalar; i++)
        if (strcmp(name, also[i].name) == 0)
            scalar = at_op_scalar(p->scope->op, also[i].stands_for);
    if (scalar && !is_whole(scalar))
        return AT_FAIL(AT_USAGE, "\"%.100s\": %s is no whole number; f32:%s passes it to a kernel", p->text, name,
                       name);
    return scalar ? put(p, AT_DO_SCALAR, 0, scalar) : unknown(p, name);
}

static at_status parse_operand(struct parser *p) {
    skip_spaces(p);
    if (comes(p, "(")) {
        AT_TRY(parse_or(p));
        return comes(p, ")") ? AT_OK : wanted(p, ")");
    }
    if (isdigit((unsigned char)*p->at))
        return parse_number(p);
    if (isalpha((unsigned char)*p->at) || *p->at == '_')
        return parse_name(p);
    return wanted(p, "a number, a name or (");
}

static at_status parse_signed(struct parser *p) {
    if (++p->depth > DEPTH_MAX) /* every way down passes here */
        return AT_FAIL(AT_USAGE, "\"%.100s\": nested more than %d deep", p->text, (int)DEPTH_MAX);
    if (comes(p, "-")) {
        AT_TRY(put(p, AT_DO_NUMBER, 0, NULL));
        AT_TRY(parse_signed(p));
        AT_TRY(put(p, AT_DO_SUBTRACT, 0, NULL));
    } else if (comes(p, "!")) {
        AT_TRY(parse_signed(p));
        AT_TRY(put(p, AT_DO_NOT, 0, NULL));
    } else {
        AT_TRY(parse_operand(p));
    }
    p->depth--;
    return AT_OK;
}

static at_status parse_product(struct parser *p) {
    AT_TRY(parse_signed(p));
    for (;;) {
        const enum at_launch_expression_do what = comes(p, "*")   ? AT_DO_MULTIPLY
                                                  : comes(p, "/") ? AT_DO_DIVIDE
                                                  : comes(p, "%") ? AT_DO_REMAINDER
                                                                  : AT_DO_NUMBER;
        if (what == AT_DO_NUMBER)
            return AT_OK;
        AT_TRY(parse_signed(p));
        AT_TRY(put(p, what, 0, NULL));
    }
}

static at_status parse_sum(struct parser *p) {
    AT_TRY(parse_product(p));
    for (;;) {
        const int adds = comes(p, "+");
        if (!adds && !comes(p, "-"))
            return AT_OK;
        AT_TRY(parse_product(p));
        AT_TRY(put(p, adds ? AT_DO_ADD : AT_DO_SUBTRACT, 0, NULL));
    }
}

/* All six are made of equal, less (or equal) and not: x > y is !(x <= y). */
static at_status parse_comparison(struct parser *p) {
    static const struct {
        const char *token;
        enum at_launch_expression_do what;
        int or_equal, negated;
    } all[] = { { "==", AT_DO_EQUAL, 0, 0 }, { "!=", AT_DO_EQUAL, 0, 1 }, { "<=", AT_DO_LESS, 1, 0 },
                { ">=", AT_DO_LESS, 0, 1 },  { "<", AT_DO_LESS, 0, 0 },   { ">", AT_DO_LESS, 1, 1 } };
    AT_TRY(parse_sum(p));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!comes(p, all[i].token))
            continue;
        AT_TRY(parse_sum(p));
        AT_TRY(put(p, all[i].what, all[i].or_equal, NULL));
        return all[i].negated ? put(p, AT_DO_NOT, 0, NULL) : AT_OK;
    }
    return AT_OK;
}

static at_status parse_and(struct parser *p) {
    AT_TRY(parse_comparison(p));
    while (comes(p, "&&")) {
        AT_TRY(parse_comparison(p));
        AT_TRY(put(p, AT_DO_AND, 0, NULL));
    }
    return AT_OK;
}

static at_status parse_or(struct parser *p) {
    AT_TRY(parse_and(p));
    while (comes(p, "||")) {
        AT_TRY(parse_and(p));
        AT_TRY(put(p, AT_DO_OR, 0, NULL));
    }
    return AT_OK;
}

at_status at_launch_expression_parse(const char *text, const struct at_launch_expression_scope *scope,
                                     struct at_launch_expression *out) {
    struct parser p = { .text = text, .at = text, .scope = scope, .out = out };
    *out = (struct at_launch_expression){ 0 };
    if (strlen(text) >= sizeof out->text)
        return AT_FAIL(AT_USAGE, "\"%.60s...\" has %zu letters, wanted at most %zu", text, strlen(text),
                       sizeof out->text - 1);
    snprintf(out->text, sizeof out->text, "%s", text);
    AT_TRY(parse_or(&p));
    skip_spaces(&p);
    return *p.at ? wanted(&p, "an operation or the end") : AT_OK;
}

struct at_launch_expression at_launch_expression_number(int64_t number) {
    struct at_launch_expression e = { .n = 1 };
    e.steps[0].number = number;
    snprintf(e.text, sizeof e.text, "%lld", (long long)number);
    return e;
}

/* ---- values ---- */

/* The quotient rounded down, or up; y is not 0, and INT64_MIN / -1 was refused. */
static int64_t quotient(int64_t x, int64_t y, int up) {
    const int64_t q = x / y, inexact = x % y != 0, negative = (x < 0) != (y < 0);
    return q + (inexact && up && !negative) - (inexact && !up && negative);
}

/* 0: what 64 bits do not hold. */
static int combine(enum at_launch_expression_do what, int64_t number, int64_t x, int64_t y, int64_t *z) {
    switch (what) {
    case AT_DO_ADD:
        return !__builtin_add_overflow(x, y, z);
    case AT_DO_SUBTRACT:
        return !__builtin_sub_overflow(x, y, z);
    case AT_DO_MULTIPLY:
        return !__builtin_mul_overflow(x, y, z);
    case AT_DO_DIVIDE:
    case AT_DO_DIVIDE_UP:
    case AT_DO_REMAINDER:
        if (x == INT64_MIN && y == -1)
            return 0;
        *z = quotient(x, y, what == AT_DO_DIVIDE_UP);
        if (what == AT_DO_REMAINDER)
            *z = x - *z * y;
        return 1;
    case AT_DO_MIN:
        *z = x < y ? x : y;
        return 1;
    case AT_DO_MAX:
        *z = x > y ? x : y;
        return 1;
    case AT_DO_EQUAL:
        *z = x == y;
        return 1;
    case AT_DO_LESS: /* number: or equal */
        *z = number ? x <= y : x < y;
        return 1;
    case AT_DO_AND:
        *z = x && y;
        return 1;
    default:
        *z = x || y;
        return 1;
    }
}

static int64_t scalar_value(const struct at_problem *problem, const struct at_scalar *scalar) {
    return scalar->type == AT_SCALAR_FIXED ? (int64_t)scalar->value : (int64_t)at_scalar_get(problem, scalar);
}

at_status at_launch_expression_value(const struct at_launch_expression *expression,
                                     const struct at_launch_expression_values *values, int64_t *value) {
    int64_t stack[AT_EXPRESSION_STEPS + 1] = { 0 };
    int n = 0;
    for (int i = 0; i < expression->n; i++) {
        const enum at_launch_expression_do what = expression->steps[i].what;
        const int64_t number = expression->steps[i].number;
        if (what == AT_DO_NUMBER)
            stack[n++] = number;
        else if (what == AT_DO_NAMED)
            stack[n++] = values->named[number];
        else if (what == AT_DO_SCALAR)
            stack[n++] = scalar_value(values->problem, expression->steps[i].scalar);
        else if (what == AT_DO_BYTES)
            stack[n++] = (int64_t)at_format_info(values->problem->dtype)->bytes;
        else if (what == AT_DO_SMS)
            stack[n++] = values->sms;
        else if (what == AT_DO_NOT)
            stack[n - 1] = !stack[n - 1];
        else {
            const int64_t x = stack[n - 2], y = stack[n - 1];
            const int divides = what == AT_DO_DIVIDE || what == AT_DO_DIVIDE_UP || what == AT_DO_REMAINDER;
            if (divides && y == 0)
                return AT_FAIL(AT_USAGE, "\"%s\" divides by 0", expression->text);
            if (!combine(what, number, x, y, &stack[n - 2]))
                return AT_FAIL(AT_USAGE, "\"%s\" does not fit in 64 bits", expression->text);
            n--;
        }
    }
    *value = stack[0];
    return AT_OK;
}
