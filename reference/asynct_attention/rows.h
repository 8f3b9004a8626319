/* Walking the rows of a problem with q, k and v decoded to double; for the files of this folder.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ASYNCT_ROWS_H
#define AT_ASYNCT_ROWS_H

#include "attest/attention.h"

/* One row: what it is, its query [d], and all keys and values [row.keys d] of its request and head. */
struct at_asynct_input {
    struct at_attn_row row;
    const double *q, *k, *v;
};

/* Calls visit for each row in [row0, row1), in an order of its own: rows that share keys come together,
 * so that these are decoded once. AT_NO_MEMORY, or what visit returned when it fails. */
at_status at_asynct_walk(const struct at_problem *problem, int64_t row0, int64_t row1,
                         at_status (*visit)(void *context, const struct at_asynct_input *input), void *context);

/* dot[t] = <q, k_t> of n keys, each sum from the first channel on; several keys go side by side, since a sum waits for
 * its every step. q [d], k [n d]. */
void at_asynct_dots(const double *restrict q, const double *restrict k, int64_t n, int64_t d, double *restrict dot);
/* o += weight v, of d channels. */
void at_asynct_add(double weight, const double *restrict v, int64_t d, double *restrict o);

#endif
