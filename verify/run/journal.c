/* The journal of a run of verify: its entries are results, all tensors of a job on one line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/run/journal.h"

#include <stdlib.h>
#include <string.h>

static at_status take(void *context, const char *where, const json_t *entry) {
    struct at_run_record *record = context;
    struct at_result *result = malloc(sizeof *result);
    char *text = json_dumps(entry, JSON_COMPACT | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    at_status status = AT_OK;
    if (!result || !text)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for a result", where);
    AT_TRY_OUT(at_result_from_json(text, where, result));
    AT_TRY_OUT(at_run_record_add(record, result));
out:
    free(result);
    free(text);
    return status;
}

static void forget(void *context) { at_run_record_release(context); }

static struct at_journal_content content_of(struct at_run_record *record) {
    return (struct at_journal_content){ .name = "results", .context = record, .take = take, .forget = forget };
}

at_status at_journal_open(const char *path, const struct at_run_record *record, int resume, struct at_run_record *done,
                          struct at_journal **journal) {
    const struct at_journal_head head = { record->request, record->provenance };
    const struct at_journal_content content = content_of(done);
    at_run_record_init(done);
    const at_status status = at_journal_file_open(path, &head, resume, &content, journal);
    if (status != AT_OK)
        at_run_record_release(done);
    return status;
}

at_status at_journal_append(struct at_journal *journal, const struct at_result *results, int n) {
    char **texts = calloc((size_t)n + 1, sizeof *texts);
    at_status status = texts ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for %d results", n);
    for (int i = 0; i < n && status == AT_OK; i++)
        status = at_result_to_json(&results[i], &texts[i]);
    if (status == AT_OK)
        status = at_journal_file_append(journal, (const char *const *)texts, n);
    for (int i = 0; i < n && texts; i++)
        free(texts[i]);
    free(texts);
    return status;
}

at_status at_journal_read(const char *path, struct at_run_record *record, char shard[32], int *finished) {
    const struct at_journal_content content = content_of(record);
    at_run_record_init(record);
    const at_status status =
        at_journal_file_read(path, &content, &record->request, &record->provenance, shard, finished);
    if (status != AT_OK)
        at_run_record_release(record);
    return status;
}
