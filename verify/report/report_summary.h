/* What stands below the table: counts, what was compared, what proves nothing, the exit code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORT_SUMMARY_H
#define AT_REPORT_SUMMARY_H

#include <stdio.h>

#include "verify/result/record.h"

/* A run in sums: what its results add up to, one after the other in their order, so that they need not be in memory. */
struct at_summary;
struct at_family_rows;
/* NULL: no memory. */
struct at_summary *at_summary_create(int strict);
void at_summary_destroy(struct at_summary *summary); /* NULL is allowed */
at_status at_summary_add(struct at_summary *summary, const struct at_result *result);
/* Fields of results that it looks at, NULL at the end: what at_archive_scan() must read. */
extern const char *const at_summary_fields[];
/* What stands below the table. `run`: of the process alone (signal, planned, is_part; jobs of a run cut short). */
void at_summary_put(const struct at_summary *summary, const struct at_run_record *run, FILE *out);
/* A line "FAMILY: 12 PASS, 1 WRONG" for each family. */
void at_summary_put_families(const struct at_summary *summary, FILE *out);
/* As at_run_record_exit_code(); and 1 for a strict run of which a loose claim was never tested (at_tallies_blind()). */
int at_summary_exit_code(const struct at_summary *summary, const struct at_run_record *run);

/* The summary of a record. */
void at_put_summary(const struct at_run_record *record, int strict, FILE *out);
/* The same, of a record with `stored`, too. */
int at_report_exit_code(const struct at_run_record *record, int strict);
/* "    12 PASS, 1 WRONG" over the results of one family. */
void at_put_family_counts(const struct at_run_record *record, const struct at_family_rows *family, FILE *out);
/* `label`, then the words of `text`; further lines start with four spaces. A single word may be longer than
 * `width`. */
void at_put_wrapped(FILE *out, const char *label, const char *text, int width);

#endif
