/* Two runs side by side: which jobs got worse, which better.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COMPARE_RUNS_H
#define AT_COMPARE_RUNS_H

#include "verify/result/record.h"

/* What became of a job, a variant on a case, from run A to run B. */
enum at_change {
    AT_CHANGE_NONE,
    AT_CHANGE_WORSE, /* its state, the bits of its model, or an error that has come so many times nearer to its limit */
    AT_CHANGE_BETTER, /* the reverse */
    AT_CHANGE_GONE,   /* judged in A, and not there in B */
    AT_CHANGE_NEW,    /* not there in A, and not failing in B */
    AT_CHANGE_COUNT
};

struct at_changed_job {
    enum at_change change;
    const struct at_result *a, *b; /* the result that shows it; NULL: the run does not have the job */
    char why[160];                 /* "PASS -> WRONG", "ratio of o 0.1 -> 0.4" */
};

struct at_run_comparison {
    struct at_changed_job *jobs; /* what changed, in the order of run B, then what is gone in that of A; owned */
    int64_t n, count[AT_CHANGE_COUNT];
    int64_t fail_in_both; /* of those in which nothing changed */
};

/* Both records sorted; the comparison points into them. A job of B that fails and that A does not have is WORSE; one that is
 * declined in both, or in one and missing in the other, is NONE. `times`: how many times nearer to its limit the largest error must
 * have come where both are judged and right; errors below a hundredth of a limit are not looked at. */
at_status at_compare_runs(const struct at_run_record *a, const struct at_run_record *b, int strict, double times,
                          struct at_run_comparison *comparison);
void at_run_comparison_release(struct at_run_comparison *comparison);

#endif
