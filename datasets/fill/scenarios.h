/* The benchmark scenarios: batches of requests with a prompt and tokens to decode.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SCENARIOS_H
#define AT_SCENARIOS_H

#include <stdint.h>

/* As prefill: every prompt at once, nothing cached before it. As decode: one query per request when all its
 * tokens but the last have been decoded, the longest keys the scenario comes to. */
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
/* Queries and keys of request r in a prefill (decode = 0) or decode step. */
int64_t at_scenario_sq(const struct at_scenario *scenario, int decode, int64_t r);
int64_t at_scenario_sk(const struct at_scenario *scenario, int decode, int64_t r);

#endif
