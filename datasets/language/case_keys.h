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

/* f32 values. sigma, gamma: one for all heads, or one each. */
struct at_float_list {
    int n;
    float value[AT_CASE_LIST];
};

/* A field exists for every key; keys that an operator does not use hold their defaults. */
struct at_case_keys {
    int64_t b, h, hk, d, page, causal, seed, edge, relu_pre, window, pad_d, tokens, padding, channels, from, layer;
    int64_t instruction, stratum; /* places in their tables */
    int64_t m, n, k;
    int64_t softmax, bins, what, behind; /* bins: 0 f16, 1 bf16; what: bit i, quantity i */
    struct at_int_list sq, sk, prefix;
    enum at_format dtype, out;
    const struct at_data_family *data; /* NULL for a recorded dataset */
    const struct at_scenario *scenario;
    char dataset[32];           /* "" for generated data */
    struct at_float_list scale; /* n 0: automatic */
    struct at_float_list sigma, taps, gamma, clip;
    struct at_float_list lo, hi, eps;
    unsigned hot;   /* bits of enum at_hot */
    uint64_t given; /* bit i: key i of the table stood in the line */
};

/* What an operator has, which decides the keys it takes. */
enum at_key_group {
    AT_KEY_ALWAYS = 1,
    AT_KEY_ATTENTION = 2,
    AT_KEY_ASYNCT = 4,
    AT_KEY_CHANNELS = 8, /* norms over a hidden size */
    AT_KEY_HEADS = 16,   /* norms over heads */
    AT_KEY_UCLIP = 32,
    AT_KEY_RMS = 64,
    AT_KEY_FROM = 128,
    AT_KEY_NORM = 256,
    AT_KEY_PREFILL = 512,    /* attention families that are not held to one query */
    AT_KEY_CACHE = 1024,     /* requests and their places in a cache, as attention has them, but nothing computed */
    AT_KEY_VALUES = 2048,    /* activations of a data family */
    AT_KEY_PATTERNS = 4096,  /* operands of one tensor-core instruction */
    AT_KEY_PRODUCT = 8192,   /* of two matrices */
    AT_KEY_ELEMENTS = 16384, /* of an elementwise function, f32 */
    AT_KEY_COUNTS = 32768    /* scores are counted */
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
    AT_KEY_INSTRUCTION,
    AT_KEY_STRATUM,
    AT_KEY_WHAT,
    AT_KEY_EXPECT
};

struct at_key {
    const char *name;
    enum at_key_kind kind;
    unsigned groups;
    size_t offset;        /* of its field in struct at_case_keys; unused for require and expect */
    int64_t least, most;  /* whole numbers: range; floats: how many */
    const char *words[3]; /* CHOICE: word of value 0, 1, ... */
    const char *help;
};

int at_key_count(void);
const struct at_key *at_key_at(int i);
/* Index of a key, -1 if none. */
int at_key_find(const char *name);
/* Was the key called `name` in the line? */
int at_key_given(const struct at_case_keys *keys, const char *name);
/* The groups of a family. */
unsigned at_key_groups(const struct at_family *family, const struct at_op *op);

/* Name of quantity i of score_counts, NULL past the end. */
const char *at_key_quantity(int i);

/* One value's text into its field, or into the case for require and expect. Messages name `where`. */
at_status at_key_read(const struct at_key *key, const char *text, struct at_case *c);

#endif
