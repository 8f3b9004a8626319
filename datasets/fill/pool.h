/* Pools of keys and values that are larger than what is used of them: which rows are worth touching.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A pool of more than 2^31 elements is 4 GiB a tensor. Address space costs nothing, so such a pool is reserved whole and
 * only the pages in use, and those beside them, are ever written, copied, hashed or compared; the rest is whatever the
 * system gives, which is zeros at first. */
#ifndef AT_POOL_H
#define AT_POOL_H

#include "attest/op.h"

/* Rows [first, end) of k and v. */
struct at_pool_span {
    int64_t first, end;
};

/* Is tensor t the k or v of a pool of more than 1 GiB? */
int at_pool_is_large(const struct at_problem *problem, int t);
/* Rows to look at, ascending and apart from each other; all of them unless the pool is large. The caller frees. */
at_status at_pool_spans(const struct at_problem *problem, struct at_pool_span **spans, int64_t *n);

#endif
