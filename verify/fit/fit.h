/* What a variant's outputs say of its arithmetic: the declaration that fits, what it cannot be told from, the order of its sums.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FIT_H
#define AT_FIT_H

#include "verify/fit/order.h"
#include "verify/fit/search.h"

enum { AT_FIT_ALIKE_MAX = 64 };

/* A declaration that the probes do not tell from the one found, and the axis that it differs in. */
struct at_fit_alike {
    int axis;
    struct at_numerics numerics;
};

struct at_fit {
    const struct at_variant *v;
    struct at_probe_layout layout;
    struct at_probe probe[AT_PROBES_MAX];
    int n_first;     /* probes of the layout's format; behind them those of others that the variant takes */
    int first_alone; /* no declaration fits them all: `best` is of that format alone */
    struct at_search search;
    int changes; /* bits changed between two runs of one probe: there is no order to find */
    struct at_numerics best;
    struct at_distance distance; /* far = 0: it fits */
    struct at_fit_alike alike[AT_FIT_ALIKE_MAX];
    int n_alike, more_alike;      /* more_alike: those beyond the array */
    struct at_order_found qk, pv; /* q.k or the sum of a product; P V */
    struct at_order_found far;    /* of the same, P V or the product, with terms far apart */
    char left_out[512];           /* probes that it does not take, each with its reason */
    /* Of the declaration that the variant has: */
    int has_declared; /* it claims an order, and was compared */
    struct at_distance declared;
    int wrong_axis; /* the one change that comes nearest; -1: none */
    struct at_numerics changed;
    struct at_distance changed_distance;
};

struct at_fit_options {
    enum at_format dtype; /* AT_FORMAT_COUNT: all that it takes, the sums of the first */
    int check;            /* compare the variant's own declaration */
    int trees;            /* look for the order of sums */
};

/* Release *fit in any case. AT_UNSUPPORTED when the variant is none of those that are probed, or takes no probe. */
at_status at_fit_variant(struct at_runner *runner, int variant, const struct at_fit_options *options,
                         struct at_fit *fit);
void at_fit_release(struct at_fit *fit);

#endif
