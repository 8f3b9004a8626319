/* The parsed values of a case and the table of keys that drives parsing, the id and the help.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CASE_KEYS_H
#define AT_CASE_KEYS_H

#include "attest/op.h"
#include "datasets/language/case.h"
#include "datasets/fill/data.h"

enum { AT_CASE_LIST = 32, AT_CASE_TAPS = 16 };

/* Whole numbers, one per request in turn: request r takes value[r % n]. */
struct at_int_list {
    int n;
    int64_t value[AT_CASE_LIST];
};

/* f32 values. sigma, gamma, slope: one for all heads, or one each. */
struct at_float_list {
    int n;
    float value[AT_CASE_LIST];
};

/* A field exists for every key of the language; keys that an operator does not use hold their defaults. */
struct at_case_keys {
    const struct at_op *op;
    int64_t b, h, hk, d, page, causal, seed, edge, relu_pre, window, pad_d, tokens, padding, channels, from, layer;
    int64_t deal;           /* 1: pages of a request are as many as its capacity has */
    int64_t capacity, pool; /* 0: the longest request's; -1: one page in eight */
    int64_t stratum;        /* its place in the table */
    int64_t shrink, step;   /* of the scenario; 1 and 0 without one */
    struct at_int_list sq, sk, prefix;
    enum at_format dtype;
    const struct at_data_family *data; /* NULL for a recorded dataset */
    const struct at_scenario *scenario;
    char dataset[32];           /* "" for generated data */
    struct at_float_list scale; /* n 0: automatic */
    struct at_float_list sigma, taps, gamma, clip;
    struct at_float_list slope; /* n 0: drawn */
    struct at_float_list lo, hi, eps;
    unsigned hot;   /* bits of enum at_hot */
    uint64_t given; /* bit i: key i of op->keys stood in the line */
    /* The operator's own sizes and parameters; once the case is finished also the shared sizes (but a dataset's). */
    struct at_problem own;
    unsigned own_given; /* bit i: entry i of op->own was set by the line */
};

/* How the text of a key becomes a value. INTS: '/' list; FLOATS: ':' list; NAMES: comma list that does not
 * make separate cases. */
enum at_key_kind {
    AT_KEY_INT,
    AT_KEY_INTS,
    AT_KEY_FLOATS,
    AT_KEY_CHOICE, /* a number or one of the table's words */
    AT_KEY_DTYPE,
    AT_KEY_DATA,
    AT_KEY_SCENARIO,
    AT_KEY_DATASET,
    AT_KEY_HOT,
    AT_KEY_REQUIRE,
    AT_KEY_STRATUM,
    AT_KEY_EXPECT
};

/* A key of the language, which operators share. */
struct at_key {
    const char *name;
    enum at_key_kind kind;
    size_t offset;        /* of its field in struct at_case_keys; unused for require and expect */
    int64_t least, most;  /* whole numbers: range; floats: how many */
    const char *words[3]; /* CHOICE: word of value 0, 1, ... */
    const char *help;
};

/* Name of key i of the language, NULL past the end. */
const char *at_key_name(int i);
/* A key of the language by its name; one of the operator's own table by its key. NULL if none. */
const struct at_key *at_key_find(const char *name);
const struct at_scalar *at_key_own(const struct at_op *op, const char *name);
/* Place of a key in op->keys, -1 when the operator does not take it. */
int at_key_index(const struct at_op *op, const char *name);
/* Does some operator take a key of that name? */
int at_key_is_known(const char *name);
/* Was the key called `name` in the line? */
int at_key_given(const struct at_case_keys *keys, const char *name);

/* The text of one of op->keys into its field, or into the case for require and expect. Messages name `where`. */
at_status at_key_read(const char *name, const char *text, struct at_case *c);

/* The same for a key of the operator's own table; its value as text; its line for at_case_key_help(). */
at_status at_own_key_read(const struct at_scalar *field, const char *text, struct at_case *c);
void at_own_key_text(const struct at_scalar *field, const struct at_case *c, char *text, size_t size);
void at_own_key_help(const struct at_op *op, const struct at_scalar *field, char *text, size_t size);

/* What both kinds of keys are read by. `formats`: bits of enum at_format. */
at_status at_key_whole(const char *name, const char *text, const char *where, int64_t least, int64_t most,
                       int64_t *value);
at_status at_key_float(const char *name, const char *text, const char *where, float *value);
at_status at_key_format(const char *name, const char *text, const char *where, unsigned formats, enum at_format *value);
at_status at_key_unknown(const char *name, const char *text, const char *where, const char *const *names, int n,
                         const char *wanted);
/* The fewest digits that read back as the same f32. */
void at_key_float_text(float value, char *text, size_t size);

#endif
