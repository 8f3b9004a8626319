/* A finished run: what was asked for and every result, however it was gathered (one process, resumed,
 * sharded and merged). The archive and all reports are written from this alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RECORD_H
#define AT_RECORD_H

#include "verify/result/atomic_file.h"
#include "verify/result/result.h"
#include "verify/result/result_fields.h"

struct at_result_heap;
struct at_run_record {
    char *request;             /* canonical JSON of what was asked: selection, case hash, seed, options that change
                                  results. No times, hosts, paths, shards or thread counts. */
    char *provenance;          /* canonical JSON: version, commit, flags, compiler, BLAS core, numeric environment */
    struct at_result *results; /* sorted by (case order in plan, variant, tensor); NULL with `stored` */
    int64_t n, capacity;
    struct at_result_heap
        *stored;    /* owned, of a large run: its n results, sorted, not all in memory; NULL: in `results` */
    char **witness; /* folders with the files of results that were kept (verify/archive/witness.h) */
    int n_witness;
    /* Of the process, never archived: */
    int signal;      /* that cut the run short; 0: it came to its end */
    int64_t planned; /* with signal: jobs there would have been */
    int is_part;     /* some of a run's results: a shard, a selection */
};

void at_run_record_init(struct at_run_record *record);
void at_run_record_release(struct at_run_record *record);
/* Has the results of an empty record in a scratch file beside the path `beside`, which must outlive it. AT_NO_MEMORY. */
at_status at_run_record_store(struct at_run_record *record, const char *beside);
/* plan_index of result i. */
int64_t at_run_record_place(const struct at_run_record *record, int64_t i);
/* Result i, wherever it is: good until the next call. One that cannot be read is all zeros, and at_run_record_readable() says so. */
const struct at_result *at_run_record_at(const struct at_run_record *record, int64_t i);
/* AT_IO: a result that was asked for could not be read. */
at_status at_run_record_readable(const struct at_run_record *record);
/* Appends a copy; bytes that are no UTF-8 become '?', so that every output has the same text. */
at_status at_run_record_add(struct at_run_record *record, const struct at_result *result);
/* Moves the results of `from` into a record that has none. */
void at_run_record_take(struct at_run_record *record, struct at_run_record *from);
/* -1, 0, 1: order of two results in a run: by (plan_index, tensor_index), then by names. */
int at_result_compare(const struct at_result *a, const struct at_result *b);
/* Adds a folder of witnesses, copied. */
at_status at_run_record_add_witness(struct at_run_record *record, const char *folder);
/* With `stored`: AT_USAGE when a result is there twice, AT_IO. */
at_status at_run_record_sort(struct at_run_record *record);
/* AT_USAGE, naming the key, unless shard i (from 0) answers the request of the first shard and is of its build and machine. */
at_status at_run_record_same_run(const struct at_run_record *first, const struct at_run_record *shard, int i);
/* AT_USAGE, naming the first gap, unless every plan position 0 .. positions - 1 has a result. Sorted record. */
at_status at_record_complete(const struct at_run_record *record, int64_t positions);
/* Jobs (case x variant) that have results. Sorted record. */
int64_t at_run_record_jobs(const struct at_run_record *record);
/* *found: the first result of the next variant that was selected and never judged, from result *i on, which is moved behind
 * it; NULL when there is none, and always in a part of a run, where the rest may have judged it. */
at_status at_run_record_unjudged(const struct at_run_record *record, int64_t *i, const struct at_result **found);
/* The exit code the results ask for: 0, 1 (a verdict fails the run, or strict and a variant was never judged), 4 (nothing
 * was judged), or 128 + the signal that cut the run short; that of AT_NO_MEMORY when there is none to find out. */
int at_run_record_exit_code(const struct at_run_record *record, int strict);
/* First difference of two canonical JSON objects as "key: A here, B there"; 0 when they are equal. */
int at_json_difference(const char *a, const char *b, char *text, size_t size);

/* One result as one line of canonical JSON (keys sorted, NaN and infinities as strings), and back. Integers
 * are exact: those above 2^63 - 1 are decimal strings. `seconds` and `kept` are the
 * only keys the archive does not keep.
 * The caller frees *line. */
at_status at_result_to_json(const struct at_result *result, char **line);
at_status at_result_from_json(const char *line, const char *where, struct at_result *result);

/* Results in the order of at_result_compare() that need not be in memory all at once. */
struct at_result_source {
    int64_t n;
    at_status (*get)(void *context, int64_t i, const struct at_result **result); /* *result: good until the next call */
    void *context;
};
/* verify/archive: RUN.h5 as verify/archive/README.md says; byte-identical for equal records; temp + fsync + rename. */
at_status at_archive_write(const struct at_run_record *record, const char *path);
/* The same of a source, each result asked for once; `head`: request, provenance and folders of witnesses. Memory: a piece of
 * each column (AT_H5_PIECE_ROWS rows, some 100 MB in all), the texts of the cases and kernels, and 8 bytes a row of the ledger;
 * the rest lies in a scratch file. */
at_status at_archive_write_from(const struct at_run_record *head, const struct at_result_source *source,
                                const char *path);
/* Reads it back (attest show, merge). Refuses a newer major, ignores unknown columns. */
at_status at_archive_read(const char *path, struct at_run_record *record);

#include <stdio.h>
/* Table for people, one row a result, at most 120 columns; colour: 1 with ANSI colours. */
void at_report_table(const struct at_run_record *record, int strict, int colour, FILE *out);
/* The same without the summary below. */
void at_report_rows(const struct at_run_record *record, int strict, int colour, FILE *out);
/* The table with rows only for results that fail or are VACUOUS, and a line of counts per family. */
void at_report_table_brief(const struct at_run_record *record, int strict, int colour, FILE *out);
#endif
