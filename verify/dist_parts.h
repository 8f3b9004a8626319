/* Layers that a recording has finished: a file each beside its journal, until the archive is put together.
 * SPDX-License-Identifier: Apache-2.0
 *
 * D.h5.parts/layer_N.h5 is an archive of layer N alone, written before the journal's line that names its units: what
 * the journal calls done is there, also after a kill. */
#ifndef AT_DIST_PARTS_H
#define AT_DIST_PARTS_H

#include "verify/dist_record.h"

/* Makes the folder, and deletes in it what a killed process left half-written. AT_USAGE when the path is too long. */
at_status at_dist_parts_open(const char *out);
at_status at_dist_parts_write(const char *out, const struct at_dist_recording *recording, int64_t i,
                              const struct at_dist_layer *layer, const struct at_dist_unit_row *units, int64_t n);
/* 1 when the part of that layer number is there. */
int at_dist_parts_has(const char *out, int64_t layer);
/* The archive from the parts of every layer. */
at_status at_dist_parts_join(const char *out, const struct at_dist_recording *recording);
/* Deletes the parts and the folder; what else lies there stays. */
void at_dist_parts_remove(const char *out, const struct at_dist_recording *recording);

#endif
