/* Results as JSON lines, one a result, in the order of the record.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/result/record.h"

at_status at_report_jsonl(const struct at_run_record *record, const char *path) {
    struct at_atomic_file file;
    AT_TRY(at_atomic_open(path, &file));
    for (int64_t i = 0; i < record->n; i++) {
        char *line = NULL;
        at_status status = at_result_to_json(&record->results[i], &line);
        if (status != AT_OK) {
            at_atomic_abandon(&file);
            return status;
        }
        fprintf(file.stream, "%s\n", line); /* a failure stays with the stream, and commit reports it */
        free(line);
    }
    return at_atomic_commit(&file);
}
