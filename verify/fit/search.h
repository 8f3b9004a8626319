/* The declaration whose model gives what a variant left: fields one group after another, then all together.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SEARCH_H
#define AT_SEARCH_H

#include "verify/fit/axes.h"
#include "verify/fit/probe.h"

struct at_search {
    struct at_probe *probe; /* [n_probes] */
    int n_probes;
    struct at_axes axes;
    int64_t tried; /* models of declarations that were compared */
};

/* The distance of a declaration over the probes (bit i of `probes`: probe i); stops once it is past `enough`. */
at_status at_search_distance(struct at_search *search, const struct at_numerics *numerics, unsigned probes,
                             double enough, struct at_distance *distance);

/* Sets *best to the declaration found and *distance to what it is off by on all probes: `far` 0 is a fit. It starts from the
 * defaults, never from what a variant declares. */
at_status at_search_run(struct at_search *search, struct at_numerics *best, struct at_distance *distance);

/* From a declaration on: is there one that differs from it in the fields of one axis alone and fits, or is less far off?
 * *axis = -1: none. */
at_status at_search_one_change(struct at_search *search, const struct at_numerics *from, const struct at_distance *off,
                               int *axis, struct at_numerics *better, struct at_distance *distance);

#endif
