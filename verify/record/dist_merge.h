/* Joining the shards of a recording.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_MERGE_H
#define AT_DIST_MERGE_H

#include "attest/status.h"

/* Writes the archive that one process would have written; a layer of sums is in memory at a time. AT_USAGE when
 * requests or builds differ (the key is named), when a unit is there twice or missing. */
at_status at_dist_merge(const char *const *paths, int n, const char *out);

#endif
