/* What the fast tier asks of an operator: its rows between the two matrix products, and after them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FAST_KIND_H
#define AT_FAST_KIND_H

#include "asynct_attention/asynct_attention.h"
#include "fast/block.h"
#include "softmax_attention/softmax_attention.h"

/* One evaluation, shared by its threads; read only but for the outputs. */
struct at_fast_run {
    const struct at_problem *problem;
    struct at_eval *eval;
    int limits; /* some limit is wanted */
    struct at_asynct_limit asynct;
    struct at_softmax_limit softmax;
};

/* Where a row's intermediates go; NULL members are not wanted. */
struct at_fast_watch {
    struct at_ledger *ledger;
    void (*trace)(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values);
    void *trace_context;
};

struct at_fast_kind {
    const struct at_op *op;
    at_status (*prepare)(struct at_fast_run *run, const struct at_numerics *numerics);
    /* 1: a non-finite v counts for the limit though its weight is 0. */
    int (*charges_zeros)(const struct at_fast_run *run);
    /* Rows i of `first` and `second`: from q.k and sum |q||k| to what multiplies V and |V|, zeros for hidden
     * keys. Tells the watch the stages of scores and weights. */
    void (*weigh)(const struct at_fast_run *run, struct at_fast_work *work, int64_t i,
                  const struct at_fast_watch *watch);
    /* Outputs and limits of row i from the sums over V. `weigh` of all rows came before. */
    at_status (*finish)(const struct at_fast_run *run, const struct at_fast_work *work, int64_t i,
                        const struct at_fast_watch *watch);
};

/* NULL: the operator has no fast tier. */
const struct at_fast_kind *at_fast_kind_of(const struct at_op *op);
extern const struct at_fast_kind at_fast_asynct, at_fast_softmax;

#endif
