/* The file of claims, line by line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/reproduce/claim.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "datasets/language/expression.h"
#include "verify/reproduce/terms.h"

enum { LINE_BYTES = 1024 };

struct file {
    struct at_claims *claims;
    char where[256]; /* of the line being read */
};

static struct at_claim *last(const struct file *f) { return &f->claims->items[f->claims->n - 1]; }

static at_status copy(const char *text, char *to, size_t size, const char *key, const char *where) {
    if (*to)
        return AT_FAIL(AT_USAGE, "%s: found a second `%s`, wanted one a claim", where, key);
    if (strlen(text) >= size)
        return AT_FAIL(AT_USAGE, "%s: %s: found %zu bytes, wanted fewer than %zu", where, key, strlen(text), size);
    snprintf(to, size, "%s", text);
    return AT_OK;
}

static at_status begin(struct file *f, const char *id) {
    for (const char *c = id; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '-')
            return AT_FAIL(AT_USAGE, "%s: claim: found \"%.60s\", wanted small letters, digits and -", f->where, id);
    for (int i = 0; i < f->claims->n; i++)
        if (strcmp(f->claims->items[i].id, id) == 0)
            return AT_FAIL(AT_USAGE, "%s: claim %s: is there twice, first at %s", f->where, id,
                           f->claims->items[i].where);
    struct at_claim *grown = realloc(f->claims->items, ((size_t)f->claims->n + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory", f->where);
    f->claims->items = grown;
    struct at_claim *claim = &grown[f->claims->n++];
    memset(claim, 0, sizeof *claim);
    claim->figure = (double)NAN;
    snprintf(claim->where, sizeof claim->where, "%s", f->where);
    return copy(id, claim->id, sizeof claim->id, "claim", f->where);
}

static at_status read_source(struct file *f, const char *text) {
    char key[8] = "", section[24] = "", rest[2];
    if (sscanf(text, "%7s %23s %1s", key, section, rest) != 2)
        return AT_FAIL(AT_USAGE, "%s: source: found \"%.60s\", wanted a key and a section: 000 6.11", f->where, text);
    AT_TRY(copy(key, last(f)->source, sizeof last(f)->source, "source", f->where));
    return copy(section, last(f)->section, sizeof last(f)->section, "source", f->where);
}

/* The first n terms by name, with values[i]; NULL: 1 for each. */
struct known_terms {
    const struct at_claim *claim;
    const char *where;
    const double *values;
    int n;
};

static at_status term_value(const void *context, const char *at, int length, double *value) {
    const struct known_terms *known = context;
    for (int i = 0; i < known->n; i++) {
        const char *name = known->claim->terms[i].name;
        if ((int)strlen(name) != length || strncmp(name, at, (size_t)length) != 0)
            continue;
        *value = known->values ? known->values[i] : 1;
        return AT_OK;
    }
    return AT_FAIL(AT_USAGE, "%s: found \"%.*s\", wanted %s", known->where, length, at,
                   known->n ? "the name of a term of this claim" : "a number: this has no terms");
}

static at_status arithmetic(const char *text, const struct known_terms *known, double *value) {
    return at_expression_value(text, known->where, &(struct at_expression_names){ term_value, known }, value);
}

at_status at_claim_ours(const struct at_claim *claim, const double *values, double *value) {
    return arithmetic(claim->ours, &(struct known_terms){ claim, claim->where, values, claim->n_terms }, value);
}

/* "41.64 / 33.07 x": arithmetic, and a unit as its last word where that is no number. */
static at_status read_figure(struct file *f, const char *text) {
    struct at_claim *claim = last(f);
    AT_TRY(copy(text, claim->figure_text, sizeof claim->figure_text, "figure", f->where));
    char *unit = strrchr(claim->figure_text, ' ');
    if (unit && (isalpha((unsigned char)unit[1]) || unit[1] == '%')) {
        snprintf(claim->unit, sizeof claim->unit, "%s", unit + 1);
        *unit = 0;
    }
    return arithmetic(claim->figure_text, &(struct known_terms){ claim, f->where, NULL, 0 }, &claim->figure);
}

/* "NAME = KIND WORD..." */
static at_status read_term(struct file *f, char *text) {
    struct at_claim *claim = last(f);
    struct at_term *term = &claim->terms[claim->n_terms];
    char *save = NULL, *name = strtok_r(text, " \t", &save), *equals = strtok_r(NULL, " \t", &save);
    char *kind = strtok_r(NULL, " \t", &save);
    if (!kind || strcmp(equals, "=") != 0 || !isalpha((unsigned char)*name) || strlen(name) >= sizeof term->name)
        return AT_FAIL(AT_USAGE, "%s: let: found \"%.60s\", wanted NAME = KIND WORD...", f->where, name ? name : "");
    if (claim->n_terms == AT_CLAIM_TERMS)
        return AT_FAIL(AT_USAGE, "%s: let: wanted %d terms at most", f->where, AT_CLAIM_TERMS);
    for (int i = 0; i < claim->n_terms; i++)
        if (strcmp(claim->terms[i].name, name) == 0)
            return AT_FAIL(AT_USAGE, "%s: let: found a second '%s', wanted names of their own", f->where, name);
    snprintf(term->name, sizeof term->name, "%s", name);
    snprintf(term->where, sizeof term->where, "%s", f->where);
    AT_TRY(at_term_kind_find(kind, f->where, &term->kind));
    for (char *word; (word = strtok_r(NULL, " \t", &save)); term->n_words++) {
        if (term->n_words == AT_TERM_WORDS || strlen(word) >= sizeof term->words[0])
            return AT_FAIL(AT_USAGE, "%s: let: found \"%.40s\", wanted %d words at most, each shorter than %zu",
                           f->where, word, AT_TERM_WORDS, sizeof term->words[0]);
        snprintf(term->words[term->n_words], sizeof term->words[0], "%s", word);
    }
    claim->n_terms++;
    return term->kind->check(term);
}

static at_status read_rule(struct file *f, const char *text) {
    if (last(f)->n_rule)
        return AT_FAIL(AT_USAGE, "%s: found a second `rule`, wanted one a claim", f->where);
    return at_rule_parse(text, f->where, last(f));
}

static at_status read_line(struct file *f, char *line) {
    static const char *const keys[] = { "claim", "source", "what", "figure", "let", "ours", "rule", "unseen", "note" };
    enum { N_KEYS = sizeof keys / sizeof *keys };
    char *text = line + strcspn(line, " \t");
    if (*text)
        *text++ = 0;
    text += strspn(text, " \t");
    if (f->claims->n == 0 && strcmp(line, "claim") != 0)
        return AT_FAIL(AT_USAGE, "%s: found \"%.40s\" before the first `claim`", f->where, line);
    if (!*text)
        return AT_FAIL(AT_USAGE, "%s: found \"%.40s\" with nothing behind it", f->where, line);
    if (strcmp(line, "claim") == 0)
        return begin(f, text);
    struct at_claim *claim = last(f);
    if (strcmp(line, "source") == 0)
        return read_source(f, text);
    if (strcmp(line, "what") == 0)
        return copy(text, claim->what, sizeof claim->what, line, f->where);
    if (strcmp(line, "figure") == 0)
        return read_figure(f, text);
    if (strcmp(line, "let") == 0)
        return read_term(f, text);
    if (strcmp(line, "ours") == 0)
        return copy(text, claim->ours, sizeof claim->ours, line, f->where);
    if (strcmp(line, "rule") == 0)
        return read_rule(f, text);
    if (strcmp(line, "unseen") == 0)
        return copy(text, claim->unseen, sizeof claim->unseen, line, f->where);
    if (strcmp(line, "note") == 0)
        return copy(text, claim->note, sizeof claim->note, line, f->where);
    const char *near = at_nearest_name(line, keys, N_KEYS);
    return AT_FAIL(AT_USAGE,
                   "%s: found \"%.40s\"%s%s%s, wanted claim, source, what, figure, let, ours, rule, unseen or note",
                   f->where, line, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* A claim that has ended has all it needs, and its expression reads. */
static at_status whole(const struct at_claim *c) {
    double value;
    if (!*c->source || !*c->what)
        return AT_FAIL(AT_USAGE, "%s: claim %s: wanted a line `%s`", c->where, c->id, *c->source ? "what" : "source");
    if (*c->unseen) {
        if (*c->ours || c->n_terms || c->n_rule)
            return AT_FAIL(AT_USAGE, "%s: claim %s: found `unseen` beside `ours`, `let` or `rule`, wanted either",
                           c->where, c->id);
        return AT_OK;
    }
    if (!*c->ours || !c->n_rule)
        return AT_FAIL(AT_USAGE, "%s: claim %s: wanted a line `%s`, or `unseen` with the reason", c->where, c->id,
                       *c->ours ? "rule" : "ours");
    /* A figure typed here would never be measured again. */
    if (c->n_terms == 0)
        return AT_FAIL(AT_USAGE, "%s: claim %s: found no `let`, wanted ours to come from terms", c->where, c->id);
    return at_claim_ours(c, NULL, &value);
}

static at_status read_file(FILE *stream, const char *path, struct at_claims *claims) {
    struct file f = { .claims = claims };
    char line[LINE_BYTES];
    for (int number = 1; fgets(line, sizeof line, stream); number++) {
        snprintf(f.where, sizeof f.where, "%.240s:%d", path, number);
        size_t length = strlen(line);
        if (length == sizeof line - 1 && line[length - 1] != '\n')
            return AT_FAIL(AT_USAGE, "%s: found a line of more than %d bytes", f.where, LINE_BYTES - 2);
        while (length && isspace((unsigned char)line[length - 1]))
            line[--length] = 0;
        if (length == 0 || line[0] == '#')
            continue;
        if (claims->n && strcspn(line, " \t") == 5 && strncmp(line, "claim", 5) == 0)
            AT_TRY(whole(last(&f)));
        AT_TRY(read_line(&f, line));
    }
    if (ferror(stream))
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    if (claims->n == 0)
        return AT_FAIL(AT_USAGE, "%s: has no claims", path);
    return whole(last(&f));
}

at_status at_claims_load(const char *path, struct at_claims *claims) {
    *claims = (struct at_claims){ 0 };
    FILE *stream = fopen(path, "re");
    if (!stream)
        return AT_FAIL(AT_NOT_FOUND, "%s: %s", path, strerror(errno));
    const at_status status = read_file(stream, path, claims);
    fclose(stream);
    return status;
}

void at_claims_release(struct at_claims *claims) {
    free(claims->items);
    *claims = (struct at_claims){ 0 };
}
