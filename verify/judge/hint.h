/* Of a wrong output: would another declaration have been true of it?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HINT_H
#define AT_HINT_H

#include "verify/judge/verdict.h"

/* Text "its bits are those of p=bf16", or of several values of that field, when a declaration that differs in one field gives every element of some rows with wrong
 * elements, "" when none of the few that are tried does, when that is not cheap, or where no order is declared. */
void at_hint_declaration(const struct at_evidence *evidence, char *text, size_t size);

#endif
