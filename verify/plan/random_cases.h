/* Random cases: drawn from the domains of operators, each with a line of its own that replays it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RANDOM_CASES_H
#define AT_RANDOM_CASES_H

#include "datasets/language/case.h"
#include "verify/runner/runner.h"

/* n cases of role "random" onto the end of `list`, of families that have chosen variants (chosen[i]: variant i of the
 * runner), each taken by one of those at least. Case i is a function of (seed, i), the chosen variants and what they take.
 * One case in ten is far out. AT_NOT_FOUND: a case that somebody takes is not found in a thousand draws. */
at_status at_random_cases(struct at_runner *runner, const char *chosen, int64_t n, uint64_t seed,
                          struct at_case_list *list);

#endif
