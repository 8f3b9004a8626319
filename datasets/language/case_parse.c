/* Case lines: words, alternatives, and their product.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_finish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/family_advice.h"
#include "attest/names.h"

enum { LINE_BYTES = 16384, MAX_KEYS = 64, MAX_PRODUCT = 4096 };

/* A key=value of the line and its alternatives: comma-separated texts, a..b among them. */
struct word {
    int key;
    char *value;
    int64_t n, chosen;
};

struct line_words {
    char text[LINE_BYTES]; /* cut into words in place */
    const char *where;
    const struct at_family *family;
    const struct at_op *op;
    int n;
    struct word words[MAX_KEYS];
};

/* a..b as two numbers. 1 if the text has that form. */
static int is_range(const char *text, size_t length, long long *from, long long *to) {
    char copy[64], *end;
    if (length >= sizeof copy)
        return 0;
    memcpy(copy, text, length);
    copy[length] = 0;
    char *dots = strstr(copy, "..");
    if (!dots || dots == copy || !dots[2])
        return 0;
    *dots = 0;
    errno = 0;
    *from = strtoll(copy, &end, 10);
    int whole = *end == 0;
    *to = strtoll(dots + 2, &end, 10);
    return whole && *end == 0 && errno == 0;
}

static int joins_commas(const char *name) {
    const struct at_key *key = at_key_find(name);
    return key && (key->kind == AT_KEY_HOT || key->kind == AT_KEY_REQUIRE || key->kind == AT_KEY_EXPECT);
}

static const char *name_of(const struct line_words *line, const struct word *word) { return line->op->keys[word->key]; }

/* Number of alternatives of a word; each comma part counts 1, a range its numbers. */
static at_status count_alternatives(const struct line_words *line, struct word *word) {
    const char *name = name_of(line, word);
    word->n = 1;
    if (joins_commas(name))
        return AT_OK;
    word->n = 0;
    for (const char *part = word->value;; part++) {
        size_t length = strcspn(part, ",");
        long long from, to, count = 1;
        if (is_range(part, length, &from, &to)) {
            if (to < from || from < -MAX_PRODUCT * 1000000LL || to - from >= MAX_PRODUCT)
                return AT_FAIL(AT_USAGE, "%s: %s: found %.*s, wanted FROM..TO, ascending, at most %d numbers",
                               line->where, name, (int)length, part, (int)MAX_PRODUCT);
            count = to - from + 1;
        }
        word->n += count;
        if (word->n > MAX_PRODUCT)
            return AT_FAIL(AT_USAGE, "%s: %s: more than %d values, wanted fewer", line->where, name, (int)MAX_PRODUCT);
        part += length;
        if (!*part)
            return AT_OK;
    }
}

/* Alternative i of a word as text. */
static void alternative(const struct line_words *line, const struct word *word, int64_t i, char *text, size_t size) {
    if (joins_commas(name_of(line, word))) {
        snprintf(text, size, "%s", word->value);
        return;
    }
    for (const char *part = word->value;; part += strcspn(part, ",") + 1) {
        size_t length = strcspn(part, ",");
        long long from, to;
        int range = is_range(part, length, &from, &to);
        int64_t count = range ? to - from + 1 : 1;
        if (i >= count) {
            i -= count;
            continue;
        }
        if (range)
            snprintf(text, size, "%lld", from + (long long)i);
        else
            snprintf(text, size, "%.*s", (int)length, part);
        return;
    }
}

/* The nearest of the operator's keys, or else of the language. */
static at_status unknown_key(const struct line_words *line, const char *name) {
    const char *names[2 * MAX_KEYS];
    int n = 0;
    for (int i = 0; n < MAX_KEYS && line->op->keys[i]; i++)
        names[n++] = line->op->keys[i];
    for (int i = 0; n < 2 * MAX_KEYS && at_key_name(i); i++)
        names[n++] = at_key_name(i);
    const char *nearest = at_nearest_name(name, names, n);
    return AT_FAIL(AT_USAGE, "%s: %.64s: unknown key%s%s%s, wanted one that `attest help cases` lists", line->where,
                   name, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static at_status read_word(struct line_words *line, char *text) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return AT_FAIL(AT_USAGE, "%s: found '%.64s', wanted key=value", line->where, text);
    *equals = 0;
    const int key = at_key_index(line->op, text);
    if (key < 0 && !at_key_is_known(text))
        return unknown_key(line, text);
    if (key < 0)
        return AT_FAIL(AT_USAGE, "%s: %s: %s does not take this key", line->where, text, line->family->name);
    for (int i = 0; i < line->n; i++)
        if (line->words[i].key == key)
            return AT_FAIL(AT_USAGE, "%s: %s: stands there twice, wanted once", line->where, text);
    struct word *word = &line->words[line->n++];
    *word = (struct word){ .key = key, .value = equals + 1 };
    return count_alternatives(line, word);
}

static at_status read_family(struct line_words *line, const char *name) {
    line->family = at_family_find(name);
    if (!line->family) {
        char advice[256];
        at_family_advice(name, advice, sizeof advice);
        return AT_FAIL(AT_USAGE, "%s: found '%.64s', wanted a kernel family%s (attest list families)", line->where,
                       name, advice);
    }
    line->op = at_op_find(line->family->op);
    return line->op ? AT_OK
                    : AT_FAIL(AT_BUG, "family %s names operator %s, which is not in the table", name, line->family->op);
}

/* The comment cut off and the rest cut into words; no family when there are none. */
static at_status read_line(const char *text, struct line_words *line) {
    size_t length = strcspn(text, "#\n");
    if (length >= sizeof line->text)
        return AT_FAIL(AT_USAGE, "%s: the line has %zu characters, wanted at most %zu", line->where, length,
                       sizeof line->text - 1);
    memcpy(line->text, text, length);
    line->text[length] = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line->text, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
        for (const char *c = word; *c; c++)
            if (*c < 33 || *c > 126)
                return AT_FAIL(AT_USAGE, "%s: found byte 0x%02x, wanted printable ASCII", line->where,
                               (unsigned)(unsigned char)*c);
        AT_TRY(line->family ? read_word(line, word) : read_family(line, word));
    }
    return AT_OK;
}

/* Room for one more case, zeroed, with its keys. */
static at_status grow(struct at_case_list *list, struct at_case **c) {
    if (list->n == list->capacity) {
        int64_t capacity = list->capacity ? list->capacity * 2 : 16;
        struct at_case *items = realloc(list->items, (size_t)capacity * sizeof *items);
        if (!items)
            return AT_FAIL(AT_NO_MEMORY, "a list of %lld cases", (long long)capacity);
        list->items = items;
        list->capacity = capacity;
    }
    *c = &list->items[list->n];
    memset(*c, 0, sizeof **c);
    (*c)->keys = calloc(1, sizeof *(*c)->keys);
    if (!(*c)->keys)
        return AT_FAIL(AT_NO_MEMORY, "the keys of a case");
    list->n++;
    return AT_OK;
}

static at_status add_case(const struct line_words *line, const char *role, struct at_case_list *list) {
    struct at_case *c = NULL;
    char text[LINE_BYTES];
    AT_TRY(grow(list, &c));
    c->family = line->family;
    c->op = c->keys->op = line->op;
    at_problem_init(&c->keys->own, line->op, AT_F32);
    snprintf(c->role, sizeof c->role, "%s", role);
    snprintf(c->where, sizeof c->where, "%s", line->where);
    for (int i = 0; i < line->n; i++) {
        const struct word *word = &line->words[i];
        alternative(line, word, word->chosen, text, sizeof text);
        c->keys->given |= (uint64_t)1 << word->key;
        AT_TRY(at_key_read(name_of(line, word), text, c));
    }
    AT_TRY(at_case_finish(c));
    return AT_OK;
}

/* The next combination, the rightmost word fastest; 0 after the last. */
static int next_combination(struct line_words *line) {
    for (int i = line->n - 1; i >= 0; i--) {
        if (++line->words[i].chosen < line->words[i].n)
            return 1;
        line->words[i].chosen = 0;
    }
    return 0;
}

static at_status expand(struct line_words *line, const char *role, struct at_case_list *list) {
    int64_t product = 1;
    for (int i = 0; i < line->n; i++) {
        product *= line->words[i].n;
        if (product > MAX_PRODUCT)
            return AT_FAIL(AT_USAGE, "%s: the line makes more than %d cases, wanted fewer", line->where,
                           (int)MAX_PRODUCT);
    }
    do
        AT_TRY(add_case(line, role, list));
    while (next_combination(line));
    return AT_OK;
}

static void truncate_list(struct at_case_list *list, int64_t n) {
    for (; list->n > n; list->n--)
        free(list->items[list->n - 1].keys);
}

at_status at_case_parse(const char *line, const char *role, const char *where, struct at_case_list *list) {
    struct line_words *words = calloc(1, sizeof *words);
    if (!words)
        return AT_FAIL(AT_NO_MEMORY, "the words of a case line");
    int64_t before = list->n;
    words->where = where;
    at_status status = AT_OK;
    AT_TRY_OUT(read_line(line, words));
    if (words->family)
        AT_TRY_OUT(expand(words, role, list));
out:
    if (status != AT_OK)
        truncate_list(list, before); /* a bad line leaves nothing behind */
    free(words);
    return status;
}

void at_case_list_release(struct at_case_list *list) {
    truncate_list(list, 0);
    free(list->items);
    *list = (struct at_case_list){ 0 };
}
