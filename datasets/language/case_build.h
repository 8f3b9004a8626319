/* Building a problem from a case: what the steps share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CASE_BUILD_H
#define AT_CASE_BUILD_H

#include "datasets/language/case_finish.h"
#include "datasets/readers/dataset.h"

struct at_build {
    const struct at_case *c;
    struct at_problem *problem;
    struct at_recorded recorded;      /* open for a recorded dataset */
    int64_t *query_start, *key_start; /* [b+1], logical; owned */
    struct at_data data;              /* what families see */
    int64_t d_valid;                  /* d without padding */
    int clear;                        /* zeros where nothing is filled in */
};

/* The tensor that is filled so, NULL when the problem has none. */
struct at_tensor *at_fill_tensor(const struct at_build *build, enum at_fill fill);
/* query_start, seq_lens, key_start, block_table, slot_mapping. */
void at_fill_indices(const struct at_build *build);
/* sigma, taps, gamma of AsyncT; alpha, gamma, beta of norms; slopes; scales and biases of products. */
void at_fill_parameters(const struct at_build *build);
/* q, k, v or the norms' activations; NaN where no key lives. */
at_status at_fill_activations(struct at_build *build);

#endif
