/* How much a claim allows: the limits of a declaration over those of plain f32 arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LOOSENESS_H
#define AT_LOOSENESS_H

#include "verify/judge/answer.h"

/* Of each output o of answer->outputs: the median, over elements of some rows (the first and last among them), of the limit by the
 * declared numerics over that of f32 arithmetic in any order, P in f32, exponentials of libm: what a kernel has that gives no
 * precision up. Where rows take long, of one of them. NaN where a model judges (its bits leave no room), where there is no limit, and
 * of an output that has nothing in that row (the largest magnitude of a large product). */
at_status at_looseness(const struct at_answer *answer, const struct at_numerics *numerics,
                       double looseness[AT_MAX_TENSORS]);

#endif
