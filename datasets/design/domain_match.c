/* Which classes of a domain a line is made of.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "datasets/design/domain_draw.h"
#include "datasets/design/domain_words.h"

struct match {
    const struct at_domain *domain;
    struct at_words line;              /* its words, then the $names as they are assumed */
    uint32_t known[AT_DOMAIN_FACTORS]; /* classes of factors without braces: the same for all values of $names */
    at_status (*each)(void *context, const uint32_t *has);
    void *context;
};

/* Is `text` a value that a word of a class may be drawn as? */
static int value_fits(const struct match *m, const struct at_word *word, const char *text) {
    char part[AT_WORD_VALUE], value[AT_WORD_VALUE];
    for (int i = 0; i < at_word_choices(word->key, word->value); i++) {
        size_t length;
        const char *choice = at_word_choice(word->key, word->value, i, &length);
        memcpy(part, choice, length);
        part[length] = 0;
        if (at_words_evaluate(&m->line, part, value, sizeof value) && strcmp(value, text) == 0)
            return 1;
    }
    return 0;
}

/* The line's words of all keys that the factor has must be those of the piece, and no others. */
static int piece_fits(const struct match *m, const struct at_family_factor *f, const char *piece, size_t length) {
    struct at_words words = { 0 }, all = { 0 };
    if (at_words_read(piece, length, &words) != AT_OK)
        return 0;
    for (int i = 0; i < words.n; i++) {
        const char *text = at_words_get(&m->line, words.items[i].key);
        if (!text || !value_fits(m, &words.items[i], text))
            return 0;
    }
    for (int c = 0; c < f->n + f->n_far; c++) {
        all.n = 0;
        for (const char *at = f->classes[c], *bar; at; at = bar ? bar + 3 : NULL) {
            bar = strstr(at, " | ");
            if (at_words_read(at, bar ? (size_t)(bar - at) : strlen(at), &all) != AT_OK)
                return 0;
        }
        for (int i = 0; i < all.n; i++)
            if (at_words_get(&m->line, all.items[i].key) && !at_words_get(&words, all.items[i].key))
                return 0;
    }
    return 1;
}

static int class_fits(const struct match *m, const struct at_family_factor *f, int class) {
    for (const char *at = f->classes[class], *bar; at; at = bar ? bar + 3 : NULL) {
        bar = strstr(at, " | ");
        if (piece_fits(m, f, at, bar ? (size_t)(bar - at) : strlen(at)))
            return 1;
    }
    return 0;
}

static uint32_t classes_that_fit(const struct match *m, int f) {
    const struct at_family_factor *factor = &m->domain->factors[f];
    uint32_t has = 0;
    for (int c = 0; c < factor->n + factor->n_far; c++)
        has |= (uint32_t)class_fits(m, factor, c) << c;
    return has;
}

static int has_braces(const struct at_family_factor *f) {
    int some = 0;
    for (int c = 0; c < f->n + f->n_far; c++)
        some |= strchr(f->classes[c], '{') != NULL;
    return some;
}

static int is_hidden(const struct at_family_factor *f) { return f->classes[0][0] == '$'; }

/* Tries every value of the $names from factor i on; a factor of $names has one in each class. */
static at_status solve(struct match *m, int i) {
    uint32_t has[AT_DOMAIN_FACTORS] = { 0 };
    for (; i < m->domain->n && !is_hidden(&m->domain->factors[i]); i++)
        continue;
    if (i < m->domain->n) {
        const struct at_family_factor *f = &m->domain->factors[i];
        const int before = m->line.n;
        struct at_words words = { 0 };
        for (int c = 0; c < f->n + f->n_far; c++) {
            words.n = 0;
            AT_TRY(at_words_read(f->classes[c], strlen(f->classes[c]), &words));
            for (int k = 0; k < at_word_choices(words.items[0].key, words.items[0].value); k++) {
                size_t length;
                const char *choice = at_word_choice(words.items[0].key, words.items[0].value, k, &length);
                struct at_word *word = &m->line.items[m->line.n++];
                *word = words.items[0];
                memcpy(word->value, choice, length);
                word->value[length] = 0;
                AT_TRY(solve(m, i + 1));
                m->line.n = before;
            }
        }
        return AT_OK;
    }
    for (int f = 0; f < m->domain->n; f++) {
        has[f] = m->known[f] ? m->known[f] : classes_that_fit(m, f);
        if (!has[f])
            return AT_OK; /* no instance with these values */
    }
    return m->each(m->context, has);
}

at_status at_domain_match(const struct at_domain *domain, const char *line,
                          at_status (*each)(void *context, const uint32_t *has), void *context) {
    struct match m = { .domain = domain, .each = each, .context = context };
    const size_t name = strcspn(line, " ");
    if (strlen(domain->family->name) != name || strncmp(domain->family->name, line, name) != 0)
        return AT_OK;
    AT_TRY(at_words_read(line + name, strlen(line + name), &m.line));
    for (int f = 0; f < domain->n; f++)
        if (!has_braces(&domain->factors[f]) && !is_hidden(&domain->factors[f])) {
            m.known[f] = classes_that_fit(&m, f);
            if (!m.known[f])
                return AT_OK;
        }
    return solve(&m, 0);
}
