/* The table of report formats, and writing one of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/report/reports.h"

static const struct {
    const char *option, *file;
    at_status (*write)(const struct at_run_record *record, int strict, FILE *out);
} reports[AT_REPORT_COUNT] = {
#define X(name, file, help) { "--" #name, file, at_report_##name },
    AT_REPORT_LIST(X)
#undef X
};

const char *at_report_option(enum at_report report) { return reports[report].option; }

int at_report_is_file(enum at_report report) { return reports[report].file != NULL; }

at_status at_report_write(enum at_report report, const struct at_run_record *record, int strict, const char *path) {
    struct at_atomic_file file;
    if (!at_report_is_file(report))
        return reports[report].write(record, strict, stdout);
    AT_TRY(at_atomic_open(path, &file));
    const at_status status = reports[report].write(record, strict, file.stream);
    if (status != AT_OK) {
        at_atomic_abandon(&file);
        return status;
    }
    return at_atomic_commit(&file);
}
