/* From evidence to a state: the one place where it is decided whether a kernel is right.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_VERDICT_H
#define AT_VERDICT_H

#include "verify/judge/aggregate.h"
#include "verify/judge/answer.h"
#include "verify/judge/compare.h"
#include "verify/judge/decoys.h"

/* Everything seen of one output tensor. */
struct at_evidence {
    const struct at_numerics *numerics;
    const struct at_answer *answer;
    const struct at_judgement *judgement;
    const struct at_comparison *comparison;
    const struct at_decoy_report *decoys;
    const struct at_aggregate *aggregate; /* NULL: not tested */
    int tensor;
    int64_t poison_read;        /* elements that changed when only the rows that nobody owns did */
    const char *dirty;          /* what hygiene found, NULL when clean */
    const char *other_data;     /* what was wrong on other data in the same memory, "" when nothing was */
    const char *required_inert; /* names of required decoys that count on no output of the case, "" for none */
};

/* Sets result->state, cause, judged_by_* from the evidence and the fields at_compare() and the reruns filled.
 * Order: DIRTY, RACY (rerun), WRONG (reads poison), WRONG, RACY (batch), MISPREDICTED, LAUNDERED, OVERFLOWED, SKIPPED
 * (nothing to compare), WRONG (on other data in the same memory), VACUOUS, PASS. */
void at_verdict(const struct at_evidence *evidence, struct at_result *result);

/* A likely cause of wrong elements in words: the decoy the output agrees with, else where the wrong ones lie. */
void at_explain_wrong(const struct at_evidence *evidence, char *text, size_t size);

#endif
