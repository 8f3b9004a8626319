/* Drawing classes into the words of a line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/design/domain_draw.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/language/case_keys.h"

enum { MAX_WORDS = 64, WORD = 256 };

int64_t at_draw_below(struct at_draws *draws, int64_t n) {
    return at_random_below(&draws->random, draws->next++, n);
}

/* ---- the factors of a family ---- */

static int takes(const struct at_family *family, const struct at_factor *factor) {
    const unsigned only = factor->flags & (AT_FACTOR_DECODE | AT_FACTOR_PREFILL);
    return !only || (only & (family->decode ? AT_FACTOR_DECODE : AT_FACTOR_PREFILL));
}

static at_status add_class(struct at_family_factor *f, const char *text, int far) {
    if (f->n + f->n_far == AT_DOMAIN_CLASSES)
        return AT_FAIL(AT_BUG, "factor %s has more than %d classes", f->factor->name, (int)AT_DOMAIN_CLASSES);
    f->classes[f->n + f->n_far] = text;
    if (far)
        f->n_far++;
    else
        f->n++;
    return AT_OK;
}

static int by_size(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Granules that are no class yet, the smallest first. */
static at_status add_granules(struct at_domain *domain, struct at_family_factor *f, const int64_t *granules, int n) {
    int64_t sorted[AT_DOMAIN_CLASSES];
    n = n < AT_DOMAIN_CLASSES ? n : AT_DOMAIN_CLASSES;
    memcpy(sorted, granules, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    for (int i = 0; i < n; i++) {
        int known = 0;
        snprintf(domain->granules[i], sizeof domain->granules[i], "$keys=%lld", (long long)sorted[i]);
        for (int c = 0; c < f->n; c++)
            known |= strcmp(f->classes[c], domain->granules[i]) == 0;
        if (!known)
            AT_TRY(add_class(f, domain->granules[i], 0));
    }
    return AT_OK;
}

at_status at_domain_open(const struct at_family *family, const int64_t *granules, int n, struct at_domain *domain) {
    *domain = (struct at_domain){ .family = family, .op = at_op_find(family->op) };
    const struct at_factor *const *from = domain->op ? domain->op->domain : NULL;
    if (!from)
        return AT_FAIL(AT_UNSUPPORTED, "operator %s declares no domain", family->op);
    for (; *from; from++) {
        if (!takes(family, *from))
            continue;
        if (domain->n == AT_DOMAIN_FACTORS)
            return AT_FAIL(AT_BUG, "operator %s has more than %d factors", family->op, (int)AT_DOMAIN_FACTORS);
        struct at_family_factor *f = &domain->factors[domain->n++];
        f->factor = *from;
        for (int c = 0; (*from)->classes[c]; c++)
            AT_TRY(add_class(f, (*from)->classes[c], 0));
        if ((*from)->flags & AT_FACTOR_GRANULES)
            AT_TRY(add_granules(domain, f, granules, n));
        for (int c = 0; (*from)->far && (*from)->far[c]; c++)
            AT_TRY(add_class(f, (*from)->far[c], 1));
    }
    return AT_OK;
}

/* ---- words ---- */

/* key=value, or $name=number with the $ in `key`. */
struct word {
    char key[32], value[WORD];
};
struct words {
    int n;
    struct word items[MAX_WORDS];
};

/* One of the pieces between " | ", its length. */
static const char *pick_piece(const char *text, struct at_draws *draws, size_t *length) {
    int n = 1;
    for (const char *at = text; (at = strstr(at, " | ")); at += 3)
        n++;
    for (int64_t skip = n > 1 ? at_draw_below(draws, n) : 0; skip > 0; skip--)
        text = strstr(text, " | ") + 3;
    const char *end = strstr(text, " | ");
    *length = end ? (size_t)(end - text) : strlen(text);
    return text;
}

/* a..b: its ends are drawn a quarter of the time each. */
static int draw_range(const char *part, size_t length, struct at_draws *draws, char *out, size_t size) {
    long long from, to;
    int used = 0;
    if (sscanf(part, "%lld..%lld%n", &from, &to, &used) != 2 || (size_t)used != length || to < from)
        return 0;
    const int64_t turn = at_draw_below(draws, 4);
    const long long value = turn == 0 ? from : turn == 1 ? to : from + (long long)at_draw_below(draws, to - from + 1);
    snprintf(out, size, "%lld", value);
    return 1;
}

static int is_one_value(const char *key) {
    const struct at_key *known = at_key_find(key);
    return known && (known->kind == AT_KEY_HOT || known->kind == AT_KEY_REQUIRE || known->kind == AT_KEY_EXPECT);
}

/* One value of a list with commas. */
static void draw_value(const char *key, const char *text, size_t length, struct at_draws *draws, char *out, size_t size) {
    const char *end = text + length;
    int64_t n = 1;
    for (const char *c = text; c < end && !is_one_value(key); c++)
        n += *c == ',';
    for (int64_t skip = n > 1 ? at_draw_below(draws, n) : 0; skip > 0; skip--)
        text = strchr(text, ',') + 1;
    const char *comma = n > 1 ? memchr(text, ',', (size_t)(end - text)) : NULL;
    length = (size_t)((comma ? comma : end) - text);
    if (!draw_range(text, length, draws, out, size))
        snprintf(out, size, "%.*s", (int)length, text);
}

static at_status add_words(const struct at_family_factor *f, int class, struct at_draws *draws, struct words *words) {
    size_t left;
    const char *piece = pick_piece(class == AT_DOMAIN_ANY ? f->factor->any : f->classes[class], draws, &left);
    while (left > 0) {
        const size_t length = strcspn(piece, " ") < left ? strcspn(piece, " ") : left;
        const char *equals = memchr(piece, '=', length);
        if (length && (!equals || words->n == MAX_WORDS || (size_t)(equals - piece) >= sizeof words->items->key))
            return AT_FAIL(AT_BUG, "factor %s: found '%.*s', wanted key=value", f->factor->name, (int)length, piece);
        if (length) {
            struct word *word = &words->items[words->n++];
            snprintf(word->key, sizeof word->key, "%.*s", (int)(equals - piece), piece);
            draw_value(word->key, equals + 1, length - (size_t)(equals - piece) - 1, draws, word->value, WORD);
        }
        piece += length;
        left -= length;
        while (left > 0 && *piece == ' ') {
            piece++;
            left--;
        }
    }
    return AT_OK;
}

/* ---- {expressions} ---- */

static int number_of(const struct words *words, const char *name, size_t length, long long *value) {
    char *end;
    for (int i = 0; i < words->n; i++) {
        const struct word *word = &words->items[i];
        const char *key = word->key + (word->key[0] == '$');
        if (strlen(key) != length || strncmp(key, name, length) != 0)
            continue;
        *value = strtoll(word->value, &end, 10);
        return *end == 0 && end != word->value;
    }
    return 0;
}

/* NUMBER or NAME, from *text on. */
static int factor_value(const struct words *words, const char **text, long long *value) {
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

static int product_value(const struct words *words, const char **text, long long *value) {
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
static int sum_value(const struct words *words, const char **text, long long *value) {
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

/* NAME:a:b up to the brace: as many of a, b, a, ... as NAME says. */
static int repeated(const struct words *words, const char *text, size_t length, char *out, size_t size) {
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
static int evaluate(const struct words *words, const char *value, char *out, size_t size) {
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

at_status at_domain_line(const struct at_domain *domain, const int *classes, struct at_draws *draws, char *line,
                         size_t size) {
    struct words words = { 0 };
    char value[WORD];
    for (int i = 0; i < domain->n; i++)
        AT_TRY(add_words(&domain->factors[i], classes[i], draws, &words));
    size_t used = (size_t)snprintf(line, size, "%s", domain->family->name);
    for (int i = 0; i < words.n; i++) {
        const struct word *word = &words.items[i];
        if (word->key[0] == '$')
            continue;
        if (!evaluate(&words, word->value, value, sizeof value))
            return AT_FAIL(AT_USAGE, "%s=%s: wanted names that have one number", word->key, word->value);
        used += (size_t)snprintf(line + used, used < size ? size - used : 0, " %s=%s", word->key, value);
        if (used >= size)
            return AT_FAIL(AT_USAGE, "a line of more than %zu characters", size);
    }
    return AT_OK;
}
