/* Neighbours of a declaration: the same with one field's value changed to one that a kernel could have by mistake.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_NEIGHBOURS_H
#define AT_NEIGHBOURS_H

#include "attest/numerics.h"

enum { AT_MAX_NEIGHBOURS = 16 };

struct at_neighbours {
    int n;
    struct at_numerics of[AT_MAX_NEIGHBOURS];
};

/* Every other word of a list; formats of 16 bits and more; of a number its half, its double, one unit more and less, and
 * 0 where that has a meaning of its own (for 0: a few sizes). Where a unit alone has no meaning beside the other fields
 * (a tensor core with lanes), the fields that it governs follow it. Left out: what at_numerics_check() refuses, and what
 * means the same (an order of lanes where there is one lane). */
void at_neighbours(const struct at_numerics *declared, int field, struct at_neighbours *out);

#endif
