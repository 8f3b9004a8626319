/* Drawing classes into the words of a line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/design/domain_draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/design/domain_words.h"

int64_t at_draw_below(struct at_draws *draws, int64_t n) { return at_random_below(&draws->random, draws->next++, n); }

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
    if (n > 0)
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

/* ---- drawing ---- */

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

/* One value of a list with commas, in place. */
static void draw_value(struct at_word *word, struct at_draws *draws) {
    char drawn[AT_WORD_VALUE];
    const int n = at_word_choices(word->key, word->value);
    size_t length;
    const char *text = at_word_choice(word->key, word->value, n > 1 ? (int)at_draw_below(draws, n) : 0, &length);
    if (!draw_range(text, length, draws, drawn, sizeof drawn))
        snprintf(drawn, sizeof drawn, "%.*s", (int)length, text);
    memcpy(word->value, drawn, sizeof drawn);
}

static at_status add_words(const struct at_family_factor *f, int class, struct at_draws *draws,
                           struct at_words *words) {
    size_t length;
    const char *piece = pick_piece(class == AT_DOMAIN_ANY ? f->factor->any : f->classes[class], draws, &length);
    const int before = words->n;
    AT_TRY(at_words_read(piece, length, words));
    for (int i = before; i < words->n; i++)
        draw_value(&words->items[i], draws);
    return AT_OK;
}

at_status at_domain_line(const struct at_domain *domain, const int *classes, struct at_draws *draws, char *line,
                         size_t size) {
    struct at_words words = { 0 };
    char value[AT_WORD_VALUE];
    for (int i = 0; i < domain->n; i++)
        AT_TRY(add_words(&domain->factors[i], classes[i], draws, &words));
    size_t used = (size_t)snprintf(line, size, "%s", domain->family->name);
    for (int i = 0; i < words.n; i++) {
        const struct at_word *word = &words.items[i];
        if (word->key[0] == '$')
            continue;
        if (!at_words_evaluate(&words, word->value, value, sizeof value))
            return AT_FAIL(AT_USAGE, "%s=%s: wanted names that have one number", word->key, word->value);
        used += (size_t)snprintf(line + used, used < size ? size - used : 0, " %s=%s", word->key, value);
        if (used >= size)
            return AT_FAIL(AT_USAGE, "a line of more than %zu characters", size);
    }
    return AT_OK;
}
