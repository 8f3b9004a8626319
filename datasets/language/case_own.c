/* Keys of an operator's own sizes and parameters: text to value and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "datasets/language/case_keys.h"

enum { MAX_WORDS = 128 };

/* Words of a field, their number. */
static int words_of(const struct at_scalar *field, const char *names[MAX_WORDS]) {
    int n = 0;
    while (n < MAX_WORDS && (names[n] = field->text(n)))
        n++;
    return n;
}

/* "asynct or softmax" of few words, "one of its words" of many. */
static const char *wanted_of(const char *const *names, int n, char *text, size_t size) {
    if (n > 4)
        return "one of the words it knows";
    text[0] = 0;
    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? i == n - 1 ? " or " : ", " : "", names[i]);
    return text;
}

static at_status read_word(const struct at_scalar *field, const char *text, size_t length, const char *where, int *at) {
    const char *names[MAX_WORDS];
    char part[64], wanted[160];
    const int n = words_of(field, names);
    snprintf(part, sizeof part, "%.*s", (int)(length < sizeof part ? length : sizeof part - 1), text);
    for (*at = 0; *at < n; ++*at)
        if (length < sizeof part && strcmp(part, names[*at]) == 0)
            return AT_OK;
    return at_key_unknown(field->key, part, where, names, n, wanted_of(names, n, wanted, sizeof wanted));
}

/* Words with colons between, in any order. */
static at_status read_set(const struct at_scalar *field, const char *text, const char *where, double *value) {
    int64_t bits = 0;
    for (;; text++) {
        const size_t length = strcspn(text, ":");
        int at = 0;
        AT_TRY(read_word(field, text, length, where, &at));
        bits |= (int64_t)1 << at;
        text += length;
        if (!*text)
            break;
    }
    *value = (double)bits;
    return AT_OK;
}

static at_status read_float(const struct at_scalar *field, const char *text, const char *where, double *value) {
    float x;
    AT_TRY(at_key_float(field->key, text, where, &x));
    if (field->least < field->most && !((double)x >= field->least && (double)x <= field->most))
        return AT_FAIL(AT_USAGE, "%s: %s: found '%.64s', wanted a number from %g to %g", where, field->key, text,
                       field->least, field->most);
    *value = (double)x;
    return AT_OK;
}

static at_status read_value(const struct at_scalar *field, const char *text, const char *where, double *value) {
    int64_t whole = 0;
    int at = 0;
    enum at_format format = AT_F32;
    switch (field->type) {
    case AT_SCALAR_FLOAT:
        return read_float(field, text, where, value);
    case AT_SCALAR_CHOICE:
        AT_TRY(read_word(field, text, strlen(text), where, &at));
        *value = at;
        return AT_OK;
    case AT_SCALAR_SET:
        return read_set(field, text, where, value);
    case AT_SCALAR_FORMAT:
        AT_TRY(at_key_format(field->key, text, where, field->formats, &format));
        *value = format;
        return AT_OK;
    default:
        AT_TRY(at_key_whole(field->key, text, where, (int64_t)field->least, (int64_t)field->most, &whole));
        *value = (double)whole;
        return AT_OK;
    }
}

at_status at_own_key_read(const struct at_scalar *field, const char *text, struct at_case *c) {
    double value = 0;
    AT_TRY(read_value(field, text, c->where, &value));
    at_scalar_set(&c->keys->own, field, value);
    c->keys->own_given |= 1u << (field - c->op->own);
    return AT_OK;
}

static void value_text(const struct at_scalar *field, double value, char *text, size_t size) {
    const char *colon = "";
    text[0] = 0;
    switch (field->type) {
    case AT_SCALAR_FLOAT:
        at_key_float_text((float)value, text, size);
        return;
    case AT_SCALAR_CHOICE:
        snprintf(text, size, "%s", field->text((int)value));
        return;
    case AT_SCALAR_SET:
        for (int i = 0; field->text(i); i++)
            if ((int64_t)value >> i & 1) {
                snprintf(text + strlen(text), size - strlen(text), "%s%s", colon, field->text(i));
                colon = ":";
            }
        return;
    case AT_SCALAR_FORMAT:
        snprintf(text, size, "%s", at_format_info((enum at_format)value)->name);
        return;
    default:
        snprintf(text, size, "%lld", (long long)value);
    }
}

void at_own_key_text(const struct at_scalar *field, const struct at_case *c, char *text, size_t size) {
    value_text(field, at_scalar_get(&c->keys->own, field), text, size);
}

/* A default that follows from other keys is in the meaning. */
void at_own_key_help(const struct at_op *op, const struct at_scalar *field, char *text, size_t size) {
    char value[64];
    value_text(field, field->value, value, sizeof value);
    const int says = strstr(field->meaning, "default") != NULL;
    snprintf(text, size, "%-9s %s: %s%s%s", field->key, op->name, field->meaning, says ? "" : "; default ",
             says ? "" : value);
}
