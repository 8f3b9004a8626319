/* Claims of the sources: what is said, the source's figure, how ours is obtained, and when that supports it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * datasets/bench/claims.txt has them and describes the format in its head. Nothing of ours is in a claim: `let` lines name
 * terms, each a row of a measurement or a computation, and `ours` is arithmetic on them. */
#ifndef AT_CLAIM_H
#define AT_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include "attest/status.h"

enum { AT_CLAIM_TERMS = 12, AT_TERM_WORDS = 24, AT_CLAIM_CONDITIONS = 4 };

struct at_term_kind; /* terms.h */

/* `let NAME = KIND WORD...`: a number of ours. */
struct at_term {
    char name[16];
    const struct at_term_kind *kind;
    char words[AT_TERM_WORDS][160]; /* behind the kind */
    int n_words;
    char where[256]; /* FILE:LINE */
};

/* What `rule` may ask of our figure. */
enum at_condition_kind { AT_ABOVE, AT_BELOW, AT_WITHIN, AT_BETWEEN, AT_EQUALS };
struct at_condition {
    enum at_condition_kind kind;
    double a, b; /* within: a factor; between: both ends; else a alone */
};

struct at_claim {
    char id[48], source[8], section[24], what[256], note[320], unit[16];
    char figure_text[128];
    double figure; /* the source's; NaN: it gives none */
    struct at_term terms[AT_CLAIM_TERMS];
    int n_terms;
    char ours[256]; /* an expression over the terms' names; "" with `unseen` */
    struct at_condition rule[AT_CLAIM_CONDITIONS];
    int n_rule;
    char unseen[256]; /* why no measurement of ours can speak of it; "" otherwise */
    char where[256];  /* FILE:LINE of its first line */
};

struct at_claims {
    struct at_claim *items;
    int n;
};

/* AT_USAGE with file and line, what was found and what is wanted: an unknown key, kind or name, an id that is there twice, a
 * claim without what it needs, an expression that cannot be read. */
at_status at_claims_load(const char *path, struct at_claims *claims);

/* What the claim's expression comes to, where values[i] is that of its term i; NULL: 1 for each. AT_USAGE as of
 * at_expression_value(). */
at_status at_claim_ours(const struct at_claim *claim, const double *values, double *value);
void at_claims_release(struct at_claims *claims);

/* "above 1.5 and within 2" into `claim`; `where` is for messages. claims_rule.c */
at_status at_rule_parse(const char *text, const char *where, struct at_claim *claim);
/* Whether `ours` meets every condition; if not, `why` says which it misses. A NaN meets none. */
int at_rule_meets(const struct at_claim *claim, double ours, char *why, size_t size);
/* The rule in words, as it was written. */
void at_rule_put(const struct at_claim *claim, char *text, size_t size);

#endif
