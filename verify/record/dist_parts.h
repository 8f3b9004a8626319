/* Layers that a recording has finished: a file each beside its journal, until the archive is put together.
 * SPDX-License-Identifier: Apache-2.0
 *
 * D.h5.parts/layer_N.h5 is an archive of layer N alone, and its units say which requests it holds. It is written before
 * the journal's line that names it, so what the journal calls begun or done is there, also after a kill; a part that the
 * journal does not know is of nothing, and is overwritten. A later part of the same layer takes the place of an earlier
 * one in one step. */
#ifndef AT_DIST_PARTS_H
#define AT_DIST_PARTS_H

#include "verify/record/dist_record.h"

/* Makes the folder, and deletes in it what a killed process left half-written. AT_USAGE when the path is too long. */
at_status at_dist_parts_open(const char *out);
at_status at_dist_parts_write(const char *out, const struct at_dist_recording *recording, int64_t i,
                              const struct at_dist_layer *layer, const struct at_dist_unit_row *units, int64_t n);
/* 1 when the part of that layer number is there. */
int at_dist_parts_has(const char *out, int64_t layer);
/* Adds the sums of layer i's part to `layer`, and gives its units (room for those of a layer): the first ones of the
 * shard. AT_USAGE when it is a part of something else. */
at_status at_dist_parts_take(const char *out, const struct at_dist_recording *recording, int64_t i,
                             struct at_dist_layer *layer, struct at_dist_unit_row *units, int64_t *n);
/* Deletes the parts and the folder; what else lies there stays. */
void at_dist_parts_remove(const char *out, const struct at_dist_recording *recording);

#endif
