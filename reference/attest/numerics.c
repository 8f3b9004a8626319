/* Declared numerics as text: names of every choice, defaults, parsing, formatting, and what may stand
 * together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/numerics.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"

/* Names of the values of each enum, in the enum's order. */
static const char *const unit_names[] = {
    [AT_UNIT_F64] = "f64",       [AT_UNIT_F32] = "f32",       [AT_UNIT_F32_FMA] = "f32_fma",
    [AT_UNIT_TC_F32] = "tc_f32", [AT_UNIT_TC_F16] = "tc_f16", [AT_UNIT_F16_FMA] = "f16_fma",
    [AT_UNIT_TC_FP8] = "tc_fp8"
};
static const char *const tree_names[] = { [AT_TREE_SEQUENTIAL] = "sequential", [AT_TREE_BUTTERFLY] = "butterfly" };
static const char *const scale_on_names[] = {
    [AT_SCALE_ON_SCORE] = "score", [AT_SCALE_ON_Q] = "q", [AT_SCALE_ON_Q_ROUNDED] = "q_rounded"
};
static const char *const fir_order_names[] = { [AT_FIR_ORDER_TAPS] = "taps", [AT_FIR_ORDER_POOLED] = "pooled" };
static const char *const gamma_on_names[] = {
    [AT_GAMMA_ON_P] = "p", [AT_GAMMA_AFTER_P] = "after_p", [AT_GAMMA_ON_OUTPUT] = "output"
};
static const char *const clamp_names[] = { [AT_CLAMP_FMINMAX] = "fminmax", [AT_CLAMP_PROPAGATE] = "propagate" };
static const char *const exp_names[] = {
    [AT_EXP_LIBM] = "libm", [AT_EXP_EX2_APPROX] = "ex2_approx", [AT_EXP_EX2_APPROX_FTZ] = "ex2_approx_ftz"
};
static const char *const guard_names[] = { [AT_GUARD_NONE] = "none",
                                           [AT_GUARD_ISINF] = "isinf",
                                           [AT_GUARD_NAN_SAFE] = "nan_safe",
                                           [AT_GUARD_SATURATE] = "saturate" };
static const char *const tail_names[] = { [AT_TAIL_UNREAD] = "unread", [AT_TAIL_FINITE] = "finite" };
static const char *const pv_zero_names[] = { [AT_PV_ZERO_SKIPPED] = "skipped", [AT_PV_ZERO_MULTIPLIED] = "multiplied" };
static const char *const bool_names[] = { "0", "1" };
/* P is a floating-point number: every format but i32. */
static const char *const format_names[] = {
#define X(id, text, bytes, p, emin, emax, max) [AT_##id] = text,
    AT_FORMAT_LIST(X)
#undef X
};

/* A kind: the names of its values 0 .. n-1, or none for integers. */
struct kind {
    const char *const *names;
    int n;
};

#define NAMED(kind) \
    { kind##_names, (int)(sizeof kind##_names / sizeof kind##_names[0]) }
static const struct kind kind_unit = NAMED(unit), kind_tree = NAMED(tree), kind_scale_on = NAMED(scale_on),
                         kind_fir_order = NAMED(fir_order), kind_gamma_on = NAMED(gamma_on), kind_clamp = NAMED(clamp),
                         kind_exp = NAMED(exp), kind_guard = NAMED(guard), kind_tail = NAMED(tail),
                         kind_pv_zero = NAMED(pv_zero), kind_bool = NAMED(bool), kind_format = NAMED(format),
                         kind_int = { NULL, 0 };
#undef NAMED

/* In the order of AT_NUMERICS_LIST, so that field i of the list is fields[i]. */
static const struct field {
    const char *name;
    const struct kind *kind;
    size_t offset;
} fields[] = {
#define X(kind, name, value, meaning) { #name, &kind_##kind, offsetof(struct at_numerics, name) },
    AT_NUMERICS_LIST(X)
#undef X
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* Terms of one fused block of Hopper's tensor cores; chunks are made of whole blocks, or are half of one (the
 * instructions with k = 8, which leave the other half empty). */
static int tensor_core_block(int unit) { return unit == AT_UNIT_TC_FP8 ? 32 : 16; }

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

/* A value that is in no enum is an error, not text: it would not parse back. */
static at_status check_names(const struct at_numerics *numerics) {
    for (int i = 0; i < FIELDS; i++) {
        const struct kind *kind = fields[i].kind;
        int value = get(numerics, &fields[i]);
        if (kind->names && (value < 0 || value >= kind->n))
            return AT_FAIL(AT_USAGE, "numerics: %s is %d, wanted a value of 0 to %d", fields[i].name, value,
                           kind->n - 1);
    }
    return AT_OK;
}

at_status at_numerics_format(const struct at_numerics *numerics, char *text, size_t size) {
    AT_TRY(check_names(numerics));
    size_t used = 0;
    for (int i = 0; i < FIELDS; i++) {
        const struct kind *kind = fields[i].kind;
        int value = get(numerics, &fields[i]);
        char number[16];
        snprintf(number, sizeof number, "%d", value);
        size_t left = used < size ? size - used : 0;
        int wrote = snprintf(left ? text + used : NULL, left, "%s%s=%s", i ? " " : "", fields[i].name,
                             kind->names ? kind->names[value] : number);
        used += (size_t)wrote;
    }
    if (used >= size)
        return AT_FAIL(AT_USAGE, "numerics: the text takes %zu bytes, there is room for %zu", used + 1, size);
    return AT_OK;
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
    if (!kind->names)
        return parse_int(field->name, text, value);
    for (int i = 0; i < kind->n; i++)
        if (strcmp(text, kind->names[i]) == 0) {
            *value = i;
            return AT_OK;
        }
    char what[64];
    snprintf(what, sizeof what, "value of %s", field->name);
    return unknown(what, text, kind->names, kind->n);
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
    return unit == AT_UNIT_TC_F32 || unit == AT_UNIT_TC_F16 || unit == AT_UNIT_TC_FP8;
}
static int is_f16_accumulator(int unit) { return unit == AT_UNIT_TC_F16 || unit == AT_UNIT_F16_FMA; }

static at_status at_least(const char *name, int value, int least) {
    if (value >= least)
        return AT_OK;
    return AT_FAIL(AT_USAGE, "numerics: %s is %d, wanted at least %d", name, value, least);
}

/* How q.k is shared between lanes. */
static at_status check_qk(const struct at_numerics *n) {
    AT_TRY(at_least("qk_lanes", n->qk_lanes, 1));
    AT_TRY(at_least("qk_run", n->qk_run, 0));
    if (is_tensor_core(n->qk_unit) && (n->qk_lanes != 1 || n->qk_run != 0))
        return AT_FAIL(AT_USAGE,
                       "numerics: qk_unit=%s with qk_lanes=%d qk_run=%d; a tensor core sums a whole dot "
                       "product: wanted qk_lanes=1 qk_run=0",
                       unit_names[n->qk_unit], n->qk_lanes, n->qk_run);
    if (n->qk_tree == AT_TREE_BUTTERFLY && (n->qk_lanes & (n->qk_lanes - 1)))
        return AT_FAIL(AT_USAGE, "numerics: qk_tree=butterfly with qk_lanes=%d, wanted a power of two", n->qk_lanes);
    return AT_OK;
}

/* How p*v is stepped over keys. */
static at_status check_pv(const struct at_numerics *n) {
    const int tensor_core = is_tensor_core(n->pv_unit), whole = tensor_core_block(n->pv_unit);
    AT_TRY(at_least("pv_chunk", n->pv_chunk, 1));
    AT_TRY(at_least("split", n->split, 0));
    AT_TRY(at_least("block", n->block, 0));
    if (tensor_core && n->pv_chunk % whole && n->pv_chunk != whole / 2)
        return AT_FAIL(AT_USAGE,
                       "numerics: pv_unit=%s with pv_chunk=%d, wanted a multiple of its block of %d, or half of it",
                       unit_names[n->pv_unit], n->pv_chunk, whole);
    if (!tensor_core && n->pv_chunk != 1)
        return AT_FAIL(AT_USAGE, "numerics: pv_unit=%s with pv_chunk=%d, wanted 1: it adds key by key",
                       unit_names[n->pv_unit], n->pv_chunk);
    if (n->split % n->pv_chunk || n->block % n->pv_chunk)
        return AT_FAIL(AT_USAGE, "numerics: split=%d block=%d pv_chunk=%d, wanted split and block in whole chunks",
                       n->split, n->block, n->pv_chunk);
    if (tensor_core && n->pv_zero == AT_PV_ZERO_SKIPPED)
        return AT_FAIL(AT_USAGE, "numerics: pv_zero=skipped with pv_unit=%s, which multiplies whole blocks of keys",
                       unit_names[n->pv_unit]);
    return AT_OK;
}

at_status at_numerics_check(const struct at_numerics *numerics) {
    AT_TRY(check_names(numerics));
    AT_TRY(check_qk(numerics));
    AT_TRY(check_pv(numerics));
    if (numerics->guard != AT_GUARD_NONE && !is_f16_accumulator(numerics->qk_unit) &&
        !is_f16_accumulator(numerics->pv_unit))
        return AT_FAIL(AT_USAGE, "numerics: guard=%s with qk_unit=%s pv_unit=%s, wanted an f16 accumulator to guard",
                       guard_names[numerics->guard], unit_names[numerics->qk_unit], unit_names[numerics->pv_unit]);
    if (numerics->batch_invariant && !numerics->repeats)
        return AT_FAIL(AT_USAGE, "numerics: batch_invariant=1 with repeats=0; bits that change by themselves also "
                                 "change with the batch");
    return AT_OK;
}
