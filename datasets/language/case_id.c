/* The canonical line of a case: every key its operator takes, in its order, defaults filled in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_finish.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/fill/scenarios.h"
#include "datasets/fill/tc_patterns.h"

/* Text being written; `used` grows past the buffer's end to say that it did not fit. */
struct line {
    char *text;
    size_t used;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct line *line, const char *format, ...) {
    size_t room = line->used < AT_CASE_ID_BYTES ? AT_CASE_ID_BYTES - line->used : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room ? line->text + line->used : NULL, room, format, args);
    va_end(args);
    line->used += n > 0 ? (size_t)n : 0;
}

static void add_float(struct line *line, float value) {
    char text[32];
    at_key_float_text(value, text, sizeof text);
    add(line, "%s", text);
}

static void add_ints(struct line *line, const struct at_int_list *list) {
    for (int i = 0; i < list->n; i++)
        add(line, "%s%lld", i ? "/" : "", (long long)list->value[i]);
}

static void add_floats(struct line *line, const struct at_float_list *list) {
    if (list->n == 0)
        add(line, "auto");
    for (int i = 0; i < list->n; i++) {
        add(line, "%s", i ? ":" : "");
        add_float(line, list->value[i]);
    }
}

static void add_hot(struct line *line, unsigned hot) {
    const char *comma = "";
    for (int i = 0; i < AT_HOT_COUNT; i++)
        if (hot >> i & 1) {
            add(line, "%s%s", comma, at_hot_name(i));
            comma = ",";
        }
}

static int is(const struct at_key *key, const char *name) { return strcmp(key->name, name) == 0; }

/* A key that something else in the line already says, or that nobody asked for. */
static int is_silent(const struct at_key *key, const struct at_case *c) {
    const struct at_case_keys *keys = c->keys;
    if (is(key, "prefix"))
        return 1;
    if (is(key, "scenario") || is(key, "step"))
        return !keys->scenario;
    if (is(key, "shrink"))
        return keys->shrink == 1;
    if (is(key, "dataset") || is(key, "layer"))
        return !keys->dataset[0];
    if (is(key, "sq") && c->family->decode && keys->sq.n == 1 && keys->sq.value[0] == 1)
        return 1; /* one query each, as the family mostly has it */
    if (is(key, "b") || is(key, "sq") || is(key, "sk"))
        return keys->scenario || keys->dataset[0];
    if (is(key, "h") || is(key, "hk") || is(key, "d") || is(key, "data"))
        return keys->dataset[0] != 0;
    if (is(key, "sigma") || is(key, "window"))
        return keys->taps.n > 0;
    if (is(key, "taps"))
        return keys->taps.n == 0;
    if (is(key, "slope"))
        return keys->slope.n == 0;
    if (is(key, "deal"))
        return keys->deal == 0;
    if (is(key, "capacity"))
        return keys->capacity == 0;
    if (is(key, "pool"))
        return keys->pool < 0;
    if (is(key, "hot"))
        return keys->hot == 0;
    if (is(key, "require"))
        return c->n_require == 0;
    return is(key, "expect") && !c->expect[0];
}

static void add_value(struct line *line, const struct at_key *key, const struct at_case *c) {
    const void *field = (const char *)c->keys + key->offset;
    switch (key->kind) {
    case AT_KEY_INT:
        add(line, "%lld", (long long)*(const int64_t *)field);
        break;
    case AT_KEY_INTS:
        add_ints(line, field);
        break;
    case AT_KEY_FLOATS:
        add_floats(line, field);
        break;
    case AT_KEY_CHOICE:
        add(line, "%s", key->words[*(const int64_t *)field]);
        break;
    case AT_KEY_DTYPE:
        add(line, "%s", at_format_info(*(const enum at_format *)field)->name);
        break;
    case AT_KEY_DATA:
        add(line, "%s", c->keys->data->name);
        break;
    case AT_KEY_SCENARIO:
        add(line, "%s", c->keys->scenario->name);
        break;
    case AT_KEY_DATASET:
        add(line, "%s", c->keys->dataset);
        break;
    case AT_KEY_STRATUM:
        add(line, "%s", at_tc_stratum_name((enum at_tc_stratum)c->keys->stratum));
        break;
    case AT_KEY_HOT:
        add_hot(line, c->keys->hot);
        break;
    case AT_KEY_REQUIRE:
        for (int i = 0; i < c->n_require; i++)
            add(line, "%s%s", i ? "," : "", c->require[i]);
        break;
    case AT_KEY_EXPECT:
        add(line, "%s", c->expect);
        break;
    }
}

/* Key i of the operator, unless it says nothing. */
static void add_key(struct line *line, const char *name, const struct at_case *c) {
    const struct at_scalar *own = at_key_own(c->op, name);
    const struct at_key *key = at_key_find(name);
    char text[AT_CASE_ID_BYTES];
    if (own && own->quiet && !(c->keys->own_given >> (own - c->op->own) & 1))
        return;
    if (own) {
        const double value = at_scalar_get(&c->keys->own, own);
        if (own->announced && value >= own->value && value <= own->value)
            return; /* ids of cases from before it was there stay what they were */
        at_own_key_text(own, c, text, sizeof text);
        add(line, " %s=%s", name, text);
    } else if (!is_silent(key, c)) {
        add(line, " %s=", name);
        add_value(line, key, c);
    }
}

at_status at_case_write_id(struct at_case *c) {
    struct line line = { .text = c->id };
    add(&line, "%s", c->family->name);
    for (int i = 0; c->op->keys[i]; i++)
        add_key(&line, c->op->keys[i], c);
    if (line.used < AT_CASE_ID_BYTES)
        return AT_OK;
    return AT_FAIL(AT_USAGE, "%s: the case's id would be %zu characters long, wanted at most %d: shorter lists",
                   c->where, line.used, AT_CASE_ID_BYTES - 1);
}
