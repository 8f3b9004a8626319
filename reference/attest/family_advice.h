/* Of the name of a family that there is not: what was meant.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FAMILY_ADVICE_H
#define AT_FAMILY_ADVICE_H

#include <stddef.h>

/* What stands behind the name of a family that there is not: "; did you mean softmax_prefill?", "; softmax_attention is an operator;
 * its families are softmax_decode softmax_prefill", or "". */
void at_family_advice(const char *name, char *text, size_t size);

#endif
