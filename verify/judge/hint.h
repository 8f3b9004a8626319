/* Of a wrong output: would another declaration have been true of it?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HINT_H
#define AT_HINT_H

#include "verify/judge/verdict.h"

/* Text "its bits are those of p=bf16", or of several values of that field, when a declaration that differs in one field gives
 * every element of some rows with wrong elements; where no order is declared "the first wrong rows are within the limits of p=bf16"
 * when P in the inputs' format allows those. "" when none of the few that are tried does, or when that is not cheap. */
void at_hint_declaration(const struct at_evidence *evidence, char *text, size_t size);

#endif
