/* The measurements that claims are held against: archives with tables, and who measured them, where and when.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_EVIDENCE_H
#define AT_EVIDENCE_H

#include "attest/status.h"
#include "verify/bench/bench.h"
#include "verify/result/table.h"

enum { AT_EVIDENCE_TABLES = 16 };

/* One archive, or the rows of a benchmark that has just run. */
struct at_run_evidence {
    char file[256];                         /* its name; "this run" */
    char device[160], commit[64], date[16]; /* "": nobody says */
    struct at_table_rows tables[AT_EVIDENCE_TABLES];
    int n_tables;
    char (*cases)[1024]; /* of the benchmark's rows: their ids with every key that the language has today */
};

struct at_evidence {
    struct at_run_evidence *runs; /* newest first: by date, and by name backwards */
    int n;
    char resources[1100]; /* table of registers and shared memory beside the archives; "": none */
    char resources_date[16];
};

/* `from`: paths with commas between, each an archive or a folder, of which every *.h5 is read; dates are from the table of
 * a README.md beside an archive. An archive that is damaged or cannot be read is an error; one without tables is passed over. */
at_status at_evidence_load(const char *from, struct at_evidence *evidence);
/* Rows that were just measured, which move into `evidence`; nothing else is in it but the resources of the tree. */
at_status at_evidence_of_run(struct at_bench_run *run, struct at_evidence *evidence);
void at_evidence_release(struct at_evidence *evidence);

/* The table of a group, NULL: this archive has none. */
const struct at_table_rows *at_evidence_table(const struct at_run_evidence *run, const char *group);
/* The group of some content's table; NULL: no archive can have it. */
const struct at_table *at_table_named(const char *group);

#endif
