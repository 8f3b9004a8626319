/* Witnesses: the tensors of judged jobs, kept beside the journal while a run goes on and in the archive afterwards.
 * SPDX-License-Identifier: Apache-2.0
 *
 * RUN.h5.witness/ROW.h5 holds the arrays of one job in its group /witness, and is written before the job's line of the
 * journal: what the journal says was kept is there, also after a kill. The archive gets them as /witness/ROW. */
#ifndef AT_WITNESS_H
#define AT_WITNESS_H

#include "attest/op.h"
#include "verify/archive/arrays.h"
#include "verify/result/record.h"

/* Most arrays of a job: its tensors, and four more for each output. */
enum { AT_WITNESS_ARRAYS = 5 * AT_MAX_TENSORS, AT_WITNESS_ROW_BYTES = 200 };

/* What an array of a job holds: a tensor in its own format, or what an output was compared with, as f64. */
enum at_witness_part {
    AT_WITNESS_TENSOR,
    AT_WITNESS_REF,
    AT_WITNESS_LIMIT,
    AT_WITNESS_MODEL,
    AT_WITNESS_INTERVAL,
    AT_WITNESS_PARTS
};

/* All arrays a job of this operator can have: names, meanings, axes and, but for tensors, formats; no shapes and no
 * data. tensor[i] and part[i] say what array i is of. Returns their number. */
int at_witness_layout(const struct at_op *op, struct at_array *arrays, int *tensor, enum at_witness_part *part);

/* "000017_asynct_prefill.00_split_k": the row of a job, and the name of its file without the suffix. */
void at_witness_row(const struct at_result *result, char row[AT_WITNESS_ROW_BYTES]);
/* "RUN.h5.witness". AT_USAGE when the path is too long. */
at_status at_witness_folder(const char *out, char *path, size_t size);
/* Deletes what a killed process left half-written in a folder; with `rows`, finished files of rows too. */
at_status at_witness_clear(const char *folder, int rows);
/* The file of a job that was kept, in one of the record's folders; AT_NOT_FOUND names it. */
at_status at_witness_find(const struct at_run_record *record, const struct at_result *result, char *path, size_t size);
/* AT_NOT_FOUND, naming the file, unless every result that was kept has one. */
at_status at_witness_check(const struct at_run_record *record);

#endif
