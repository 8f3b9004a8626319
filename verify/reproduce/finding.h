/* Findings: each claim beside our figure, and what that says.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FINDING_H
#define AT_FINDING_H

#include <stdio.h>

#include "verify/reproduce/claim.h"
#include "verify/reproduce/evidence.h"

enum at_claim_verdict { AT_SUPPORTED, AT_REFUTED, AT_NOT_SEEN, AT_CLAIM_VERDICTS };
const char *at_claim_verdict_name(enum at_claim_verdict verdict);

struct at_finding {
    const struct at_claim *claim;
    enum at_claim_verdict verdict;
    double ours;                                       /* NaN: not seen */
    double values[AT_CLAIM_TERMS];                     /* of its terms, in order */
    char notes[AT_CLAIM_TERMS][160];                   /* what each was read from */
    char why[512];                                     /* refuted: what its rule misses; not seen: the reason */
    char file[256], device[160], date[16], commit[64]; /* where ours is from; "" where nobody says */
};

/* Of each claim whose chosen[i] is not 0, in order; the caller frees *findings. A claim whose rows no single archive has is not
 * seen; times of different runs are not compared. */
at_status at_findings_make(const struct at_claims *claims, const char *chosen, const struct at_evidence *evidence,
                           struct at_finding **findings, int *n);

void at_findings_table(const struct at_finding *findings, int n, FILE *out);
/* One object: counts, and a list of claims with everything a table leaves out. */
at_status at_findings_json(const struct at_finding *findings, int n, FILE *out);

#endif
