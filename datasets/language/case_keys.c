/* The table of keys of the case language, and what a key's text means.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_keys.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "datasets/fill/scenarios.h"
#include "datasets/fill/tc_patterns.h"

#define FIELD(name) offsetof(struct at_case_keys, name)

/* In the order of the id. */
/* clang-format off */
static const struct at_key table[] = {
    { "scenario", AT_KEY_SCENARIO, AT_KEY_ATTENTION | AT_KEY_CACHE, FIELD(scenario), 0, 0, { 0 }, "NAME: a benchmark's batch; sets b, sq and sk; then page=16 and causal=1 by default" },
    { "dataset",  AT_KEY_DATASET,  AT_KEY_ATTENTION, FIELD(dataset),  0, 0, { 0 }, "NAME: recorded q, k, v (datasets/activations/NAME.safetensors) in place of data" },
    { "layer",    AT_KEY_INT,      AT_KEY_ATTENTION, FIELD(layer),    0, 9999, { 0 }, "layer of the dataset; default 0" },
    { "b",        AT_KEY_INT,      AT_KEY_ATTENTION | AT_KEY_CACHE, FIELD(b),        1, 65536, { 0 }, "requests; default 1" },
    { "h",        AT_KEY_INT,      AT_KEY_ATTENTION | AT_KEY_HEADS, FIELD(h), 1, 4096, { 0 }, "query heads; default 8" },
    { "hk",       AT_KEY_INT,      AT_KEY_ATTENTION | AT_KEY_HEADS | AT_KEY_CACHE, FIELD(hk), 1, 4096, { 0 }, "key/value heads; divides h; default h/2, or h when h is odd" },
    { "sq",       AT_KEY_INTS,     AT_KEY_PREFILL | AT_KEY_CACHE, FIELD(sq),       0, 1 << 24, { 0 }, "queries of a request; default 64; 1 in decode families" },
    { "sk",       AT_KEY_INTS,     AT_KEY_ATTENTION | AT_KEY_CACHE, FIELD(sk),       0, 1 << 26, { 0 }, "keys of a request; default sq, in decode families 256" },
    { "prefix",   AT_KEY_INTS,     AT_KEY_ATTENTION | AT_KEY_CACHE, FIELD(prefix),   0, 1 << 26, { 0 }, "keys before the first query: another way to write sk = prefix + sq" },
    { "d",        AT_KEY_INT,      AT_KEY_ATTENTION | AT_KEY_HEADS | AT_KEY_CACHE, FIELD(d), 1, 4096, { 0 }, "head size; default 128" },
    { "pad_d",    AT_KEY_INT,      AT_KEY_ATTENTION, FIELD(pad_d),    0, 4096, { 0 }, "head size that zeros pad q, k and v to (the scale stays that of d); default 0: none" },
    { "tokens",   AT_KEY_INT,      AT_KEY_NORM | AT_KEY_PATTERNS, FIELD(tokens), 1, 1 << 26, { 0 }, "rows of a norm, patterns of an instruction; default 32" },
    { "channels", AT_KEY_INT,      AT_KEY_CHANNELS,  FIELD(channels), 1, 1 << 24, { 0 }, "hidden size of a norm; default 1024" },
    { "m",        AT_KEY_INT,      AT_KEY_PRODUCT,   FIELD(m),        0, 1 << 24, { 0 }, "rows of a product, of its first factor; default 64" },
    { "n",        AT_KEY_INT,      AT_KEY_PRODUCT | AT_KEY_ELEMENTS, FIELD(n), 0, 1 << 24, { 0 }, "columns of a product (1 or more), rows of its second factor; elements of exp2; default 64" },
    { "k",        AT_KEY_INT,      AT_KEY_PRODUCT,   FIELD(k),        1, 1 << 24, { 0 }, "products that one element sums; default 128" },
    { "page",     AT_KEY_INT,      AT_KEY_ATTENTION | AT_KEY_CACHE, FIELD(page),     0, 65536, { 0 }, "keys per page; default 0: contiguous" },
    { "padding",  AT_KEY_INT,      AT_KEY_CACHE,     FIELD(padding),  0, 1 << 20, { 0 }, "tokens behind the others that have no slot, as graphs of a fixed size have them; default 0" },
    { "causal",   AT_KEY_INT,      AT_KEY_ATTENTION, FIELD(causal),   0, 1, { 0 }, "1: query i sees keys up to sk - sq + i; default 0" },
    { "instruction", AT_KEY_INSTRUCTION, AT_KEY_PATTERNS, FIELD(instruction), 0, 0, { 0 }, "NAME of a tensor-core instruction; default hopper_mma_k16_f16_f32" },
    { "stratum",  AT_KEY_STRATUM,  AT_KEY_PATTERNS,  FIELD(stratum),  0, 0, { 0 }, "NAME: what its operands look like; default ordinary" },
    { "dtype",    AT_KEY_DTYPE,    AT_KEY_VALUES,    FIELD(dtype),    0, 0, { 0 }, "bf16, f16 or f32: the activations; of a product e4m3 or e5m2 too; default bf16" },
    { "out",      AT_KEY_DTYPE,    AT_KEY_PRODUCT,   FIELD(out),      0, 0, { 0 }, "bf16, f16 or f32: the product; default dtype, bf16 for e4m3 and e5m2" },
    { "data",     AT_KEY_DATA,     AT_KEY_VALUES | AT_KEY_ELEMENTS, FIELD(data),     0, 0, { 0 }, "NAME: what the values look like; default normal" },
    { "seed",     AT_KEY_INT,      AT_KEY_ALWAYS,    FIELD(seed),     0, INT64_MAX, { 0 }, "of the data and of the order of pages; default 1" },
    { "scale",    AT_KEY_FLOATS,   AT_KEY_ATTENTION | AT_KEY_PRODUCT, FIELD(scale), 1, 1, { 0 }, "of the scores; default auto: 1/sqrt(d), a power of two for exact and ties; of a product; default auto: 1" },
    { "sigma",    AT_KEY_FLOATS,   AT_KEY_ASYNCT,    FIELD(sigma),    1, AT_CASE_LIST, { 0 }, "share of the pooled scores that is subtracted, one or one per head (1:0.5); default 1" },
    { "window",   AT_KEY_INT,      AT_KEY_ASYNCT,    FIELD(window),   1, AT_CASE_TAPS, { 0 }, "K, keys of the pool; default 3, or the number of taps" },
    { "taps",     AT_KEY_FLOATS,   AT_KEY_ASYNCT,    FIELD(taps),     1, AT_CASE_TAPS, { 0 }, "FIR taps in place of sigma (0.5:-0.25:-0.25), the current key's first" },
    { "edge",     AT_KEY_CHOICE,   AT_KEY_ASYNCT,    FIELD(edge),     0, 1, { "zero", "shrink", NULL }, "divisor of the pool at the first keys: K, or the keys there are; default zero" },
    { "relu_pre", AT_KEY_INT,      AT_KEY_ASYNCT,    FIELD(relu_pre), 0, 1, { 0 }, "1: scores pass max(s, 0) before the FIR; default 1" },
    { "clip",     AT_KEY_FLOATS,   AT_KEY_ASYNCT,    FIELD(clip),     2, 2, { 0 }, "ends of the gate; default 0:1" },
    { "gamma",    AT_KEY_FLOATS,   AT_KEY_ASYNCT,    FIELD(gamma),    1, AT_CASE_LIST, { 0 }, "factor of p, one or one per head; default 1" },
    { "lo",       AT_KEY_FLOATS,   AT_KEY_UCLIP,     FIELD(lo),       1, 1, { 0 }, "UClip: lower end; default -1" },
    { "hi",       AT_KEY_FLOATS,   AT_KEY_UCLIP,     FIELD(hi),       1, 1, { 0 }, "UClip: upper end; default 1" },
    { "eps",      AT_KEY_FLOATS,   AT_KEY_RMS,       FIELD(eps),      1, 1, { 0 }, "RMSNorm: added to the mean square; default 1e-6, 0 for exact" },
    { "from",     AT_KEY_CHOICE,   AT_KEY_FROM,      FIELD(from),     0, 1, { "rounded", "exact", NULL }, "the pre-MLP norm reads the residual rounded or not; default rounded" },
    { "attention", AT_KEY_CHOICE,  AT_KEY_COUNTS,    FIELD(softmax),  0, 1, { "asynct", "softmax", NULL }, "how scores become p; default asynct" },
    { "bins",     AT_KEY_CHOICE,   AT_KEY_COUNTS,    FIELD(bins),     0, 1, { "f16", "bf16", NULL }, "the codes that are counted; default dtype, f16 for f32" },
    { "what",     AT_KEY_WHAT,     AT_KEY_COUNTS,    FIELD(what),     0, 0, { 0 }, "NAME:...: counted of q k v raw scaled fir p out row_max row_sum entropy support share0; default all" },
    { "behind",   AT_KEY_INT,      AT_KEY_COUNTS,    FIELD(behind),   0, 1 << 24, { 0 }, "queries of the request behind those at hand; default 0" },
    { "hot",      AT_KEY_HOT,      AT_KEY_ATTENTION, FIELD(hot),      0, 0, { 0 }, "NAME,...: keys made to matter: last_key, hidden_key, clip, halo" },
    { "require",  AT_KEY_REQUIRE,  AT_KEY_ALWAYS,    0,               0, 0, { 0 }, "NAME,...: decoys that must count here" },
    { "expect",   AT_KEY_EXPECT,   AT_KEY_ALWAYS,    0,               0, 0, { 0 }, "states that are right here beside PASS: LAUNDERED, OVERFLOWED" },
};
/* clang-format on */

enum { KEYS = sizeof table / sizeof *table };

int at_key_count(void) { return KEYS; }

const struct at_key *at_key_at(int i) { return &table[i]; }

int at_key_find(const char *name) {
    for (int i = 0; i < KEYS; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

int at_key_given(const struct at_case_keys *keys, const char *name) {
    int i = at_key_find(name);
    return i >= 0 && (keys->given >> i & 1);
}

static int has_dimension(const struct at_op *op, enum at_dim dim) {
    for (int i = 0; i < op->n_tensors; i++)
        for (int r = 0; r < AT_MAX_RANK; r++)
            if (op->tensors[i].dims[r] == dim)
                return 1;
    return 0;
}

unsigned at_key_groups(const struct at_family *family, const struct at_op *op) {
    unsigned groups = AT_KEY_ALWAYS;
    if (has_dimension(op, AT_DIM_k))
        return groups | AT_KEY_VALUES | AT_KEY_PRODUCT;
    if (has_dimension(op, AT_DIM_n))
        return groups | AT_KEY_ELEMENTS;
    if (at_op_tensor_index(op, "a") >= 0 && at_op_tensor_index(op, "d") >= 0)
        return groups | AT_KEY_PATTERNS;
    groups |= AT_KEY_VALUES;
    if (at_op_tensor_index(op, "seq_lens") >= 0)
        return groups | AT_KEY_ATTENTION | (family->decode ? 0u : (unsigned)AT_KEY_PREFILL) |
               (at_op_tensor_index(op, "sigma") >= 0 ? (unsigned)AT_KEY_ASYNCT : 0u) |
               (at_op_tensor_index(op, "counts") >= 0 ? (unsigned)AT_KEY_COUNTS : 0u);
    if (at_op_tensor_index(op, "slot_mapping") >= 0)
        return groups | AT_KEY_CACHE;
    groups |= AT_KEY_NORM;
    groups |= has_dimension(op, AT_DIM_channels) ? (unsigned)AT_KEY_CHANNELS : 0u;
    groups |= has_dimension(op, AT_DIM_h) ? (unsigned)AT_KEY_HEADS : 0u;
    groups |= strstr(op->name, "uclip") ? (unsigned)AT_KEY_UCLIP : 0u;
    groups |= strstr(op->name, "rms") ? (unsigned)AT_KEY_RMS : 0u;
    groups |= strncmp(op->name, "post_attn", 9) == 0 ? (unsigned)AT_KEY_FROM : 0u;
    return groups;
}

const char *at_case_key_help(int i) {
    static _Thread_local char text[256];
    if (i < 0 || i >= KEYS)
        return NULL;
    snprintf(text, sizeof text, "%-9s %s", table[i].name, table[i].help);
    return text;
}

const char *at_case_family_key_help(const struct at_family *family, int i) {
    const unsigned groups = at_key_groups(family, at_op_find(family->op));
    for (int k = 0, n = 0; k < KEYS; k++)
        if (table[k].groups & groups && n++ == i)
            return at_case_key_help(k);
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

static at_status read_int(const struct at_key *key, const char *text, const char *where, int64_t *value) {
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (end == text || *end || errno || text[0] == ' ' || text[0] == '+' || x < key->least || x > key->most)
        return AT_FAIL(AT_USAGE, "%s: %s: found '%.64s', wanted a whole number from %lld to %lld", where, key->name,
                       text, (long long)key->least, (long long)key->most);
    *value = x;
    return AT_OK;
}

static at_status read_float(const struct at_key *key, const char *text, const char *where, float *value) {
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || text[0] == ' ' || text[0] == '+' || !isfinite(x) || !isfinite((float)x))
        return AT_FAIL(AT_USAGE, "%s: %s: found '%.64s', wanted a finite number within f32", where, key->name, text);
    *value = (float)x + 0.0f; /* -0 becomes +0: one id for one problem */
    return AT_OK;
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
    AT_TRY(read_int(key, part, c->where, &list->value[n]));
    list->n = n + 1;
    return AT_OK;
}

static at_status each_float(const struct at_key *key, const char *part, struct at_case *c, int n) {
    struct at_float_list *list = field(key, c);
    AT_TRY(read_float(key, part, c->where, &list->value[n]));
    list->n = n + 1;
    return AT_OK;
}

static at_status unknown(const struct at_key *key, const char *text, const char *where, const char *const *names, int n,
                         const char *wanted) {
    const char *nearest = at_nearest_name(text, names, n);
    return AT_FAIL(AT_USAGE, "%s: %s: found '%.64s', wanted %s%s%s%s", where, key->name, text, wanted,
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
    return unknown(key, part, c->where, names, AT_HOT_COUNT, "last_key, hidden_key, clip or halo");
}

/* Decoys that every operator gets from the verifier, which this folder may not include. */
static const char *const general_decoys[] = { "zeros",      "sign",       "mean",        "previous_row",
                                              "other_head", "row_zeroed", "batch_zeroed" };

/* A decoy's name, or the words before one of its underscores when no other decoy begins so: halo for
 * halo_forgotten. */
static at_status each_require(const struct at_key *key, const char *part, struct at_case *c, int n) {
    const char *names[64], *found = NULL;
    int count = 0, matches = 0;
    for (size_t i = 0; i < sizeof general_decoys / sizeof *general_decoys; i++)
        names[count++] = general_decoys[i];
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
        return unknown(key, part, c->where, names, count, "one decoy of the operator or a general one");
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
    return unknown(key, text, c->where, key->words, 2, wanted);
}

static const char *const quantities[] = { "q",   "k",       "v",       "raw",     "scaled",  "fir",   "p",
                                          "out", "row_max", "row_sum", "entropy", "support", "share0" };
enum { QUANTITIES = sizeof quantities / sizeof *quantities };

const char *at_key_quantity(int i) { return i >= 0 && i < QUANTITIES ? quantities[i] : NULL; }

static at_status each_quantity(const struct at_key *key, const char *part, struct at_case *c, int n) {
    (void)n;
    for (int i = 0; i < QUANTITIES; i++)
        if (strcmp(part, quantities[i]) == 0) {
            c->keys->what |= (int64_t)1 << i;
            return AT_OK;
        }
    return unknown(key, part, c->where, quantities, QUANTITIES, "quantities with colons");
}

static at_status read_dtype(const struct at_key *key, const char *text, struct at_case *c) {
    static const enum at_format formats[] = { AT_BF16, AT_F16, AT_F32, AT_E4M3, AT_E5M2 };
    const int factors = key->offset == FIELD(dtype) && at_key_groups(c->family, c->op) & AT_KEY_PRODUCT;
    const int n = factors ? 5 : 3;
    const char *names[5];
    for (int i = 0; i < n; i++) {
        names[i] = at_format_info(formats[i])->name;
        if (strcmp(text, names[i]) == 0) {
            *(enum at_format *)field(key, c) = formats[i];
            return AT_OK;
        }
    }
    return unknown(key, text, c->where, names, n, factors ? "bf16, f16, f32, e4m3 or e5m2" : "bf16, f16 or f32");
}

static at_status read_data(const struct at_key *key, const char *text, struct at_case *c) {
    const char *names[64];
    int n = at_data_count() < 64 ? at_data_count() : 64;
    for (int i = 0; i < n; i++)
        names[i] = at_data_at(i)->name;
    c->keys->data = at_data_find(text);
    return c->keys->data ? AT_OK : unknown(key, text, c->where, names, n, "a data family");
}

static at_status read_scenario(const struct at_key *key, const char *text, struct at_case *c) {
    const char *names[16];
    int n = at_scenario_count() < 16 ? at_scenario_count() : 16;
    for (int i = 0; i < n; i++)
        names[i] = at_scenario_at(i)->name;
    c->keys->scenario = at_scenario_find(text);
    return c->keys->scenario ? AT_OK : unknown(key, text, c->where, names, n, "a scenario");
}

static at_status read_instruction(const struct at_key *key, const char *text, struct at_case *c) {
    const char *names[128];
    const int n = at_tc_instruction_count() < 128 ? at_tc_instruction_count() : 128;
    for (int i = 0; i < n; i++)
        names[i] = at_tc_instruction_at(i)->name;
    const struct at_tc_instruction *found = at_tc_instruction_find(text);
    if (!found)
        return unknown(key, text, c->where, names, n, "a tensor-core instruction");
    c->keys->instruction = found - at_tc_instruction_at(0);
    return AT_OK;
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
    return unknown(key, text, c->where, names, AT_TC_STRATA, "a stratum of patterns");
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
        return unknown(key, text, c->where, states, 2, "LAUNDERED, OVERFLOWED or LAUNDERED,OVERFLOWED");
    snprintf(c->expect, sizeof c->expect, "%s", text);
    return AT_OK;
}

at_status at_key_read(const struct at_key *key, const char *text, struct at_case *c) {
    switch (key->kind) {
    case AT_KEY_INT:
        return read_int(key, text, c->where, field(key, c));
    case AT_KEY_INTS:
        return for_parts(key, text, '/', AT_CASE_LIST, c, each_int);
    case AT_KEY_FLOATS:
        if (strcmp(key->name, "scale") == 0 && strcmp(text, "auto") == 0)
            return AT_OK; /* stays empty, which means automatic */
        return for_parts(key, text, ':', (int)key->most, c, each_float);
    case AT_KEY_CHOICE:
        return read_choice(key, text, c);
    case AT_KEY_DTYPE:
        return read_dtype(key, text, c);
    case AT_KEY_DATA:
        return read_data(key, text, c);
    case AT_KEY_SCENARIO:
        return read_scenario(key, text, c);
    case AT_KEY_DATASET:
        return read_dataset(key, text, c);
    case AT_KEY_HOT:
        return for_parts(key, text, ',', AT_HOT_COUNT, c, each_hot);
    case AT_KEY_INSTRUCTION:
        return read_instruction(key, text, c);
    case AT_KEY_STRATUM:
        return read_stratum(key, text, c);
    case AT_KEY_WHAT:
        return for_parts(key, text, ':', QUANTITIES, c, each_quantity);
    case AT_KEY_REQUIRE:
        return for_parts(key, text, ',', AT_CASE_MAX_REQUIRE, c, each_require);
    case AT_KEY_EXPECT:
        return read_expect(key, text, c);
    }
    return AT_FAIL(AT_BUG, "key %s has kind %d", key->name, (int)key->kind);
}
