/* Writes a sample archive, for tests that read it from other programs: make_archive OUT.h5 [results
 * [OUT.xml]]; OUT.xml is its JUnit report.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/sample_record.h"
#include "verify/report/reports.h"

int main(int argc, char **argv) {
    struct at_run_record record;
    if (argc < 2) {
        fprintf(stderr, "usage: %s OUT.h5 [results [OUT.xml]]\n", argv[0]);
        return 2;
    }
    if (!at_sample_record(&record, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 26)) {
        fprintf(stderr, "no memory\n");
        at_run_record_release(&record);
        return 3;
    }
    at_status status = at_archive_write(&record, argv[1]);
    if (status == AT_OK && argc > 3)
        status = at_report_write(AT_REPORT_junit, &record, 0, argv[3]);
    if (status != AT_OK)
        fprintf(stderr, "%s\n", at_error_trail());
    at_run_record_release(&record);
    return at_status_exit_code(status);
}
