/* Counting a unit of a recording through a runner: the operator score_counts, whose outputs are a layer's sums.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_DEVICE_H
#define AT_DIST_DEVICE_H

#include <pthread.h>

#include "verify/record/dist_unit.h"
#include "verify/runner/device_seat.h"

struct at_dist_device;

/* The i-th seat of the pool, which must outlive it. AT_UNSUPPORTED when the runner has no kernel of the family
 * score_counts. */
at_status at_dist_device_open(struct at_device_pool *pool, int i, struct at_dist_device **device);
void at_dist_device_close(struct at_dist_device *device); /* NULL is allowed */

/* at_dist_count_unit() by the runner's kernels, the last one that takes the unit: the same bits. AT_UNSUPPORTED with
 * the reason when none does (f64, counts that may pass 31 bits, more keys than fit); AT_UNSUPPORTED too where a kernel
 * failed or wrote what is not its own; a launch that failed is made again on another device of the pool, where there is one.
 * `workers` count what has no scores: keys of a request without queries. `lock` (may be NULL) is held while the layer is
 * added to. */
at_status at_dist_device_count(struct at_dist_device *device, pthread_mutex_t *lock, struct at_dist_workers *workers,
                               const struct at_dist_unit *unit, struct at_dist_layer *layer);

/* ---- the two halves of it (dist_outputs.c) ---- */

/* A unit as a problem of score_counts. Views of the unit's q, k and v; the rest is owned. */
struct at_dist_problem {
    struct at_problem problem;
    int32_t starts[2][2], keys;
    float *parameters; /* sigma, taps, gamma */
};
/* Quantities of the shape; those that have a row in the ledger in any case. AT_NO_MEMORY; AT_UNSUPPORTED where the
 * operator does not take it. */
at_status at_dist_problem_make(const struct at_dist_unit *unit, const struct at_dist_shape *shape,
                               struct at_dist_problem *out);
void at_dist_problem_release(struct at_dist_problem *problem);
/* Adds outputs of that problem, in the operator's order of tensors, to a layer. Clears the counts. AT_USAGE when a sum
 * passes 64 bits. */
at_status at_dist_outputs_add(const struct at_dist_unit *unit, const struct at_problem *problem,
                              struct at_tensor *tensors, struct at_dist_layer *layer);

#endif
