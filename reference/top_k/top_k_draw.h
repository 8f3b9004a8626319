/* What the parts of top_k share: a row's ranks and sums, the draw.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TOP_K_DRAW_H
#define AT_TOP_K_DRAW_H

#include "top_k/top_k.h"

struct at_top_k_row {
    struct at_top_k_rank *ranks;
    struct at_top_k_sums sums;
    double *memory;
};
at_status at_top_k_row_open(const struct at_problem *problem, int64_t ranks, struct at_top_k_row *row);
void at_top_k_row_close(struct at_top_k_row *row);

/* The first j with c_j > threshold, the last where there is none. */
int64_t at_top_k_first_above(const double *c, int64_t n, double threshold);

at_status at_top_k_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int modelled,
                            int64_t row0, int64_t row1, struct at_eval *eval);
at_status at_top_k_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int fault, int64_t row0,
                         int64_t row1, struct at_eval *eval);
int at_top_k_admits(const struct at_problem *problem, const struct at_numerics *numerics, int modelled, int tensor,
                    int64_t element, double got);

#endif
