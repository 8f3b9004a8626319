/* What stands below the table: counts, what was compared, what proves nothing, the exit code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORT_SUMMARY_H
#define AT_REPORT_SUMMARY_H

#include <stdio.h>

#include "verify/result/record.h"

void at_put_summary(const struct at_run_record *record, int strict, FILE *out);
/* A line for each variant, when there are more than a couple: results judged, right, failing, VACUOUS, declined, and the
 * largest error over limit. */
void at_put_variants(const struct at_run_record *record, int strict, FILE *out);
/* A line for each selected variant that was never judged, with the first reason. */
void at_put_unjudged(const struct at_run_record *record, FILE *out);
/* A line for each variant that was set aside: after what, and how many of its jobs were not run. */
void at_put_set_aside(const struct at_run_record *record, FILE *out);
/* "    12 PASS, 1 WRONG" over the results of one family. */
void at_put_family_counts(const struct at_run_record *record, const char *family, FILE *out);
/* `label`, then the words of `text`; further lines start with four spaces. A single word may be longer than
 * `width`. */
void at_put_wrapped(FILE *out, const char *label, const char *text, int width);

#endif
