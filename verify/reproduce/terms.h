/* Terms of claims: where a number of ours comes from.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TERMS_H
#define AT_TERMS_H

#include "verify/reproduce/claim.h"
#include "verify/reproduce/evidence.h"
#include "verify/runner/runner.h"

/* A term's value, or why there is none. */
struct at_term_value {
    double value;   /* NaN: not seen */
    char why[384];  /* then */
    char note[160]; /* what it was read from or computed on, for the record */
};

/* What terms are made of: the measurements, and for what is computed a runner without a GPU, opened when first asked for. */
struct at_term_sources {
    const struct at_evidence *evidence;
    struct at_runner *simt;
};

struct at_term_kind {
    const char *name, *wants, *meaning;
    int measured; /* a row of an archive: those of a claim are of one run, whose times compare */
    int benched;  /* that run is a benchmark, and --runner can make it */
    int by_nvcc;  /* a row of the table of resources */
    /* When the claims are loaded: AT_USAGE with term->where for words that cannot be meant. */
    at_status (*check)(const struct at_term *term);
    /* `run` is the archive for a measured term, NULL for another. Not seen is a value, not a status. */
    at_status (*find)(struct at_term_sources *sources, const struct at_run_evidence *run, const struct at_term *term,
                      struct at_term_value *value);
};

/* Every kind; NULL ends the list. terms.c */
extern const struct at_term_kind *const at_term_kinds[];
/* AT_USAGE with the nearest name. */
at_status at_term_kind_find(const char *name, const char *where, const struct at_term_kind **kind);

/* Words [from, n_words) joined: a line of the case language. */
void at_term_line(const struct at_term *term, int from, char *text, size_t size);
/* AT_USAGE unless the term has `least` words or more. */
at_status at_term_want(const struct at_term *term, int least);
/* Is `name`/`variant` of the word FAMILY/VARIANT, and has the case all the keys of words [from, n_words)? */
int at_term_takes(const struct at_term *term, const char *family, const char *variant, const char *case_id);

extern const struct at_term_kind at_term_bench, at_term_row, at_term_sum, at_term_resource; /* measured */
extern const struct at_term_kind at_term_count, at_term_bytes, at_term_zeros, at_term_ledger, at_term_study,
    at_term_add, at_term_format;

#endif
