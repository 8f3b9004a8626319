/* Which fields of which variants' declarations the selected cases test. Nothing is launched: a runner is asked what it
 * takes, the references do the rest.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DECLARATIONS_H
#define AT_DECLARATIONS_H

#include "verify/judge/declared.h"
#include "verify/plan/plan.h"

/* What the cases say of one field of one variant. */
struct at_field_cases {
    enum at_refuted refuted;
    int64_t modelled; /* cases on which some other value has a meaning */
    int64_t tested;   /* cases on which it would have been rejected */
    int64_t example;  /* item of the plan with the least work that tests it, -1: none */
    double example_work;
    /* Neighbours: over all cases, on the example; bits as in struct at_declared_test. */
    unsigned has_model, rejected, example_rejected;
};

struct at_variant_cases {
    const struct at_variant *v;
    int64_t met, taken, ill; /* cases of its family; that it takes; of those, that its declaration does not fit */
    char ill_reason[256];
    struct at_field_cases field[AT_FIELD_COUNT];
};

struct at_declarations {
    struct at_runner *runner; /* the first worker's */
    struct at_plan plan;
    int n;
    struct at_variant_cases *variants; /* of the runner's list; those that the plan has met > 0 */
};

struct at_declarations_options {
    struct at_selection selection;
    const char *runner;
    int jobs;
    int64_t enough;  /* a field is left alone once so many cases test it; 0: never */
    uint64_t fields; /* only these: bit f, field f of the list */
    double work;     /* multiply-adds of the rows that a neighbour is modelled on, a case */
};

at_status at_declarations_run(const struct at_declarations_options *options, struct at_declarations *out);
void at_declarations_release(struct at_declarations *declarations);

/* The neighbours that the bits of has_model and rejected speak of. The variant's family is known. */
void at_field_neighbours(const struct at_variant *v, int field, struct at_neighbours *near);

/* How a field stands. */
enum at_field_state {
    AT_FIELD_NO_CLAIM, /* nothing about this operator's results */
    AT_FIELD_FIXED,    /* no other value has a meaning beside the others, on any case */
    AT_FIELD_TESTED,
    AT_FIELD_VACUOUS,
    AT_FIELD_UNMET, /* the variant took no case */
};
enum at_field_state at_field_state(const struct at_variant_cases *v, int field);

#endif
