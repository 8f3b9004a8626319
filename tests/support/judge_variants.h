/* Variants of attest-cpu judged on problems of a test's own: by their models where they declare an order, and by their limits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_JUDGE_VARIANTS_H
#define AT_TEST_JUDGE_VARIANTS_H

#include "tests/at_test.h"

#include "verify/runner/launch.h"

/* $BUILD/attest-cpu, the real runner, for a group of tests. */
extern struct at_runner *at_host_runner;
int at_open_host_runner(void **state);
int at_close_host_runner(void **state);

struct at_tally {
    int64_t runs, declined, elements, exact;
    double worst; /* of error / limit, where there is a limit */
};

/* Runs a variant on a problem: fails the test where an element is beyond the model or the limit. n: the problem's number, for messages. */
void at_judge_variant(int variant, const struct at_problem *problem, uint64_t n, struct at_tally *model,
                      struct at_tally *limit);

enum { AT_CANDIDATES_MAX = 128 };

/* Variants that are judged on the same problems, each with what was seen of it. */
struct at_candidates {
    int n, variant[AT_CANDIDATES_MAX];
    struct at_tally model[AT_CANDIDATES_MAX], limit[AT_CANDIDATES_MAX];
};
void at_collect_family(const char *family, struct at_candidates *c);
/* All that have not been judged often enough. */
void at_judge_all(struct at_candidates *c, const struct at_problem *problem, uint64_t n, int64_t enough);
/* Prints what was seen of candidate i. */
const struct at_variant *at_tell(const struct at_candidates *c, int i);

#endif
