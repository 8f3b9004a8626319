/* States of results: names, meanings, which of them fail a run; and the order of results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/result/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verify/result/record.h"
#include "verify/result/text.h"

static const struct {
    const char *name;
    enum at_state_class class;
    const char *meaning;
} states[AT_STATE_COUNT] = {
#define X(name, class, meaning) { #name, AT_CLASS_##class, meaning },
    AT_STATE_LIST(X)
#undef X
};

static int known(enum at_state state) { return (int)state >= 0 && state < AT_STATE_COUNT; }

const char *at_state_name(enum at_state state) { return known(state) ? states[state].name : "UNKNOWN"; }

const char *at_state_meaning(enum at_state state) {
    return known(state) ? states[state].meaning : "not a state of attest";
}

enum at_state_class at_state_class(enum at_state state) { return known(state) ? states[state].class : AT_CLASS_BROKEN; }

at_status at_state_parse(const char *name, enum at_state *state) {
    for (int i = 0; i < AT_STATE_COUNT; i++)
        if (strcmp(name, states[i].name) == 0) {
            *state = (enum at_state)i;
            return AT_OK;
        }
    return AT_FAIL(AT_USAGE, "\"%.40s\" is no state; wanted PASS, VACUOUS, WRONG, ... as at_state_name() gives", name);
}

static int is_listed(const char *names, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ',') && (at[length] == 0 || at[length] == ','))
            return 1;
    return 0;
}

int at_state_fails(enum at_state state, const char *expect, int strict) {
    switch (at_state_class(state)) {
    case AT_CLASS_GOOD:
    case AT_CLASS_DECLINED:
        return 0;
    case AT_CLASS_VACUOUS:
        return strict != 0;
    case AT_CLASS_EXPECTED:
        return !is_listed(expect, states[state].name);
    default:
        return 1;
    }
}

static int order_i64(int64_t a, int64_t b) { return (a > b) - (a < b); }

int at_result_compare(const struct at_result *a, const struct at_result *b) {
    int order = order_i64(a->plan_index, b->plan_index);
    if (order == 0)
        order = order_i64(a->tensor_index, b->tensor_index);
    /* Records made without a plan still get one order, whatever order they were gathered in. */
    if (order == 0)
        order = strcmp(a->case_id, b->case_id);
    if (order == 0)
        order = strcmp(a->variant, b->variant);
    if (order == 0)
        order = strcmp(a->tensor, b->tensor);
    return (order > 0) - (order < 0);
}

void at_result_set_cause(struct at_result *result, const char *text) {
    enum { ROOM = sizeof result->cause - 4, HEAD = ROOM / 4 };
    static const char gap[] = " ... ";
    const size_t n = strlen(text), tail = ROOM - HEAD - (sizeof gap - 1);
    if (n <= ROOM)
        snprintf(result->cause, sizeof result->cause, "%s", text);
    else
        snprintf(result->cause, sizeof result->cause, "%.*s%s%s", (int)HEAD, text, gap, text + n - tail);
    at_text_clean(result->cause); /* the cut may have hit a character */
}

void at_result_begin(struct at_result *result) {
    result->worst_index = -1;
    result->aggregate_ratio = result->resolution = result->looseness = NAN;
#define X(name, meaning) result->counter_##name = -1;
    AT_COUNTER_LIST(X)
#undef X
}
