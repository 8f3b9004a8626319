/* The report formats of a run. A new one is a file report_NAME.c and a line here: the option --NAME, its help and the
 * checks of its file follow from the list.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORTS_H
#define AT_REPORTS_H

#include <stdio.h>

#include "verify/result/record.h"

/* name, the file that --NAME wants (NULL: the report goes to stdout), help */
/* clang-format off */
#define AT_REPORT_LIST(X)                                        \
    X(junit,  "F.xml",   "write JUnit XML")                      \
    X(json,   "F.jsonl", "write the results as JSON lines")      \
    X(github, NULL,      "print GitHub annotations for what fails")
/* clang-format on */

enum at_report {
#define X(name, file, help) AT_REPORT_##name,
    AT_REPORT_LIST(X)
#undef X
        AT_REPORT_COUNT
};

/* Each writes its text to `out`; a write that fails stays with the stream, for who closes it. */
#define X(name, file, help) at_status at_report_##name(const struct at_run_record *record, int strict, FILE *out);
AT_REPORT_LIST(X)
#undef X

/* "--junit". */
const char *at_report_option(enum at_report report);
/* 1: wants a path; 0: goes to stdout. */
int at_report_is_file(enum at_report report);
/* The report into the file at `path`, which appears whole or not at all; of a report that is no file, to stdout. */
at_status at_report_write(enum at_report report, const struct at_run_record *record, int strict, const char *path);

#endif
