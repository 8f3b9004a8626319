/* Results as JSON lines, one a result, in the order of the record.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/report/reports.h"

at_status at_report_json(const struct at_run_record *record, int strict, FILE *out) {
    (void)strict;
    for (int64_t i = 0; i < record->n; i++) {
        char *line = NULL;
        AT_TRY(at_result_to_json(at_run_record_at(record, i), &line));
        fprintf(out, "%s\n", line);
        free(line);
    }
    return at_run_record_readable(record);
}
