/* The seven benchmark scenarios as lists of lengths.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source: the AsyncT kernels' own benchmark (requests, prompt tokens, decoded tokens). long_decode_b32 has no
 * published lengths; 1024 and 1024 are this suite's choice. */
#include "datasets/fill/scenarios.h"

#include <stddef.h>
#include <string.h>

static const struct at_scenario scenarios[] = {
    { "decode_heavy_b32", "short prompts, long answers", 32, { 64 }, 1, 256 },
    { "large_batch_short_b128", "many short requests", 128, { 48 }, 1, 64 },
    { "balanced_b32", "prompt and answer of one order", 32, { 256 }, 1, 128 },
    { "prefill_heavy_b16", "long prompts, short answers", 16, { 1024 }, 1, 16 },
    { "long_prefill_b4", "few very long prompts", 4, { 2048 }, 1, 8 },
    { "mixed_prefill_b32", "ragged prompts", 32, { 32, 64, 96, 128, 192, 256, 384, 512 }, 8, 64 },
    { "long_decode_b32", "long answers to long prompts", 32, { 1024 }, 1, 1024 },
};

int at_scenario_count(void) { return (int)(sizeof scenarios / sizeof *scenarios); }

const struct at_scenario *at_scenario_at(int i) { return &scenarios[i]; }

const struct at_scenario *at_scenario_find(const char *name) {
    for (int i = 0; i < at_scenario_count(); i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    return NULL;
}

static int64_t shorter(int64_t tokens, int64_t shrink) { return tokens / shrink > 0 ? tokens / shrink : 1; }

int64_t at_scenario_steps(const struct at_scenario *scenario, int64_t shrink) {
    return shorter(scenario->decode, shrink);
}

int64_t at_scenario_sq(const struct at_scenario *scenario, int64_t shrink, int64_t step, int64_t r) {
    return step > 0 ? 1 : shorter(scenario->prompt[r % scenario->prompts], shrink);
}

int64_t at_scenario_sk(const struct at_scenario *scenario, int64_t shrink, int64_t step, int64_t r) {
    return shorter(scenario->prompt[r % scenario->prompts], shrink) + step;
}
