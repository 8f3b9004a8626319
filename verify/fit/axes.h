/* What a declaration may say, in groups of fields whose values go together: what a search tries.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_AXES_H
#define AT_AXES_H

#include "attest/op.h"

enum { AT_AXIS_FIELDS = 5 };

/* Fields that are tried together, each combination of their values a candidate. */
struct at_axis {
    const char *name;
    int n_fields, field[AT_AXIS_FIELDS];
    int n;                        /* candidates */
    int (*value)[AT_AXIS_FIELDS]; /* [n] owned */
};

enum { AT_AXES_MAX = 20 };
struct at_axes {
    int n;
    struct at_axis axis[AT_AXES_MAX];
};

/* Those of the fields that the operator's models read on this problem. Release them in any case. */
at_status at_axes_open(const struct at_problem *problem, struct at_axes *axes);
void at_axes_release(struct at_axes *axes);
/* The axis of a field; -1: none. */
int at_axes_of(const struct at_axes *axes, int field);

/* The declaration with candidate i of the axis in it; fields of other axes that have no meaning beside it (a skipped row beside a
 * tensor core, a guard without an f16 accumulator) take the value that has. 0: no such declaration. */
int at_axis_apply(const struct at_axis *axis, int i, const struct at_numerics *base, struct at_numerics *out);

#endif
