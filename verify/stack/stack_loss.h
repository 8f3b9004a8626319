/* What a stack's arithmetic costs a language model: the loss of its logits, beside that of the run in double.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STACK_LOSS_H
#define AT_STACK_LOSS_H

#include "verify/stack/stack_given.h"

/* Nats a token, of logits by kernels and by the run in double on the same stored weights and inputs; the difference is over
 * all tokens, its standard error that of the mean over windows (rows of targets), each counting alike; NaN for one. Tokens
 * whose loss is no number by either are left out, and counted. */
struct at_stack_loss {
    char flow[AT_STACK_NAME];
    int64_t windows, tokens, vocabulary, not_finite;
    double kernel, exact, difference, standard_error;
};

/* Before anything runs: is there what at_stack_loss_take() wants? */
at_status at_stack_loss_check(const struct at_stack_given *given, const struct at_stack_flow *flow);
/* From targets of the file, i32 [windows, tokens] (or [tokens]: one window): the class that was right behind each token, -1: none.
 * The flow holds as many rows of `vocabulary` logits. AT_USAGE where that does not fit. */
at_status at_stack_loss_take(const struct at_stack_given *given, const struct at_stack_flow *flow,
                             const struct at_stack_value *value, struct at_stack_loss *loss);
void at_stack_loss_put(const struct at_stack_loss *loss, FILE *out);

#endif
