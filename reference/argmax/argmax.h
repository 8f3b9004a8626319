/* The largest logit of each row: tensor indices of the operator, its own size, the order of logits, ways of being wrong.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARGMAX_H
#define AT_ARGMAX_H

#include "attest/op.h"

enum {
    AT_ARGMAX_LOGITS, /* [tokens vocabulary] */
    AT_ARGMAX_INDEX   /* i32 [tokens] */
};

struct at_argmax_own {
    int64_t vocabulary;
};
AT_OWN_STRUCT(at_argmax_own)

/* Ways of being wrong, in the order of the operator's decoys. */
enum at_argmax_fault {
    AT_ARGMAX_RIGHT = -1,
    AT_ARGMAX_LAST_OF_TIES,
    AT_ARGMAX_SMALLEST,
    AT_ARGMAX_LARGEST_MAGNITUDE,
    AT_ARGMAX_NAN_IGNORED,
    AT_ARGMAX_LAST_UNSEEN,
    AT_ARGMAX_FIRST_THOUSAND,
    AT_ARGMAX_NEXT_ROW,
    AT_ARGMAX_ONE_BASED,
    AT_ARGMAX_FAULTS
};

extern const struct at_op at_op_argmax;

#endif
