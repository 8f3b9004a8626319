/* Results as at_result_to_json() writes them, read in one go.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A run of a million results has journals of gigabytes, and a tree of JSON values takes a hundred allocations a result. All
 * keys are known and sorted, so that each need only be compared with the one that must come next. What is accepted here is a
 * part of what result_json.c accepts, with the same values. */
#include "verify/result/result_scan.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/record.h"

enum { MAX_KEYS = 128, SAFE_DIGITS = 18 };

/* Keys of an object in the order of its text; `field` NULL: one that is no field, told by its name. */
struct keys {
    const char *name[MAX_KEYS];
    size_t length[MAX_KEYS];
    const struct at_field *field[MAX_KEYS];
    int stage[MAX_KEYS];
    int n, too_many;
};

static struct keys result_keys, row_keys, total_keys, stage_keys;
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* ---- what must come ---- */

static void add_key(struct keys *k, const char *name, const struct at_field *field, int stage) {
    int at = k->n;
    if (k->n == MAX_KEYS) {
        k->too_many = 1;
        return;
    }
    for (; at > 0 && strcmp(k->name[at - 1], name) > 0; at--) {
        k->name[at] = k->name[at - 1];
        k->length[at] = k->length[at - 1];
        k->field[at] = k->field[at - 1];
        k->stage[at] = k->stage[at - 1];
    }
    k->name[at] = name;
    k->length[at] = strlen(name);
    k->field[at] = field;
    k->stage[at] = stage;
    k->n++;
}

static void make_keys(void) {
    const struct at_field *field;
    for (int i = 0; (field = at_result_field(i)); i++)
        add_key(&result_keys, field->name, field, 0);
    add_key(&result_keys, "ledger", NULL, 0);
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        add_key(&row_keys, field->name, field, 0);
    add_key(&row_keys, "first", NULL, 0);
    for (int i = 0; (field = at_ledger_total_field(i)); i++)
        add_key(&total_keys, field->name, field, 0);
    add_key(&total_keys, "first_laundered", NULL, 0);
    add_key(&total_keys, "stages", NULL, 0);
    for (int s = 0; s < AT_STAGE_COUNT; s++)
        add_key(&stage_keys, at_stage_name((enum at_stage)s), NULL, s);
}

/* ---- values ---- */

static int take(const char **t, const char *literal, size_t n) {
    if (strncmp(*t, literal, n) != 0)
        return 0;
    *t += n;
    return 1;
}

#define TAKE(t, literal) take(t, literal, sizeof(literal) - 1)

static int take_key(const char **t, const struct keys *k, int i) {
    return (i == 0 || TAKE(t, ",")) && TAKE(t, "\"") && take(t, k->name[i], k->length[i]) && TAKE(t, "\":");
}

/* Plain ASCII without escapes. */
static int take_text(const char **t, char *text, size_t size) {
    const char *from = *t + 1, *at = from;
    if (**t != '"')
        return 0;
    while (*at != '"' && *at != '\\' && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x7f)
        at++;
    if (*at != '"' || (size_t)(at - from) >= size)
        return 0;
    memcpy(text, from, (size_t)(at - from));
    text[at - from] = 0;
    *t = at + 1;
    return 1;
}

/* Integers of so many digits that they certainly fit. */
static int take_integer(const char **t, int64_t *value) {
    const char *at = *t;
    const int negative = *at == '-';
    int64_t sum = 0;
    at += negative;
    const char *first = at;
    for (; *at >= '0' && *at <= '9' && at - first < SAFE_DIGITS; at++)
        sum = 10 * sum + (*at - '0');
    const int leading_zero = *first == '0' && at - first > 1;
    if (at == first || leading_zero || (*at != ',' && *at != ']' && *at != '}'))
        return 0;
    *value = negative ? -sum : sum;
    *t = at;
    return 1;
}

static const char *behind_digits(const char *at) {
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

/* A number of JSON with a point or an exponent, as jansson writes doubles; a decimal point is one in every locale that attest
 * sets. */
static int take_real(const char **t, double *value) {
    const char *first = *t + (**t == '-'), *at = behind_digits(first), *part;
    int parts = 0;
    if (at == first || (*first == '0' && at - first > 1))
        return 0;
    if (*at == '.') {
        part = at + 1;
        at = behind_digits(part);
        parts += at > part ? 1 : -2;
    }
    if (*at == 'e' || *at == 'E') {
        part = at + 1 + (at[1] == '+' || at[1] == '-');
        at = behind_digits(part);
        parts += at > part ? 1 : -2;
    }
    char *end;
    *value = strtod(*t, &end);
    if (parts < 1 || end != at || !isfinite(*value) || (*at != ',' && *at != '}' && *at != ']'))
        return 0;
    *t = at;
    return 1;
}

static int take_f64(const char **t, double *value) {
    if (**t != '"')
        return take_real(t, value);
    if (TAKE(t, "\"NaN\""))
        *value = NAN;
    else if (TAKE(t, "\"Infinity\""))
        *value = INFINITY;
    else if (TAKE(t, "\"-Infinity\""))
        *value = -INFINITY;
    else
        return 0;
    return 1;
}

static int take_bool(const char **t, int *value) {
    *value = **t == 't';
    return *value ? TAKE(t, "true") : TAKE(t, "false");
}

static int take_state(const char **t, enum at_state *state) {
    char name[32];
    if (!take_text(t, name, sizeof name))
        return 0;
    for (int s = 0; s < AT_STATE_COUNT; s++)
        if (strcmp(name, at_state_name((enum at_state)s)) == 0) {
            *state = (enum at_state)s;
            return 1;
        }
    return 0;
}

/* "18446744073709551615", what integers above 2^63 - 1 are, is rare, and left to who reads everything. */
static int take_value(const char **t, const struct at_field *field, void *at, int i) {
    int64_t integer;
    switch (field->kind) {
    case AT_FIELD_TEXT:
        return take_text(t, at, field->size);
    case AT_FIELD_STATE:
        return take_state(t, at);
    case AT_FIELD_BOOL:
        return take_bool(t, at);
    case AT_FIELD_INT:
        if (!take_integer(t, &integer) || integer != (int)integer)
            return 0;
        *(int *)at = (int)integer;
        return 1;
    case AT_FIELD_I64:
    case AT_FIELD_PLACE:
        return take_integer(t, &((int64_t *)at)[i]);
    case AT_FIELD_U64:
        if (!take_integer(t, &integer) || integer < 0)
            return 0;
        ((uint64_t *)at)[i] = (uint64_t)integer;
        return 1;
    case AT_FIELD_F64:
        return take_f64(t, at);
    }
    return 0;
}

static int take_field(const char **t, const struct at_field *field, void *base) {
    void *at = at_field_at(field, base);
    if (field->count == 1)
        return take_value(t, field, at, 0);
    for (int i = 0; i < field->count; i++)
        if (!take(t, i ? "," : "[", 1) || !take_value(t, field, at, i))
            return 0;
    return TAKE(t, "]");
}

/* ---- objects ---- */

static int take_place(const char **t, int has, struct at_place *p) {
    if (!has)
        return TAKE(t, "null");
    return TAKE(t, "{\"b\":") && take_integer(t, &p->b) && TAKE(t, ",\"h\":") && take_integer(t, &p->h) &&
           TAKE(t, ",\"k\":") && take_integer(t, &p->k) && TAKE(t, ",\"q\":") && take_integer(t, &p->q) &&
           TAKE(t, ",\"step\":") && take_integer(t, &p->step) && TAKE(t, "}");
}

/* Whether there is a place comes after it in the text: "first" before "has_first". */
static int take_row(const char **t, struct at_ledger_row *row) {
    if (!TAKE(t, "{"))
        return 0;
    int has = 0;
    for (int i = 0; i < row_keys.n; i++) {
        if (!take_key(t, &row_keys, i))
            return 0;
        if (!row_keys.field[i])
            has = **t == '{';
        if (!(row_keys.field[i] ? take_field(t, row_keys.field[i], row) : take_place(t, has, &row->first)))
            return 0;
    }
    return (row->has_first != 0) == has && TAKE(t, "}");
}

static int take_stages(const char **t, struct at_ledger *ledger) {
    if (!TAKE(t, "{"))
        return 0;
    for (int i = 0; i < stage_keys.n; i++)
        if (!take_key(t, &stage_keys, i) || !take_row(t, &ledger->stage[stage_keys.stage[i]]))
            return 0;
    return TAKE(t, "}");
}

static int take_ledger(const char **t, struct at_ledger *ledger) {
    int has = 0;
    if (!TAKE(t, "{"))
        return 0;
    for (int i = 0; i < total_keys.n; i++) {
        if (!take_key(t, &total_keys, i))
            return 0;
        if (total_keys.field[i]) {
            if (!take_field(t, total_keys.field[i], ledger))
                return 0;
        } else if (total_keys.name[i][0] == 's') {
            if (!take_stages(t, ledger))
                return 0;
        } else {
            has = **t == '{';
            if (!take_place(t, has, &ledger->first_laundered))
                return 0;
        }
    }
    return (ledger->has_laundered != 0) == has && TAKE(t, "}");
}

int at_result_scan(const char **text, struct at_result *result) {
    const char *t = *text;
    int has_ledger = 0;
    pthread_once(&made, make_keys);
    memset(result, 0, sizeof *result);
    if (result_keys.too_many || !TAKE(&t, "{"))
        return 0;
    for (int i = 0; i < result_keys.n; i++) {
        if (!take_key(&t, &result_keys, i))
            return 0;
        if (result_keys.field[i]) {
            if (!take_field(&t, result_keys.field[i], result))
                return 0;
            continue;
        }
        has_ledger = *t == '{';
        if (!(has_ledger ? take_ledger(&t, &result->ledger) : TAKE(&t, "null")))
            return 0;
    }
    if (!TAKE(&t, "}") || (result->has_ledger != 0) != has_ledger || result->state >= AT_STATE_COUNT ||
        result->worst_rank < 0 || result->worst_rank > 4 || result->n_decoys < 0 || result->n_decoys > AT_RESULT_DECOYS)
        return 0;
    *text = t;
    return 1;
}
