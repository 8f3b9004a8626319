/* Results by variant: counted as they come.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORT_VARIANTS_H
#define AT_REPORT_VARIANTS_H

#include <stdio.h>

#include "verify/report/report_claims.h"

/* All zeros is an empty one; found by a hash table, as a run may have a thousand variants and a million results. */
struct at_tallies {
    struct at_tally *list; /* in the order of their first results */
    int64_t n, capacity, last;
    struct at_hash_index index;
    struct at_claim_tallies claims; /* their `variant` is a number of `list` */
    int64_t n_aside;                /* variants that were set aside */
};

at_status at_tallies_add(struct at_tallies *tallies, const struct at_result *result, int strict);
/* Of all results of a record, for reports of what no result says: none unless the run is a strict one, whole and at its end.
 * Release it in either case. */
at_status at_tallies_open(const struct at_run_record *record, int strict, struct at_tallies *tallies);
void at_tallies_release(struct at_tallies *tallies);
/* FAMILY/VARIANT of number i of `n`. */
void at_tallies_name(const struct at_tallies *tallies, int64_t i, char *text, size_t size);
/* Variants that were never judged. */
int64_t at_tallies_unjudged(const struct at_tallies *tallies);
/* Loose claims of which no case would have shown a uniform scale error of 1/AT_SCALE_SEEN (at_claim_tally_blind_to()). */
int64_t at_tallies_blind(const struct at_tallies *tallies);

/* What fails a whole strict run though no result does. */
struct at_untested {
    const char *family, *variant, *path;
    const char *what;     /* UNJUDGED: a variant that no case could judge; UNTESTED: a claim that is blind as above */
    const char *declared; /* the claim in words; of a variant "" */
    const char *text;
};
typedef at_status at_untested_fn(void *context, const struct at_untested *untested);
/* All of them, variants first; ends at the first status that is not AT_OK. */
at_status at_tallies_untested(const struct at_tallies *tallies, at_untested_fn *put, void *context);
/* A line for each variant, when there are more than a couple: results judged, right, failing, VACUOUS, declined, the largest
 * error over limit, and at_claim_tallies_resolution(). */
void at_put_variants(const struct at_tallies *tallies, FILE *out);
/* A line for each selected variant that was never judged, with the first reason. */
void at_put_unjudged(const struct at_tallies *tallies, FILE *out);
/* A line for each claim whose PASS leaves much open, by its loosest result; whether f32 arithmetic would have been
 * claim enough, and whether no case would have shown a scale error, which a `strict` run does not let pass. Of a variant that has
 * many, lines for the first and a count of the others. */
void at_put_loose(const struct at_tallies *tallies, int strict, FILE *out);
/* A line for each variant that was set aside: after what, and how many of its jobs were not run. */
void at_put_set_aside(const struct at_tallies *tallies, FILE *out);

#endif
