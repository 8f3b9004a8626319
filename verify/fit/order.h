/* The order of a sum, from outputs alone: which units M swallows before -M meets it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ORDER_FOUND_H
#define AT_ORDER_FOUND_H

#include "verify/fit/probe.h"
#include "verify/fit/tree.h"

struct at_order_found {
    int n;           /* terms; 0: not looked for */
    int apart;       /* how far apart they are; those between are 0 */
    int changes;     /* runs differ; the drawing has what they share */
    char why[256];   /* "" or why there is no tree */
    char text[2048]; /* the drawing */
    uint64_t signature;
};

enum { AT_ORDER_TERMS = 64, AT_ORDER_APART = 16 };

/* Asks all pairs of terms of a sum of that kind (AT_PROBE_QK: d terms; _PV, _PRODUCT: AT_ORDER_TERMS, of which each is the
 * `apart`-th), in `runs` launches of other machine orders.
 * What the variant does not take is said in found->why. */
at_status at_order_find(struct at_runner *runner, int variant, const struct at_probe_layout *layout,
                        enum at_probe_kind kind, int apart, int runs, struct at_order_found *found);

#endif
