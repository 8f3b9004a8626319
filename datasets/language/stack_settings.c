/* What a stack's settings come to: expressions, texts with them in, conditions, and settings changed from outside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "datasets/language/expression.h"
#include "datasets/language/stack.h"

/* READ_MAX: settings that one expression may come to, each as often as it is read: few levels of sums are many. */
enum { DEPTH_MAX = 16, NAMES_MAX = 128, READ_MAX = 10000 };

/* An expression being read: where, how many settings made of settings lie around it, and how many more may be read. */
struct reading {
    const struct at_stack *stack;
    int line, depth, *left;
};

static at_status unknown(const struct at_stack *s, int line, const char *name) {
    const char *names[NAMES_MAX];
    int n = 0;
    for (int i = 0; i < s->n_settings && n < NAMES_MAX; i++)
        names[n++] = s->settings[i].name;
    const char *nearest = at_nearest_name(name, names, n);
    return AT_FAIL(AT_USAGE, "%s:%d: found '%s', wanted a setting%s%s%s", s->path, line, name,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* A condition may name settings that themselves hang on conditions; those of a file are few. */
const struct at_stack_setting *at_stack_setting(const struct at_stack *s, const char *name) {
    static _Thread_local int depth;
    for (int i = 0; i < s->n_settings && depth < DEPTH_MAX; i++) {
        int holds = 0;
        if (strcmp(s->settings[i].name, name) != 0)
            continue;
        depth++;
        const at_status status = at_stack_holds(s, s->settings[i].line, s->settings[i].condition, &holds);
        depth--;
        if (status == AT_OK && holds)
            return &s->settings[i];
    }
    return NULL;
}

static at_status read_expression(const struct reading *r, const char *text, double *value);

static at_status read_setting(const void *context, const char *at, int length, double *value) {
    const struct reading *r = context;
    char name[AT_STACK_TEXT];
    snprintf(name, sizeof name, "%.*s", length, at);
    const struct at_stack_setting *setting = at_stack_setting(r->stack, name);
    if (!setting)
        return unknown(r->stack, r->line, name);
    if (r->depth >= DEPTH_MAX)
        return AT_FAIL(AT_USAGE, "%s:%d: found '%s', wanted settings that are not made of themselves", r->stack->path,
                       r->line, name);
    if (--*r->left < 0)
        return AT_FAIL(AT_USAGE, "%s:%d: found '%s', wanted an expression that comes to fewer settings", r->stack->path,
                       r->line, name);
    if (!setting->is_let && isalpha((unsigned char)setting->value[0]))
        return AT_FAIL(AT_USAGE, "%s:%d: found %s = %s, wanted a number", r->stack->path, r->line, name,
                       setting->value);
    return read_expression(&(struct reading){ r->stack, setting->line, r->depth + 1, r->left }, setting->value, value);
}

static at_status read_expression(const struct reading *r, const char *text, double *value) {
    char where[256];
    const struct at_expression_names settings = { read_setting, r };
    snprintf(where, sizeof where, "%.200s:%d", r->stack->path, r->line);
    return at_expression_value(text, where, &settings, value);
}

at_status at_stack_number(const struct at_stack *s, int line, const char *expression, double *value) {
    int left = READ_MAX;
    AT_TRY(read_expression(&(struct reading){ s, line, 0, &left }, expression, value));
    return isfinite(*value)
               ? AT_OK
               : AT_FAIL(AT_USAGE, "%s:%d: '%.60s' is %g, wanted a finite number", s->path, line, expression, *value);
}

at_status at_stack_whole(const struct at_stack *s, int line, const char *expression, int64_t least, int64_t *value) {
    double number;
    AT_TRY(at_stack_number(s, line, expression, &number));
    if (number != floor(number) || !(number >= (double)least) || !(number <= 0x1p40))
        return AT_FAIL(AT_USAGE, "%s:%d: found %s = %g, wanted a whole number from %" PRId64 " on", s->path, line,
                       expression, number, least);
    *value = (int64_t)number;
    return AT_OK;
}

/* What stands between braces. */
static at_status expand_one(const struct at_stack *s, int line, const char *inner, char *out, size_t size) {
    const struct at_stack_setting *setting = at_stack_setting(s, inner);
    double number;
    if (setting && !setting->is_let) {
        snprintf(out, size, "%s", setting->value);
        return AT_OK;
    }
    AT_TRY(at_stack_number(s, line, inner, &number));
    snprintf(out, size, "%.17g", number);
    return AT_OK;
}

at_status at_stack_expand(const struct at_stack *s, int line, const char *text, char *out, size_t size) {
    size_t used = 0;
    while (*text) {
        char inner[AT_STACK_TEXT], value[AT_STACK_TEXT];
        const size_t plain = strcspn(text, "{"), braced = strcspn(text + plain, "}");
        if (text[plain] && (!text[plain + braced] || braced > sizeof inner))
            return AT_FAIL(AT_USAGE, "%s:%d: found '%.40s', wanted a short expression and '}'", s->path, line,
                           text + plain);
        value[0] = 0;
        if (text[plain]) {
            snprintf(inner, sizeof inner, "%.*s", (int)braced - 1, text + plain + 1);
            AT_TRY(expand_one(s, line, inner, value, sizeof value));
        }
        if (used + plain + strlen(value) >= size)
            return AT_FAIL(AT_USAGE, "%s:%d: a text of more than %zu bytes, wanted a shorter one", s->path, line, size);
        used += (size_t)snprintf(out + used, size - used, "%.*s%s", (int)plain, text, value);
        text += plain + (text[plain] ? braced + 1 : 0);
    }
    out[used] = 0;
    return AT_OK;
}

/* Is `word` one of "a|b|c"? */
static int is_among(const char *word, size_t n, const char *words) {
    for (const char *at = words; *at; at += at[strcspn(at, "|")] ? strcspn(at, "|") + 1 : strcspn(at, "|"))
        if (strcspn(at, "|") == n && strncmp(at, word, n) == 0)
            return 1;
    return 0;
}

at_status at_stack_holds(const struct at_stack *s, int line, const char *condition, int *holds) {
    char text[AT_STACK_TEXT], *rest;
    snprintf(text, sizeof text, "%s", condition);
    *holds = 1;
    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        char *equals = strchr(word, '=');
        if (!equals || equals == word)
            return AT_FAIL(AT_USAGE, "%s:%d: found '%s' behind when, wanted SETTING=WORD", s->path, line, word);
        *equals = 0;
        const struct at_stack_setting *setting = at_stack_setting(s, word);
        if (!setting)
            return unknown(s, line, word);
        *holds &= is_among(setting->value, strlen(setting->value), equals + 1);
    }
    return AT_OK;
}

at_status at_stack_set(struct at_stack *s, const char *text, const char *where) {
    char name[AT_STACK_NAME];
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof name || strlen(equals + 1) >= AT_STACK_TEXT)
        return AT_FAIL(AT_USAGE, "%s: found '%.60s', wanted SETTING=VALUE", where, text);
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    for (int i = 0; i < s->n_settings; i++) {
        struct at_stack_setting *setting = &s->settings[i];
        if (setting->is_let || strcmp(setting->name, name) != 0)
            continue;
        if (setting->words[0] && !is_among(equals + 1, strlen(equals + 1), setting->words))
            return AT_FAIL(AT_USAGE, "%s: found %s, wanted %s=%s, as %s:%d has it", where, text, name, setting->words,
                           s->path, setting->line);
        snprintf(setting->value, sizeof setting->value, "%s", equals + 1);
        return AT_OK;
    }
    const char *names[NAMES_MAX];
    int n = 0;
    for (int i = 0; i < s->n_settings && n < NAMES_MAX; i++)
        names[n++] = s->settings[i].is_let ? NULL : s->settings[i].name;
    const char *nearest = at_nearest_name(name, names, n);
    return AT_FAIL(AT_USAGE, "%s: found '%s', wanted a setting of %s%s%s%s", where, name, s->path,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}
