/* What flows hold while a stack runs: as kernels leave it, and as a run in double has it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STACK_VALUES_H
#define AT_STACK_VALUES_H

#include "verify/stack/stack_plan.h"

/* One flow. Owned. */
struct at_stack_value {
    void *stored;  /* codes of the flow's format */
    double *exact; /* of the run in double */
};

/* One output of a step, or all of a flow: both runs, and what went wrong between them. Errors are over finite pairs. */
struct at_stack_error {
    double rms;                      /* of the run in double */
    double largest;                  /* magnitude that the kernel left; NaNs and infinities apart */
    double entered_max, entered_rms; /* kernel less exact, on the inputs that the kernel got */
    double inherited_rms;            /* that exact value less the run in double: what its inputs' errors have become */
    double error_max, error_rms;     /* kernel less the run in double */
    int64_t elements, nans, infinities; /* that the kernel left */
    int64_t beyond;                     /* values of the run in double that are beyond f16's largest */
};

/* Inputs of a part of the file, drawn for a layer (-1: outside): normal numbers, rounded to the flow's format. What stood in the
 * flow goes. */
at_status at_stack_draw(const struct at_stack_plan *plan, enum at_stack_part part, int64_t layer,
                        struct at_stack_value *values);
/* Caches between turns: after a layer they are put by, and in the next turn's stand in place of what was drawn. AT_USAGE where a
 * cache has changed its size. */
struct at_stack_kept {
    struct at_stack_kept_cache {
        char name[AT_STACK_NAME];
        int64_t layer, elements;
        struct at_stack_value value;
    } * caches;
    int n;
};
at_status at_stack_kept_take(const struct at_stack_plan *plan, enum at_stack_part part, int64_t layer,
                             struct at_stack_kept *kept, struct at_stack_value *values);
at_status at_stack_kept_put(const struct at_stack_plan *plan, enum at_stack_part part, int64_t layer,
                            struct at_stack_value *values, struct at_stack_kept *kept);
void at_stack_kept_release(struct at_stack_kept *kept);

void at_stack_values_release(const struct at_stack_plan *plan, struct at_stack_value *values);

/* The exact values of a step's outputs on the flows of the run in double: nothing is rounded before, between or behind.
 * `data`: its case, with what no flow feeds. outputs[t]: owned by the caller; others NULL. */
at_status at_stack_evaluate(const struct at_stack_planned *step, const struct at_problem *data,
                            const struct at_stack_value *values, int threads, double *outputs[AT_MAX_TENSORS]);

/* `stored`: as a kernel left it, n elements. `here`: exact on the same inputs; NULL: nothing entered. */
void at_stack_measure(const struct at_tensor *stored, const double *here, const double *exact,
                      struct at_stack_error *error);

#endif
