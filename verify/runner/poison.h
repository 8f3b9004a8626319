/* What stands in the key and value rows that no request owns: spare pages, other requests' pages, ends of last pages.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_POISON_H
#define AT_POISON_H

#include "attest/numerics.h"
#include "attest/op.h"

/* Which of a job's launches: the one that is judged, or one of those whose bits are compared with it. */
enum at_poison_turn { AT_POISON_JUDGED, AT_POISON_AGAIN };

/* 1 for an attention problem with more rows of k and v than its requests have keys; any other has no rows without an
 * owner. */
int at_has_unowned(const struct at_problem *problem);
/* Overwrites the unowned rows of k and v in place.
 *   tail = unread  v is NaN. k is about +-1024 in the judged launch, so that a key taken for real gets a full weight
 *                  from one of its neighbours in a filter and brings the NaN of v along; a NaN in k would be turned
 *                  into weight 0 by fminf and fmaxf, and nobody would see it. In the other launches k is NaN.
 *   tail = finite  both are +- half the format's largest value: a weight of 0 must come before the product.
 * AT_NO_MEMORY. */
at_status at_poison_unowned(const struct at_problem *problem, enum at_tail tail, enum at_poison_turn turn,
                            uint64_t seed);

#endif
