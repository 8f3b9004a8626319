/* How small a uniform scale error may be and still be seen.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RESOLUTION_H
#define AT_RESOLUTION_H

#include "verify/judge/answer.h"

/* The smallest r for which an output times (1 + r) could not have passed, whatever a right variant's own errors are; NaN
 * when no r is too large. `scale`: what sums over the output see (at_aggregate.scale), INFINITY: nothing.
 *   judged by limits: r |x| > 2 limit in some element, as decoys are rejected (a wrong kernel also rounds);
 *   judged by a model: in some element the value from which the modelled one was rounded, which is within the rest of the
 *   limit of x, crosses to the next number of the format; one whole unit in the last place always does. */
double at_resolution(const struct at_answer *answer, const struct at_judgement *judgement, int tensor, double scale);

#endif
