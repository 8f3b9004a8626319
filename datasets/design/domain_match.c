/* Which classes of a domain a line is made of.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "datasets/design/domain_draw.h"
#include "datasets/design/domain_words.h"

/* Keys that are a factor's: those of its ordinary classes, and of its far ones what no other factor's ordinary classes have.
 * Far classes may have more words (three queries behind 2049 keys): the factor that such a key belongs to has none then. */
struct own_keys {
    int n;
    char keys[16][32];
};

struct match {
    const struct at_domain *domain;
    struct own_keys own[AT_DOMAIN_FACTORS];
    uint32_t shared[AT_DOMAIN_FACTORS]; /* far classes that have words of other factors */
    struct at_words line;               /* its words, then the $names as they are assumed */
    uint32_t known[AT_DOMAIN_FACTORS];  /* classes of factors without braces: the same for all values of $names */
    int far_factor, far_class; /* the line is taken for one of this class, which has words of other factors; or -1 */
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

/* The next of the pieces between " | ", NULL after the last; the first with at = NULL. */
static const char *next_piece(const char *class, const char *at, size_t *length) {
    if (!at)
        at = class;
    else if (!(at = strstr(at, " | ")))
        return NULL;
    else
        at += 3;
    const char *bar = strstr(at, " | ");
    *length = bar ? (size_t)(bar - at) : strlen(at);
    return at;
}

/* ---- whose key is it? ---- */

static int owns(const struct own_keys *own, const char *key) {
    for (int i = 0; i < own->n; i++)
        if (strcmp(own->keys[i], key) == 0)
            return 1;
    return 0;
}

/* The keys of a class; but >= 0: without those of factors other than this. */
static at_status add_keys(const struct match *m, const char *class, int but, struct own_keys *own) {
    size_t length;
    for (const char *at = next_piece(class, NULL, &length); at; at = next_piece(class, at, &length)) {
        struct at_words words;
        words.n = 0;
        AT_TRY(at_words_read(at, length, &words));
        for (int i = 0; i < words.n; i++) {
            int known = owns(own, words.items[i].key);
            for (int f = 0; f < m->domain->n && but >= 0; f++)
                known |= f != but && owns(&m->own[f], words.items[i].key);
            if (known)
                continue;
            if (own->n == (int)(sizeof own->keys / sizeof *own->keys))
                return AT_FAIL(AT_BUG, "a factor of more than %d keys", own->n);
            memcpy(own->keys[own->n++], words.items[i].key, sizeof *own->keys);
        }
    }
    return AT_OK;
}

static at_status find_keys(struct match *m) {
    const struct at_family_factor *factors = m->domain->factors;
    for (int f = 0; f < m->domain->n; f++)
        for (int c = 0; c < factors[f].n; c++)
            AT_TRY(add_keys(m, factors[f].classes[c], -1, &m->own[f]));
    for (int f = 0; f < m->domain->n; f++)
        for (int c = factors[f].n; c < factors[f].n + factors[f].n_far; c++)
            AT_TRY(add_keys(m, factors[f].classes[c], f, &m->own[f]));
    for (int f = 0; f < m->domain->n; f++)
        for (int c = factors[f].n; c < factors[f].n + factors[f].n_far; c++) {
            struct own_keys all = m->own[f];
            AT_TRY(add_keys(m, factors[f].classes[c], -1, &all));
            m->shared[f] |= (uint32_t)(all.n > m->own[f].n) << c;
        }
    return AT_OK;
}

/* ---- does a class fit? ---- */

/* The line's words of all keys that are the factor's must be those of the piece, and no others. */
static int piece_fits(const struct match *m, int f, const char *piece, size_t length) {
    struct at_words words;
    words.n = 0;
    if (at_words_read(piece, length, &words) != AT_OK)
        return 0;
    for (int i = 0; i < words.n; i++) {
        const char *text = at_words_get(&m->line, words.items[i].key);
        if (!text || !value_fits(m, &words.items[i], text))
            return 0;
    }
    for (int i = 0; i < m->own[f].n; i++)
        if (at_words_get(&m->line, m->own[f].keys[i]) && !at_words_get(&words, m->own[f].keys[i]))
            return 0;
    return 1;
}

static int class_fits(const struct match *m, int f, int class) {
    const char *text = m->domain->factors[f].classes[class];
    size_t length;
    for (const char *at = next_piece(text, NULL, &length); at; at = next_piece(text, at, &length))
        if (piece_fits(m, f, at, length))
            return 1;
    return 0;
}

static uint32_t classes_that_fit(const struct match *m, int f) {
    const struct at_family_factor *factor = &m->domain->factors[f];
    uint32_t has = 0;
    if (f == m->far_factor)
        return (uint32_t)1 << m->far_class;
    for (int c = 0; c < factor->n + factor->n_far; c++)
        has |= (uint32_t)(!(m->shared[f] >> c & 1) && class_fits(m, f, c)) << c;
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

static at_status match_line(struct match *m) {
    for (int f = 0; f < m->domain->n; f++) {
        m->known[f] = 0;
        if (has_braces(&m->domain->factors[f]) || is_hidden(&m->domain->factors[f]))
            continue;
        m->known[f] = classes_that_fit(m, f);
        if (!m->known[f])
            return AT_OK;
    }
    return solve(m, 0);
}

/* The line as one of a far class with words of other factors, which do not see those. */
static at_status match_far(struct match *m, int f, int class) {
    const struct at_words whole = m->line;
    struct own_keys all = m->own[f];
    AT_TRY(add_keys(m, m->domain->factors[f].classes[class], -1, &all));
    m->line.n = 0;
    for (int i = 0; i < whole.n; i++)
        if (!owns(&all, whole.items[i].key) || owns(&m->own[f], whole.items[i].key))
            m->line.items[m->line.n++] = whole.items[i];
    m->far_factor = f;
    m->far_class = class;
    const at_status status = match_line(m);
    m->far_factor = -1;
    m->line = whole;
    return status;
}

at_status at_domain_match(const struct at_domain *domain, const char *line,
                          at_status (*each)(void *context, const uint32_t *has), void *context) {
    struct match m = { .domain = domain, .each = each, .context = context, .far_factor = -1 };
    const size_t name = strcspn(line, " ");
    if (strlen(domain->family->name) != name || strncmp(domain->family->name, line, name) != 0)
        return AT_OK;
    AT_TRY(at_words_read(line + name, strlen(line + name), &m.line));
    AT_TRY(find_keys(&m));
    AT_TRY(match_line(&m));
    for (int f = 0; f < domain->n; f++)
        for (int c = domain->factors[f].n; c < domain->factors[f].n + domain->factors[f].n_far; c++)
            if (m.shared[f] >> c & 1 && class_fits(&m, f, c))
                AT_TRY(match_far(&m, f, c));
    return AT_OK;
}
