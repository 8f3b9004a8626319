/* What a recording says, for people: a line a layer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_TABLE_H
#define AT_DIST_TABLE_H

#include <stdio.h>

#include "verify/archive/distributions.h"
#include "verify/commands/content.h"

/* At most 120 columns; reads the counts it needs from the open archive. */
at_status at_dist_table(const struct at_distributions *d, FILE *out);

extern const struct at_content at_content_distributions;

#endif
