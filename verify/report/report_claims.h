/* Results by claim: by what a variant declares on the problem of a result, which may be one declaration for all problems or
 * another for each.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORT_CLAIMS_H
#define AT_REPORT_CLAIMS_H

#include "verify/result/hash_index.h"
#include "verify/result/record.h"

enum { AT_CLAIM_OUTPUTS = 16 };

/* One variant with one declaration. What a case proves it proves of this claim alone: a case on which a variant claims tightly
 * says nothing of those on which it claims loosely. */
struct at_claim_tally {
    int64_t variant;                   /* its number, by who adds */
    char *numerics;                    /* as declared, every field */
    int64_t judged;                    /* results */
    double resolves[AT_CLAIM_OUTPUTS]; /* by output: 0, or the smallest scale error that some case would have seen */
    int64_t n_loose;                   /* results that PASS with limits AT_LOOSE times those of f32 arithmetic */
    int is_loose[AT_CLAIM_OUTPUTS];    /* some of them are of this output */
    double loosest, need;              /* of these: the largest looseness, and of their errors over the limits of f32 */
};

/* All zeros is an empty one. Found by a hash table: a runner may declare something else on every problem. */
struct at_claim_tallies {
    struct at_claim_tally *list; /* in the order of their first results */
    int64_t n, capacity, last;
    struct at_hash_index index;
};

/* Counts a result of variant number `variant` under what was declared for it; one that was not judged is of no claim. */
at_status at_claim_tallies_add(struct at_claim_tallies *claims, int64_t variant, const struct at_result *result);
void at_claim_tallies_release(struct at_claim_tallies *claims);
/* Of outputs with a loose result the worst: the scale error that the sharpest case of this claim would have shown. 0: no result is
 * loose, or that error is small enough, or nothing is known. A claim that blind cases alone have met was never tested, also
 * where that is one small case: whoever declares by problem has one more claim for a case to test. */
double at_claim_tally_blind_to(const struct at_claim_tally *claim);
/* The declaration, fields at their defaults left out. */
void at_claim_tally_words(const struct at_claim_tally *claim, char *text, size_t size);
/* How sharply a variant's outputs are seen, of the one that is seen least sharply: by the sharpest case of all, but where
 * results of it are loose, by the sharpest case of the worst of those claims, which no other claim's case makes better. 0: nothing
 * is known. */
double at_claim_tallies_resolution(const struct at_claim_tallies *claims, int64_t variant);

#endif
