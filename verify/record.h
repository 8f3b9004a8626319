/* A finished run: what was asked for and every result, however it was gathered (one process, resumed,
 * sharded and merged). The archive and all reports are written from this alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RECORD_H
#define AT_RECORD_H

#include "verify/result.h"

struct at_run_record {
    char *request; /* canonical JSON of what was asked: selection, case hash, seed, options that change
                      results. No times, hosts, paths, shards or thread counts. */
    char *provenance; /* canonical JSON: version, commit, flags, compiler, BLAS core, numeric environment */
    struct at_result *results; /* sorted by (case order in plan, variant, tensor) */
    int64_t n, capacity;
};

void at_run_record_init(struct at_run_record *record);
void at_run_record_release(struct at_run_record *record);
at_status at_run_record_add(struct at_run_record *record, const struct at_result *result);

/* One result as one line of canonical JSON (keys sorted, NaN and infinities as strings), and back.
 * The caller frees *line. */
at_status at_result_to_json(const struct at_result *result, char **line);
at_status at_result_from_json(const char *line, const char *where, struct at_result *result);

/* verify/archive: RUN.h5 as ARCHIVE.md says; byte-identical for equal records; temp + fsync + rename. */
at_status at_archive_write(const struct at_run_record *record, const char *path);
/* Reads it back (attest show, merge). Refuses a newer major, ignores unknown columns. */
at_status at_archive_read(const char *path, struct at_run_record *record);

/* Reports. Each writes to a temporary beside `path` and renames. */
at_status at_report_junit(const struct at_run_record *record, int strict, const char *path);
at_status at_report_jsonl(const struct at_run_record *record, const char *path);

#include <stdio.h>
/* Table for people; colour: 1 with ANSI colours. verbose: one row a result, else failing rows and
 * a line per family. */
void at_report_table(const struct at_run_record *record, int strict, int colour, FILE *out);
/* GitHub workflow commands, at most 10 of a kind. */
void at_report_github(const struct at_run_record *record, int strict, FILE *out);

#endif
