/* What variants have answered: a search draws the same problem many times, and its values are no part of the question.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DESIGN_ASKED_H
#define AT_DESIGN_ASKED_H

#include "verify/runner/runner.h"

/* One problem as a runner's variants see it before a launch, and bit v: variants[v] takes it. */
struct at_asked_problem {
    double *words; /* [n_words]; owned */
    int n_words;
    uint64_t hash, takes;
};

/* A table by hash, open addressing; zeroed: empty. */
struct at_asked {
    struct at_asked_problem *slots; /* [room], free where words is NULL */
    int64_t n, room;                /* a power of two */
};

/* *takes = who of variants[0 .. n) of the runner take this problem (bit v); asks when it has not been asked before. */
at_status at_asked_takes(struct at_asked *asked, struct at_runner *runner, const int *variants, int n,
                         const struct at_problem *problem, uint64_t *takes);
void at_asked_release(struct at_asked *asked);

#endif
