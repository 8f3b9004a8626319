/* The benchmark scenarios: batches of requests with a prompt and tokens to decode.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SCENARIOS_H
#define AT_SCENARIOS_H

#include <stdint.h>

/* A sequence: first every prompt at once, nothing cached before it, then `decode` steps of one query per request, whose
 * keys are the prompt and the tokens decoded so far. */
struct at_scenario {
    const char *name, *meaning;
    int64_t b;
    int64_t prompt[8]; /* of request r: prompt[r % prompts] */
    int prompts;
    int64_t decode;
};

int at_scenario_count(void);
const struct at_scenario *at_scenario_at(int i);
/* NULL if there is none of that name. */
const struct at_scenario *at_scenario_find(const char *name);
/* Decode steps there are when every length is divided by `shrink` (1 or more; at least one token stays). */
int64_t at_scenario_steps(const struct at_scenario *scenario, int64_t shrink);
/* Queries and keys of request r in the prefill (step 0) or in decode step 1, 2, ... */
int64_t at_scenario_sq(const struct at_scenario *scenario, int64_t shrink, int64_t step, int64_t r);
int64_t at_scenario_sk(const struct at_scenario *scenario, int64_t shrink, int64_t step, int64_t r);

#endif
