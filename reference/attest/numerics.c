/* Declared numerics as text: names of every choice, defaults, parsing, formatting, and what may stand
 * together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/numerics.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"

/* The values of each kind, in the order of its enum. */
#define X(id, name, meaning) { name, meaning },
static const struct at_numerics_word unit_words[] = { AT_UNIT_LIST(X) };
static const struct at_numerics_word tree_words[] = { AT_TREE_LIST(X) };
static const struct at_numerics_word scale_on_words[] = { AT_SCALE_ON_LIST(X) };
static const struct at_numerics_word fir_order_words[] = { AT_FIR_ORDER_LIST(X) };
static const struct at_numerics_word gamma_on_words[] = { AT_GAMMA_ON_LIST(X) };
static const struct at_numerics_word clamp_words[] = { AT_CLAMP_LIST(X) };
static const struct at_numerics_word exp_words[] = { AT_EXP_LIST(X) };
static const struct at_numerics_word exp_arg_words[] = { AT_EXP_ARG_LIST(X) };
static const struct at_numerics_word tanh_words[] = { AT_TANH_LIST(X) };
static const struct at_numerics_word divide_words[] = { AT_DIVIDE_LIST(X) };
static const struct at_numerics_word rescale_words[] = { AT_RESCALE_LIST(X) };
static const struct at_numerics_word lse_words[] = { AT_LSE_LIST(X) };
static const struct at_numerics_word rsqrt_words[] = { AT_RSQRT_LIST(X) };
static const struct at_numerics_word guard_words[] = { AT_GUARD_LIST(X) };
static const struct at_numerics_word tail_words[] = { AT_TAIL_LIST(X) };
static const struct at_numerics_word pv_zero_words[] = { AT_PV_ZERO_LIST(X) };
#undef X
static const struct at_numerics_word bool_words[] = { { "0", NULL }, { "1", NULL } };
/* P is a floating-point number: every format but i32, and that of the activations. */
static const struct at_numerics_word format_words[] = {
#define X(id, text, bytes, p, emin, emax, max) [AT_##id] = { text, NULL },
    AT_FORMAT_LIST(X)
#undef X
        [AT_P_INPUT] = { "input", NULL },
};

/* A kind: its values 0 .. n-1, or none for integers. */
struct kind {
    const struct at_numerics_word *words;
    int n;
};

#define NAMED(kind) \
    { kind##_words, (int)(sizeof kind##_words / sizeof kind##_words[0]) }
static const struct kind kind_unit = NAMED(unit), kind_tree = NAMED(tree), kind_scale_on = NAMED(scale_on),
                         kind_fir_order = NAMED(fir_order), kind_gamma_on = NAMED(gamma_on), kind_clamp = NAMED(clamp),
                         kind_exp = NAMED(exp), kind_exp_arg = NAMED(exp_arg), kind_tanh = NAMED(tanh),
                         kind_divide = NAMED(divide), kind_rescale = NAMED(rescale), kind_lse = NAMED(lse),
                         kind_rsqrt = NAMED(rsqrt), kind_guard = NAMED(guard), kind_tail = NAMED(tail),
                         kind_pv_zero = NAMED(pv_zero), kind_bool = NAMED(bool), kind_format = NAMED(format),
                         kind_int = { NULL, 0 };
#undef NAMED

/* In the order of AT_NUMERICS_LIST, so that field i of the list is fields[i]. */
static const struct field {
    const char *name, *meaning;
    const struct kind *kind;
    size_t offset;
} fields[] = {
#define X(kind, name, value, meaning) { #name, meaning, &kind_##kind, offsetof(struct at_numerics, name) },
    AT_NUMERICS_LIST(X)
#undef X
};
enum { FIELDS = sizeof fields / sizeof fields[0], MAX_WORDS = 32 };

/* Terms of one fused block of Hopper's tensor cores; chunks are made of whole blocks, or are half of one (the
 * instructions with k = 8, which leave the other half empty). */
static int tensor_core_block(int unit) {
    if (unit == AT_UNIT_TC_TF32 || unit == AT_UNIT_TC_TF32_RNA)
        return 8;
    return unit == AT_UNIT_TC_FP8 || unit == AT_UNIT_TC_FP8_BY_F16 || unit == AT_UNIT_TC_FP8_BY_F16_F16 ? 32 : 16;
}

struct at_numerics at_numerics_default(void) {
    struct at_numerics numerics = {
#define X(kind, name, value, meaning) .name = (value),
        AT_NUMERICS_LIST(X)
#undef X
    };
    return numerics;
}

static int get(const struct at_numerics *numerics, const struct field *field) {
    int value;
    memcpy(&value, (const char *)numerics + field->offset, sizeof value);
    return value;
}

static void set(struct at_numerics *numerics, const struct field *field, int value) {
    memcpy((char *)numerics + field->offset, &value, sizeof value);
}

struct at_numerics at_numerics_on(const struct at_numerics *declared, enum at_format dtype) {
    struct at_numerics numerics = *declared;
    if (numerics.p == AT_P_INPUT)
        numerics.p = (int)dtype;
    return numerics;
}

int at_numerics_field_count(void) { return FIELDS; }

int at_numerics_get(const struct at_numerics *numerics, int i) { return get(numerics, &fields[i]); }
void at_numerics_set(struct at_numerics *numerics, int i, int value) { set(numerics, &fields[i], value); }

struct at_numerics_field at_numerics_field_at(int i) {
    const struct at_numerics defaults = at_numerics_default();
    const struct field *f = &fields[i];
    return (struct at_numerics_field){ f->name, f->meaning, f->kind->words, f->kind->n, get(&defaults, f) };
}

/* A value that is in no enum is an error, not text: it would not parse back. */
static at_status check_names(const struct at_numerics *numerics) {
    for (int i = 0; i < FIELDS; i++) {
        const struct kind *kind = fields[i].kind;
        int value = get(numerics, &fields[i]);
        if (kind->words && (value < 0 || value >= kind->n))
            return AT_FAIL(AT_USAGE, "numerics: %s is %d, wanted a value of 0 to %d", fields[i].name, value,
                           kind->n - 1);
    }
    return AT_OK;
}

/* Puts one more "field=value" behind a text of *used letters, as far as it fits. */
static void add_word(const struct at_numerics *numerics, int i, char *text, size_t size, size_t *used) {
    const struct kind *kind = fields[i].kind;
    const int value = get(numerics, &fields[i]);
    const size_t left = *used < size ? size - *used : 0;
    char number[16];
    snprintf(number, sizeof number, "%d", value);
    *used += (size_t)snprintf(left ? text + *used : NULL, left, "%s%s=%s", *used ? " " : "", fields[i].name,
                              kind->words ? kind->words[value].name : number);
}

at_status at_numerics_format(const struct at_numerics *numerics, char *text, size_t size) {
    size_t used = 0;
    AT_TRY(check_names(numerics));
    for (int i = 0; i < FIELDS; i++)
        add_word(numerics, i, text, size, &used);
    if (used >= size)
        return AT_FAIL(AT_USAGE, "numerics: the text takes %zu bytes, there is room for %zu", used + 1, size);
    return AT_OK;
}

void at_numerics_difference(const struct at_numerics *numerics, const struct at_numerics *from, char *text,
                            size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < FIELDS; i++)
        if (get(numerics, &fields[i]) != get(from, &fields[i]))
            add_word(numerics, i, text, size, &used);
}

/* " a b c" of a list of names, cut to the room there is. */
static void list_names(const char *const *names, int n, char *list, size_t size) {
    list[0] = 0;
    for (int i = 0; i < n; i++) {
        size_t used = strlen(list);
        snprintf(list + used, size - used, " %s", names[i]);
    }
}

static at_status unknown(const char *what, const char *found, const char *const *names, int n) {
    char list[320];
    list_names(names, n, list, sizeof list);
    const char *near = at_nearest_name(found, names, n);
    return AT_FAIL(AT_USAGE, "numerics: unknown %s \"%s\"%s%s%s; wanted one of%s", what, found,
                   near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "", list);
}

static at_status parse_field(const char *name, const struct field **field) {
    const char *names[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        names[i] = fields[i].name;
        if (strcmp(name, names[i]) == 0) {
            *field = &fields[i];
            return AT_OK;
        }
    }
    return unknown("field", name, names, FIELDS);
}

static at_status parse_int(const char *name, const char *text, int *value) {
    char *end;
    long number = strtol(text, &end, 10);
    /* strtol saturates on overflow, which is out of int's range too; a leading blank or + is not ours */
    int plain = (text[0] >= '0' && text[0] <= '9') || text[0] == '-';
    if (!plain || *end || number < INT_MIN || number > INT_MAX)
        return AT_FAIL(AT_USAGE, "numerics: %s is \"%s\", wanted a whole number", name, text);
    *value = (int)number;
    return AT_OK;
}

static at_status parse_value(const struct field *field, const char *text, int *value) {
    const struct kind *kind = field->kind;
    if (!kind->words)
        return parse_int(field->name, text, value);
    for (int i = 0; i < kind->n; i++)
        if (strcmp(text, kind->words[i].name) == 0) {
            *value = i;
            return AT_OK;
        }
    char what[64];
    snprintf(what, sizeof what, "value of %s", field->name);
    const char *names[MAX_WORDS];
    for (int i = 0; i < kind->n && i < MAX_WORDS; i++)
        names[i] = kind->words[i].name;
    return unknown(what, text, names, kind->n < MAX_WORDS ? kind->n : MAX_WORDS);
}

/* One "field=value"; `seen` has a flag per field, so that a field is not set twice. */
static at_status parse_word(char *word, struct at_numerics *numerics, unsigned char *seen) {
    const struct field *field = NULL;
    int value = 0;
    char *equals = strchr(word, '=');
    if (!equals)
        return AT_FAIL(AT_USAGE, "numerics: found \"%s\", wanted field=value", word);
    *equals = 0;
    AT_TRY(parse_field(word, &field));
    if (seen[field - fields]++)
        return AT_FAIL(AT_USAGE, "numerics: %s is given twice", field->name);
    AT_TRY(parse_value(field, equals + 1, &value));
    set(numerics, field, value);
    return AT_OK;
}

at_status at_numerics_parse(const char *text, struct at_numerics *numerics) {
    struct at_numerics parsed = at_numerics_default();
    unsigned char seen[FIELDS] = { 0 };
    while (*(text += strspn(text, " \t\n"))) {
        char word[96];
        size_t length = strcspn(text, " \t\n");
        if (length >= sizeof word)
            return AT_FAIL(AT_USAGE, "numerics: a word of %zu letters, wanted field=value", length);
        memcpy(word, text, length);
        word[length] = 0;
        AT_TRY(parse_word(word, &parsed, seen));
        text += length;
    }
    *numerics = parsed;
    return AT_OK;
}

static int is_tensor_core(int unit) {
    return unit == AT_UNIT_TC_F32 || unit == AT_UNIT_TC_F16 || unit == AT_UNIT_TC_FP8 || unit == AT_UNIT_TC_FP8_ADA ||
           unit == AT_UNIT_TC_FP8_BY_F16 || unit == AT_UNIT_TC_FP8_BY_F16_F16 || unit == AT_UNIT_TC_TF32 ||
           unit == AT_UNIT_TC_TF32_RNA;
}
static int is_f16_accumulator(int unit) {
    return unit == AT_UNIT_TC_F16 || unit == AT_UNIT_F16_FMA || unit == AT_UNIT_TC_FP8_BY_F16_F16;
}

static at_status at_least(const char *name, int value, int least) {
    if (value >= least)
        return AT_OK;
    return AT_FAIL(AT_USAGE, "numerics: %s is %d, wanted at least %d", name, value, least);
}

/* How q.k is shared between lanes. */
static at_status check_qk(const struct at_numerics *n) {
    AT_TRY(at_least("qk_lanes", n->qk_lanes, 1));
    AT_TRY(at_least("qk_run", n->qk_run, 0));
    if (is_tensor_core(n->qk_unit) && n->qk_lanes != 1)
        return AT_FAIL(
            AT_USAGE,
            "numerics: qk_unit=%s with qk_lanes=%d; a tensor core sums a whole dot product: wanted qk_lanes=1",
            unit_words[n->qk_unit].name, n->qk_lanes);
    if (is_tensor_core(n->qk_unit) && n->qk_run && (n->qk_run % 4 || tensor_core_block(n->qk_unit) != 16))
        return AT_FAIL(
            AT_USAGE,
            "numerics: qk_unit=%s with qk_run=%d, wanted 0, or a multiple of the four terms that a step of 16 "
            "takes of each of four threads",
            unit_words[n->qk_unit].name, n->qk_run);
    if (n->qk_tree == AT_TREE_BUTTERFLY && (n->qk_lanes & (n->qk_lanes - 1)))
        return AT_FAIL(AT_USAGE, "numerics: qk_tree=butterfly with qk_lanes=%d, wanted a power of two", n->qk_lanes);
    return AT_OK;
}

/* How p*v is stepped over keys. */
static at_status check_pv(const struct at_numerics *n) {
    const int tensor_core = is_tensor_core(n->pv_unit), whole = tensor_core_block(n->pv_unit);
    AT_TRY(at_least("pv_chunk", n->pv_chunk, 1));
    AT_TRY(at_least("split", n->split, 0));
    AT_TRY(at_least("splits", n->splits, 0));
    AT_TRY(at_least("block", n->block, 0));
    if (n->splits && !n->split)
        return AT_FAIL(AT_USAGE, "numerics: splits=%d with split=0, wanted what their length is a multiple of",
                       n->splits);
    if (n->rescale != AT_RESCALE_FACTOR && !n->block)
        return AT_FAIL(AT_USAGE, "numerics: rescale=%s with block=0, wanted online steps, which rescale",
                       rescale_words[n->rescale].name);
    if (tensor_core && n->pv_chunk % whole && n->pv_chunk != whole / 2)
        return AT_FAIL(AT_USAGE,
                       "numerics: pv_unit=%s with pv_chunk=%d, wanted a multiple of its block of %d, or half of it",
                       unit_words[n->pv_unit].name, n->pv_chunk, whole);
    if (!tensor_core && n->pv_chunk != 1)
        return AT_FAIL(AT_USAGE, "numerics: pv_unit=%s with pv_chunk=%d, wanted 1: it adds key by key",
                       unit_words[n->pv_unit].name, n->pv_chunk);
    if (n->split % n->pv_chunk || n->block % n->pv_chunk)
        return AT_FAIL(AT_USAGE, "numerics: split=%d block=%d pv_chunk=%d, wanted split and block in whole chunks",
                       n->split, n->block, n->pv_chunk);
    AT_TRY(at_least("pv_spread", n->pv_spread, 0));
    if (n->pv_spread &&
        (!tensor_core || whole != 16 || n->pv_chunk != 16 || n->pv_spread % 16 || n->split % n->pv_spread))
        return AT_FAIL(
            AT_USAGE,
            "numerics: pv_spread=%d with pv_unit=%s pv_chunk=%d split=%d, wanted steps of 16 keys on a tensor "
            "core, whole steps in a group and whole groups in a range",
            n->pv_spread, unit_words[n->pv_unit].name, n->pv_chunk, n->split);
    if (tensor_core && n->pv_zero == AT_PV_ZERO_SKIPPED)
        return AT_FAIL(AT_USAGE, "numerics: pv_zero=skipped with pv_unit=%s, which multiplies whole blocks of keys",
                       unit_words[n->pv_unit].name);
    return AT_OK;
}

/* How weights are made and added up. */
static at_status check_weights(const struct at_numerics *n) {
    AT_TRY(at_least("l_lanes", n->l_lanes, 0));
    AT_TRY(at_least("l_run", n->l_run, n->l_lanes > 0));
    AT_TRY(at_least("ex2_poly3", n->ex2_poly3, 0));
    if (n->l_lanes > AT_L_LANES_MAX)
        return AT_FAIL(AT_USAGE, "numerics: l_lanes is %d, wanted at most %d", n->l_lanes, (int)AT_L_LANES_MAX);
    if (n->l_tree == AT_TREE_BUTTERFLY && (n->l_lanes & (n->l_lanes - 1)))
        return AT_FAIL(AT_USAGE, "numerics: l_tree=butterfly with l_lanes=%d, wanted a power of two", n->l_lanes);
    if (n->ex2_poly3 > AT_EX2_POLY3_OF)
        return AT_FAIL(AT_USAGE, "numerics: ex2_poly3 is %d, wanted at most %d", n->ex2_poly3, (int)AT_EX2_POLY3_OF);
    if ((n->exp == AT_EXP_LIBM || n->exp == AT_EXP_TANH_APPROX) &&
        (n->exp_arg != AT_EXP_ARG_DIFFERENCE || n->ex2_poly3))
        return AT_FAIL(AT_USAGE, "numerics: exp=%s with exp_arg=%s ex2_poly3=%d, wanted ex2 for either",
                       exp_words[n->exp].name, exp_arg_words[n->exp_arg].name, n->ex2_poly3);
    if (n->exp_arg == AT_EXP_ARG_FMA && n->scale_on != AT_SCALE_ON_SCORE)
        return AT_FAIL(AT_USAGE,
                       "numerics: exp_arg=fma with scale_on=%s, wanted scale_on=score: the scale is in the argument",
                       scale_on_words[n->scale_on].name);
    return AT_OK;
}

at_status at_numerics_check(const struct at_numerics *numerics) {
    AT_TRY(check_names(numerics));
    AT_TRY(check_qk(numerics));
    AT_TRY(check_pv(numerics));
    AT_TRY(check_weights(numerics));
    if (numerics->rsqrt != AT_RSQRT_LIBM && numerics->qk_unit == AT_UNIT_F64)
        return AT_FAIL(AT_USAGE, "numerics: rsqrt=%s with qk_unit=f64, wanted f32: the instruction takes no other",
                       rsqrt_words[numerics->rsqrt].name);
    if (numerics->guard != AT_GUARD_NONE && !is_f16_accumulator(numerics->qk_unit) &&
        (numerics->guard == AT_GUARD_SCORE || !is_f16_accumulator(numerics->pv_unit)))
        return AT_FAIL(AT_USAGE, "numerics: guard=%s with qk_unit=%s pv_unit=%s, wanted an f16 accumulator to guard",
                       guard_words[numerics->guard].name, unit_words[numerics->qk_unit].name,
                       unit_words[numerics->pv_unit].name);
    if (numerics->batch_invariant && !numerics->repeats)
        return AT_FAIL(AT_USAGE, "numerics: batch_invariant=1 with repeats=0; bits that change by themselves also "
                                 "change with the batch");
    return AT_OK;
}
