/* The tables of /distributions: summaries, ledger and units as columns; for its writer and reader.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DISTRIBUTIONS_COLUMNS_H
#define AT_DISTRIBUTIONS_COLUMNS_H

#include "verify/archive/columns_read.h"
#include "verify/archive/distributions.h"

/* Bins in a chunk of `counts`: most of a head's 65000 bins count nothing, and a chunk of zeros is never written, nor
 * deflated. (minilm: half the CPU time of one chunk a head, and 0.5 % more bytes; from 2048 on the index takes 9 %.) */
enum { AT_DIST_CHUNK_BINS = 4096 };

/* Field i of struct at_dist_summary / at_dist_unit_row, NULL past the end. */
const struct at_field *at_dist_summary_field(int i);
const struct at_field *at_dist_unit_field(int i);

/* Groups `ledger` (a row for each layer, head and stage) and `unit`. rows: [n_layers h AT_DIST_STAGES]. */
at_status at_dist_write_ledger(const char *file, hid_t group, const struct at_dist_shape *shape, const int64_t *layer,
                               const struct at_ledger_row *rows);
at_status at_dist_write_units(const char *file, hid_t group, const struct at_dist_unit_row *units, int64_t n);

/* Back. bytes: of the file, which bounds what it can hold. *units is the caller's to free, also after a failure. */
at_status at_dist_read_ledger(const char *file, hid_t group, const struct at_dist_shape *shape,
                              struct at_ledger_row *rows);
at_status at_dist_read_units(const char *file, hid_t group, uint64_t bytes, struct at_dist_unit_row **units,
                             int64_t *n);

#endif
