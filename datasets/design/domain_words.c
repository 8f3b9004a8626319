/* Reading words, and evaluating what stands in braces.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/design/domain_words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/language/case_keys.h"

at_status at_words_read(const char *text, size_t n, struct at_words *words) {
    while (n > 0) {
        const size_t length = strcspn(text, " \n") < n ? strcspn(text, " \n") : n;
        const char *equals = memchr(text, '=', length);
        if (length > 0) {
            if (!equals || words->n == AT_WORDS || (size_t)(equals - text) >= sizeof words->items->key ||
                length >= AT_WORD_VALUE)
                return AT_FAIL(AT_USAGE, "found '%.*s', wanted key=value", (int)length, text);
            struct at_word *word = &words->items[words->n++];
            snprintf(word->key, sizeof word->key, "%.*s", (int)(equals - text), text);
            snprintf(word->value, sizeof word->value, "%.*s", (int)(length - (size_t)(equals - text) - 1), equals + 1);
        }
        text += length;
        n -= length;
        while (n > 0 && (*text == ' ' || *text == '\n')) {
            text++;
            n--;
        }
    }
    return AT_OK;
}

const char *at_words_get(const struct at_words *words, const char *key) {
    for (int i = 0; i < words->n; i++)
        if (strcmp(words->items[i].key, key) == 0)
            return words->items[i].value;
    return NULL;
}

static int is_one_value(const char *key, const char *value) {
    const struct at_key *known = strchr(value, ',') ? at_key_find(key) : NULL; /* keys are searched one by one */
    return known && (known->kind == AT_KEY_HOT || known->kind == AT_KEY_REQUIRE || known->kind == AT_KEY_EXPECT);
}

int at_word_choices(const char *key, const char *value) {
    int n = 1;
    if (!is_one_value(key, value))
        for (const char *c = value; *c; c++)
            n += *c == ',';
    return n;
}

const char *at_word_choice(const char *key, const char *value, int i, size_t *length) {
    for (; i > 0; i--)
        value = strchr(value, ',') + 1;
    *length = is_one_value(key, value) ? strlen(value) : strcspn(value, ",");
    return value;
}

/* ---- {expressions} ---- */

static int number_of(const struct at_words *words, const char *name, size_t length, long long *value) {
    char *end;
    for (int i = 0; i < words->n; i++) {
        const struct at_word *word = &words->items[i];
        const char *key = word->key + (word->key[0] == '$');
        if (strlen(key) != length || strncmp(key, name, length) != 0)
            continue;
        *value = strtoll(word->value, &end, 10);
        return *end == 0 && end != word->value;
    }
    return 0;
}

/* NUMBER or NAME, from *text on. */
static int factor_value(const struct at_words *words, const char **text, long long *value) {
    const char *from = *text;
    char *end;
    if (isdigit((unsigned char)*from)) {
        *value = strtoll(from, &end, 10);
        *text = end;
        return 1;
    }
    while (isalnum((unsigned char)**text) || **text == '_')
        ++*text;
    return number_of(words, from, (size_t)(*text - from), value);
}

static int product_value(const struct at_words *words, const char **text, long long *value) {
    long long more;
    if (!factor_value(words, text, value))
        return 0;
    while (**text == '*') {
        ++*text;
        if (!factor_value(words, text, &more))
            return 0;
        *value *= more;
    }
    return 1;
}

/* Sums and differences of products, up to the closing brace. */
static int sum_value(const struct at_words *words, const char **text, long long *value) {
    long long more;
    if (!product_value(words, text, value))
        return 0;
    while (**text == '+' || **text == '-') {
        const int minus = *(*text)++ == '-';
        if (!product_value(words, text, &more))
            return 0;
        *value += minus ? -more : more;
    }
    return **text == '}';
}

/* "h:0.5:2" up to the brace: as many of 0.5, 2, 0.5, ... as h says. */
static int repeated(const struct at_words *words, const char *text, size_t length, char *out, size_t size) {
    const size_t name = strcspn(text, ":");
    long long n;
    size_t used = 0;
    const char *list = text + name + 1, *at = list, *end = text + length;
    if (!number_of(words, text, name, &n))
        return 0;
    for (long long i = 0; i < n; i++) {
        const size_t part = strcspn(at, ":}");
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", i ? ":" : "", (int)part, at);
        if (used >= size)
            return 0;
        at = at + part == end ? list : at + part + 1;
    }
    return 1;
}

/* Replaces what stands in braces. 0: a name without a number. */
int at_words_evaluate(const struct at_words *words, const char *value, char *out, size_t size) {
    size_t used = 0;
    while (*value) {
        if (used + 1 >= size)
            return 0;
        if (*value != '{') {
            out[used++] = *value++;
            continue;
        }
        const char *text = ++value, *end = strchr(text, '}');
        long long number;
        if (!end)
            return 0;
        if (memchr(text, ':', (size_t)(end - text))) {
            if (!repeated(words, text, (size_t)(end - text), out + used, size - used))
                return 0;
        } else if (!sum_value(words, &text, &number) || snprintf(out + used, size - used, "%lld", number) < 0) {
            return 0;
        }
        used += strlen(out + used);
        value = end + 1;
    }
    out[used] = 0;
    return 1;
}
