/* Sub-problems for the batch-invariance check: the same request alone, and the batch in another order.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_BATCH_H
#define AT_BATCH_H

#include "attest/op.h"

/* A problem made of some units of another; owns its memory. */
struct at_batch_part {
    struct at_problem problem;
    void *memory;
    int64_t n;
    int64_t *requests; /* which ones, in the part's order */
};

/* Number of units that the operator says a problem can be cut into, as requests or tokens; 0: it is not cut. */
int64_t at_batch_units(const struct at_problem *problem);
/* Gathers units[0..n) of `problem`, in that order. Inputs only; outputs get shapes and no data. */
at_status at_batch_gather(const struct at_problem *problem, const int64_t *units, int64_t n,
                          struct at_batch_part *part);
void at_batch_release(struct at_batch_part *part);
/* First row of the operator that belongs to unit u, and how many. */
void at_batch_rows(const struct at_problem *problem, int64_t u, int64_t *first, int64_t *count);

#endif
