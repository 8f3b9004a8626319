/* The table of keys of the case language, and what a key's text means.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_keys.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/decoy.h"
#include "attest/names.h"
#include "datasets/fill/scenarios.h"
#include "datasets/fill/tc_patterns.h"

#define FIELD(name) offsetof(struct at_case_keys, name)

/* Keys that operators share. The order of an id is that of the operator's keys. */
/* clang-format off */
static const struct at_key table[] = {
    { "scenario", AT_KEY_SCENARIO, FIELD(scenario), 0, 0, { 0 }, "NAME: a benchmark's batch; sets b, sq and sk; then page=16 and causal=1 by default" },
    { "shrink",   AT_KEY_INT,      FIELD(shrink),   1, 4096, { 0 }, "lengths of the scenario are divided by this, one token staying; default 1" },
    { "step",     AT_KEY_INT,      FIELD(step),     0, 1 << 20, { 0 }, "of the scenario: 0 its prefill, 1, 2, ... its decode steps; default 0, in decode families the last" },
    { "dataset",  AT_KEY_DATASET,  FIELD(dataset),  0, 0, { 0 }, "NAME: recorded q, k, v (datasets/activations/NAME.safetensors) in place of data" },
    { "layer",    AT_KEY_INT,      FIELD(layer),    0, 9999, { 0 }, "layer of the dataset; default 0" },
    { "b",        AT_KEY_INT,      FIELD(b),        0, 65536, { 0 }, "requests, none only of rows; default 1" },
    { "h",        AT_KEY_INT,      FIELD(h), 1, 4096, { 0 }, "query heads; default 8" },
    { "hk",       AT_KEY_INT,      FIELD(hk), 1, 4096, { 0 }, "key/value heads; divides h; default h/2, or h when h is odd" },
    { "sq",       AT_KEY_INTS,     FIELD(sq),       0, 1 << 24, { 0 }, "queries of a request; default 64; in decode families 0 or 1, default 1" },
    { "sk",       AT_KEY_INTS,     FIELD(sk),       0, 1 << 26, { 0 }, "keys of a request; default sq, in decode families 256" },
    { "prefix",   AT_KEY_INTS,     FIELD(prefix),   0, 1 << 26, { 0 }, "keys before the first query: another way to write sk = prefix + sq" },
    { "d",        AT_KEY_INT,      FIELD(d), 1, 4096, { 0 }, "head size; default 128" },
    { "pad_d",    AT_KEY_INT,      FIELD(pad_d),    0, 4096, { 0 }, "head size that zeros pad q, k and v to (the scale stays that of d); default 0: none" },
    { "tokens",   AT_KEY_INT,      FIELD(tokens), 0, 1 << 26, { 0 }, "rows of a norm or of logits, patterns of an instruction; default 32" },
    { "channels", AT_KEY_INT,      FIELD(channels), 1, 1 << 24, { 0 }, "hidden size of a norm; default 1024" },
    { "page",     AT_KEY_INT,      FIELD(page),     0, 65536, { 0 }, "keys per page; default 0: contiguous" },
    { "capacity", AT_KEY_INT,      FIELD(capacity), 0, 1 << 26, { 0 }, "keys that a request may come to have without a new launch: columns of the block table, grids; default 0: the longest now" },
    { "deal",     AT_KEY_CHOICE,   FIELD(deal),     0, 1, { "length", "capacity", NULL }, "pages are dealt to a request by its length, or by its capacity, so that it keeps them as it grows; default length" },
    { "pool",     AT_KEY_INT,      FIELD(pool),     0, INT32_MAX, { 0 }, "pages that nobody owns, whose keys are NaN, and the last page is in use; contiguous: rows behind the last request; default: one page in eight, at least 2; no rows" },
    { "padding",  AT_KEY_INT,      FIELD(padding),  0, 1 << 20, { 0 }, "tokens behind the others that have no slot and stand at position 0, as graphs of a fixed size have them; default 0" },
    { "causal",   AT_KEY_INT,      FIELD(causal),   0, 1, { 0 }, "1: query i sees keys up to sk - sq + i; default 0" },
    { "stratum",  AT_KEY_STRATUM,  FIELD(stratum),  0, 0, { 0 }, "NAME: what its operands look like; default ordinary" },
    { "dtype",    AT_KEY_DTYPE,    FIELD(dtype),    0, 0, { 0 }, "bf16, f16 or f32: the activations; of a product e4m3 or e5m2 too; default bf16" },
    { "data",     AT_KEY_DATA,     FIELD(data),     0, 0, { 0 }, "NAME: what the values look like; default normal" },
    { "seed",     AT_KEY_INT,      FIELD(seed),     0, INT64_MAX, { 0 }, "of the data and of the order of pages; default 1" },
    { "scale",    AT_KEY_FLOATS,   FIELD(scale), 1, 1, { 0 }, "of the scores; default auto: 1/sqrt(d), a power of two for exact and ties; of a product; default auto: 1" },
    { "sigma",    AT_KEY_FLOATS,   FIELD(sigma),    1, AT_CASE_LIST, { 0 }, "share of the pooled scores that is subtracted, one or one per head (1:0.5); default 1" },
    { "window",   AT_KEY_INT,      FIELD(window),   1, AT_CASE_TAPS, { 0 }, "K, keys of the pool; default 3, or the number of taps" },
    { "taps",     AT_KEY_FLOATS,   FIELD(taps),     1, AT_CASE_TAPS, { 0 }, "FIR taps in place of sigma (0.5:-0.25:-0.25), the current key's first" },
    { "edge",     AT_KEY_CHOICE,   FIELD(edge),     0, 1, { "zero", "shrink", NULL }, "divisor of the pool at the first keys: K, or the keys there are; default zero" },
    { "relu_pre", AT_KEY_INT,      FIELD(relu_pre), 0, 1, { 0 }, "1: scores pass max(s, 0) before the FIR; default 1" },
    { "clip",     AT_KEY_FLOATS,   FIELD(clip),     2, 2, { 0 }, "ends of the gate; default 0:1" },
    { "gamma",    AT_KEY_FLOATS,   FIELD(gamma),    1, AT_CASE_LIST, { 0 }, "factor of p, one or one per head; default 1" },
    { "slope",    AT_KEY_FLOATS,   FIELD(slope),    1, AT_CASE_LIST, { 0 }, "of the decay exp(-slope) of a state, one or one per head (0.5:-0.1); default: 0.5 to 2, drawn; 0 for exact" },
    { "lo",       AT_KEY_FLOATS,   FIELD(lo),       1, 1, { 0 }, "UClip: lower end; default -1" },
    { "hi",       AT_KEY_FLOATS,   FIELD(hi),       1, 1, { 0 }, "UClip: upper end; default 1" },
    { "eps",      AT_KEY_FLOATS,   FIELD(eps),      1, 1, { 0 }, "RMSNorm: added to the mean square; default 1e-6, 0 for exact" },
    { "from",     AT_KEY_CHOICE,   FIELD(from),     0, 1, { "rounded", "exact", NULL }, "the norm of a sum reads it rounded or not; default rounded" },
    { "hot",      AT_KEY_HOT,      FIELD(hot),      0, 0, { 0 }, "NAME,...: keys made to matter: last_key, hidden_key, clip, halo" },
    { "require",  AT_KEY_REQUIRE,  0,               0, 0, { 0 }, "NAME,...: decoys that must count here" },
    { "expect",   AT_KEY_EXPECT,   0,               0, 0, { 0 }, "states that are right here beside PASS: LAUNDERED, OVERFLOWED" },
};
/* clang-format on */

enum { KEYS = sizeof table / sizeof *table };

const char *at_key_name(int i) { return i >= 0 && i < KEYS ? table[i].name : NULL; }

const struct at_key *at_key_find(const char *name) {
    for (int i = 0; i < KEYS; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

const struct at_scalar *at_key_own(const struct at_op *op, const char *name) {
    for (int i = 0; i < op->n_own; i++)
        if (op->own[i].key && strcmp(op->own[i].key, name) == 0)
            return &op->own[i];
    return NULL;
}

int at_key_index(const struct at_op *op, const char *name) {
    for (int i = 0; op->keys && op->keys[i]; i++)
        if (strcmp(op->keys[i], name) == 0)
            return i;
    return -1;
}

int at_key_is_known(const char *name) {
    int known = at_key_find(name) != NULL;
    for (int i = 0; i < at_op_count() && !known; i++)
        known = at_key_own(at_op_at(i), name) != NULL;
    return known;
}

int at_key_given(const struct at_case_keys *keys, const char *name) {
    const int i = at_key_index(keys->op, name);
    return i >= 0 && (keys->given >> i & 1);
}

const char *at_case_key_help(int i) {
    static _Thread_local char text[256];
    if (i < 0)
        return NULL;
    if (i < KEYS) {
        snprintf(text, sizeof text, "%-9s %s", table[i].name, table[i].help);
        return text;
    }
    i -= KEYS;
    for (int o = 0; o < at_op_count(); o++)
        for (int f = 0; f < at_op_at(o)->n_own; f++)
            if (at_op_at(o)->own[f].key && i-- == 0) {
                at_own_key_help(at_op_at(o), &at_op_at(o)->own[f], text, sizeof text);
                return text;
            }
    return NULL;
}

const char *at_case_family_key_help(const struct at_family *family, int i) {
    static _Thread_local char text[256];
    const struct at_op *op = at_op_find(family->op);
    for (int k = 0; op->keys && op->keys[k]; k++) {
        if (i-- > 0)
            continue;
        const struct at_key *key = at_key_find(op->keys[k]);
        const struct at_scalar *own = at_key_own(op, op->keys[k]);
        if (own)
            at_own_key_help(op, own, text, sizeof text);
        else
            snprintf(text, sizeof text, "%-9s %s", key->name, key->help);
        return text;
    }
    return NULL;
}

const char *at_case_data_help(int i) {
    static _Thread_local char text[256];
    if (i < 0 || i >= at_data_count())
        return NULL;
    snprintf(text, sizeof text, "%-16s %s", at_data_at(i)->name, at_data_at(i)->meaning);
    return text;
}

/* ---- values ---- */

at_status at_key_whole(const char *name, const char *text, const char *where, int64_t least, int64_t most,
                       int64_t *value) {
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (end == text || *end || errno || text[0] == ' ' || text[0] == '+' || x < least || x > most)
        return AT_FAIL(AT_USAGE, "%s: %s: found '%.64s', wanted a whole number from %lld to %lld", where, name, text,
                       (long long)least, (long long)most);
    *value = x;
    return AT_OK;
}

at_status at_key_float(const char *name, const char *text, const char *where, float *value) {
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || text[0] == ' ' || text[0] == '+' || !isfinite(x) || !isfinite((float)x))
        return AT_FAIL(AT_USAGE, "%s: %s: found '%.64s', wanted a finite number within f32", where, name, text);
    *value = (float)x + 0.0f; /* -0 becomes +0: one id for one problem */
    return AT_OK;
}

void at_key_float_text(float value, char *text, size_t size) {
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, size, "%.*g", digits, (double)value);
        if ((float)strtod(text, NULL) == value)
            return;
    }
}

/* Calls `each` on the parts of `text` between separators; parts may not be empty. */
static at_status for_parts(const struct at_key *key, const char *text, char separator, int most, struct at_case *c,
                           at_status (*each)(const struct at_key *, const char *, struct at_case *, int)) {
    char part[64];
    for (int n = 0;; n++) {
        size_t length = strcspn(text, (char[]){ separator, 0 });
        if (n == most)
            return AT_FAIL(AT_USAGE, "%s: %s: more than %d parts, wanted at most %d separated by '%c'", c->where,
                           key->name, most, most, separator);
        if (length == 0 || length >= sizeof part)
            return AT_FAIL(AT_USAGE, "%s: %s: part %d, '%.64s', is %s; wanted values separated by '%c'", c->where,
                           key->name, n + 1, text, length ? "too long" : "empty", separator);
        memcpy(part, text, length);
        part[length] = 0;
        AT_TRY(each(key, part, c, n));
        if (!text[length])
            return AT_OK;
        text += length + 1;
    }
}

static void *field(const struct at_key *key, struct at_case *c) { return (char *)c->keys + key->offset; }

static at_status each_int(const struct at_key *key, const char *part, struct at_case *c, int n) {
    struct at_int_list *list = field(key, c);
    AT_TRY(at_key_whole(key->name, part, c->where, key->least, key->most, &list->value[n]));
    list->n = n + 1;
    return AT_OK;
}

static at_status each_float(const struct at_key *key, const char *part, struct at_case *c, int n) {
    struct at_float_list *list = field(key, c);
    AT_TRY(at_key_float(key->name, part, c->where, &list->value[n]));
    list->n = n + 1;
    return AT_OK;
}

at_status at_key_unknown(const char *name, const char *text, const char *where, const char *const *names, int n,
                         const char *wanted) {
    const char *nearest = at_nearest_name(text, names, n);
    return AT_FAIL(AT_USAGE, "%s: %s: found '%.64s', wanted %s%s%s%s", where, name, text, wanted,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static at_status each_hot(const struct at_key *key, const char *part, struct at_case *c, int n) {
    (void)n;
    const char *names[AT_HOT_COUNT];
    for (int i = 0; i < AT_HOT_COUNT; i++) {
        names[i] = at_hot_name(i);
        if (strcmp(part, names[i]) == 0) {
            c->keys->hot |= 1u << i;
            return AT_OK;
        }
    }
    return at_key_unknown(key->name, part, c->where, names, AT_HOT_COUNT, "last_key, hidden_key, clip or halo");
}

/* A decoy's name, or the words before one of its underscores when no other decoy begins so: halo for
 * halo_forgotten. */
static at_status each_require(const struct at_key *key, const char *part, struct at_case *c, int n) {
    const char *names[64], *found = NULL;
    int count = 0, matches = 0;
    for (int i = 0; at_general_decoy(i); i++)
        names[count++] = at_general_decoy(i)->name;
    for (int i = 0; i < c->op->n_decoys && count < 64; i++)
        names[count++] = c->op->decoys[i].name;
    size_t length = strlen(part);
    for (int i = 0; i < count; i++) {
        if (strncmp(names[i], part, length) != 0 || (names[i][length] && names[i][length] != '_'))
            continue;
        found = names[i];
        matches++;
        if (!names[i][length]) {
            matches = 1;
            break;
        }
    }
    if (matches != 1)
        return at_key_unknown(key->name, part, c->where, names, count, "one decoy of the operator or a general one");
    for (int i = 0; i < c->n_require; i++)
        if (strcmp(c->require[i], found) == 0)
            return AT_FAIL(AT_USAGE, "%s: require: '%s' stands there twice, wanted once", c->where, found);
    snprintf(c->require[n], sizeof c->require[n], "%s", found);
    c->n_require = n + 1;
    return AT_OK;
}

static at_status read_choice(const struct at_key *key, const char *text, struct at_case *c) {
    for (int i = 0; key->words[i]; i++)
        if (strcmp(text, key->words[i]) == 0) {
            *(int64_t *)field(key, c) = i;
            return AT_OK;
        }
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s or %s", key->words[0], key->words[1]);
    return at_key_unknown(key->name, text, c->where, key->words, 2, wanted);
}

at_status at_key_format(const char *name, const char *text, const char *where, unsigned formats,
                        enum at_format *value) {
    static const enum at_format all[] = { AT_BF16, AT_F16, AT_F32, AT_E4M3, AT_E5M2 };
    const char *names[sizeof all / sizeof *all];
    char wanted[64] = "";
    int n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!(formats >> all[i] & 1))
            continue;
        names[n++] = at_format_info(all[i])->name;
        if (strcmp(text, names[n - 1]) == 0) {
            *value = all[i];
            return AT_OK;
        }
    }
    for (int i = 0; i < n; i++)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s",
                 i == 0       ? ""
                 : i == n - 1 ? " or "
                              : ", ",
                 names[i]);
    return at_key_unknown(name, text, where, names, n, wanted);
}

static at_status read_data(const struct at_key *key, const char *text, struct at_case *c) {
    const char *names[64];
    int n = at_data_count() < 64 ? at_data_count() : 64;
    for (int i = 0; i < n; i++)
        names[i] = at_data_at(i)->name;
    c->keys->data = at_data_find(text);
    return c->keys->data ? AT_OK : at_key_unknown(key->name, text, c->where, names, n, "a data family");
}

static at_status read_scenario(const struct at_key *key, const char *text, struct at_case *c) {
    const char *names[16];
    int n = at_scenario_count() < 16 ? at_scenario_count() : 16;
    for (int i = 0; i < n; i++)
        names[i] = at_scenario_at(i)->name;
    c->keys->scenario = at_scenario_find(text);
    return c->keys->scenario ? AT_OK : at_key_unknown(key->name, text, c->where, names, n, "a scenario");
}

static at_status read_stratum(const struct at_key *key, const char *text, struct at_case *c) {
    const char *names[AT_TC_STRATA];
    for (int i = 0; i < AT_TC_STRATA; i++) {
        names[i] = at_tc_stratum_name((enum at_tc_stratum)i);
        if (strcmp(text, names[i]) == 0) {
            c->keys->stratum = i;
            return AT_OK;
        }
    }
    return at_key_unknown(key->name, text, c->where, names, AT_TC_STRATA, "a stratum of patterns");
}

/* A file name's stem: nothing that could leave the folder. */
static at_status read_dataset(const struct at_key *key, const char *text, struct at_case *c) {
    size_t length = strlen(text);
    if (length == 0 || length >= sizeof c->keys->dataset ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != length)
        return AT_FAIL(AT_USAGE, "%s: %s: found '%.64s', wanted a name of letters, digits, _ and -, at most %zu long",
                       c->where, key->name, text, sizeof c->keys->dataset - 1);
    memcpy(c->keys->dataset, text, length + 1);
    return AT_OK;
}

/* States in a fixed order, each once, so that one expectation has one text. */
static at_status read_expect(const struct at_key *key, const char *text, struct at_case *c) {
    static const char *const states[] = { "LAUNDERED", "OVERFLOWED" };
    const int first = strcmp(text, states[0]) == 0, both = strcmp(text, "LAUNDERED,OVERFLOWED") == 0;
    if (!first && !both && strcmp(text, states[1]) != 0)
        return at_key_unknown(key->name, text, c->where, states, 2, "LAUNDERED, OVERFLOWED or LAUNDERED,OVERFLOWED");
    snprintf(c->expect, sizeof c->expect, "%s", text);
    return AT_OK;
}

at_status at_key_read(const char *name, const char *text, struct at_case *c) {
    const struct at_scalar *own = at_key_own(c->op, name);
    const struct at_key *key = at_key_find(name);
    if (own)
        return at_own_key_read(own, text, c);
    if (!key)
        return AT_FAIL(AT_BUG, "operator %s takes a key %s that nobody knows", c->op->name, name);
    switch (key->kind) {
    case AT_KEY_INT:
        return at_key_whole(key->name, text, c->where, key->least, key->most, field(key, c));
    case AT_KEY_INTS:
        return for_parts(key, text, '/', AT_CASE_LIST, c, each_int);
    case AT_KEY_FLOATS:
        if (strcmp(key->name, "scale") == 0 && strcmp(text, "auto") == 0)
            return AT_OK; /* stays empty, which means automatic */
        return for_parts(key, text, ':', (int)key->most, c, each_float);
    case AT_KEY_CHOICE:
        return read_choice(key, text, c);
    case AT_KEY_DTYPE:
        return at_key_format(key->name, text, c->where, at_op_dtypes(c->op), field(key, c));
    case AT_KEY_DATA:
        return read_data(key, text, c);
    case AT_KEY_SCENARIO:
        return read_scenario(key, text, c);
    case AT_KEY_DATASET:
        return read_dataset(key, text, c);
    case AT_KEY_HOT:
        return for_parts(key, text, ',', AT_HOT_COUNT, c, each_hot);
    case AT_KEY_STRATUM:
        return read_stratum(key, text, c);
    case AT_KEY_REQUIRE:
        return for_parts(key, text, ',', AT_CASE_MAX_REQUIRE, c, each_require);
    case AT_KEY_EXPECT:
        return read_expect(key, text, c);
    }
    return AT_FAIL(AT_BUG, "key %s has kind %d", key->name, (int)key->kind);
}
