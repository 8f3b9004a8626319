/* The journal of a study: the rows of a case share a line, so a case is there whole or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/accumulate/study_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/field_json.h"

static char *row_text(const struct at_study_row *row) {
    const struct at_field *field;
    json_t *object = json_object();
    int failed = 0;
    for (int i = 0; (field = at_study_field(i)); i++)
        failed |= json_object_set_new(object, field->name, at_field_to_json(field, row));
    failed |= json_object_set_new(object, "ledger", at_ledger_row_to_json(&row->ledger));
    char *text = failed ? NULL : json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(object);
    return text;
}

static at_status take(void *context, const char *where, const json_t *entry) {
    struct at_study_rows *rows = context;
    const struct at_json_place in = { where, "" }, inside = { where, "ledger." };
    const struct at_field *field;
    struct at_study_row *row;
    AT_TRY(at_study_rows_add(rows, 1, &row));
    for (int i = 0; (field = at_study_field(i)); i++)
        AT_TRY(at_field_from_json(&in, field, entry, row));
    return at_ledger_row_from_json(&inside, json_object_get(entry, "ledger"), &row->ledger);
}

static void forget(void *context) { at_study_rows_release(context); }

at_status at_study_journal_open(const char *path, const struct at_run_record *record, int resume,
                                struct at_study_rows *rows, struct at_journal **journal) {
    const struct at_journal_head head = { record->request, record->provenance };
    const struct at_journal_content content = { .name = "rows", .context = rows, .take = take, .forget = forget };
    return at_journal_file_open(path, &head, resume, &content, journal);
}

at_status at_study_journal_append(struct at_journal *journal, const struct at_study_row *rows, int64_t n) {
    char **texts = calloc((size_t)n + 1, sizeof *texts);
    at_status status = AT_OK;
    if (!texts)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld rows", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        texts[i] = row_text(&rows[i]);
        if (!texts[i])
            AT_FAIL_OUT(AT_NO_MEMORY, "study: no memory for a row");
    }
    AT_TRY_OUT(at_journal_file_append(journal, (const char *const *)texts, n));
out:
    for (int64_t i = 0; i < n; i++)
        free(texts[i]);
    free(texts);
    return status;
}

/* ---- a shard's, read as a whole ---- */

/* The entries of a case share a line, and so the name of their place. */
static at_status take_of_shard(void *context, const char *where, const json_t *entry) {
    struct at_study_shard *shard = context;
    if (strcmp(where, shard->place) != 0) {
        if (shard->n_cases + 1 >= shard->capacity) {
            const int64_t capacity = 2 * shard->capacity + 64;
            int64_t *begins = realloc(shard->begins, (size_t)capacity * sizeof *begins);
            if (!begins)
                return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %lld cases", where, (long long)capacity);
            shard->begins = begins;
            shard->capacity = capacity;
        }
        snprintf(shard->place, sizeof shard->place, "%s", where);
        shard->begins[shard->n_cases++] = shard->rows.n;
    }
    AT_TRY(take(&shard->rows, where, entry));
    shard->begins[shard->n_cases] = shard->rows.n;
    return AT_OK;
}

static void forget_shard(void *context) { at_study_shard_release(context); }

at_status at_study_journal_read(const char *path, struct at_study_shard *shard, struct at_run_record *record) {
    const struct at_journal_content content = {
        .name = "rows", .context = shard, .take = take_of_shard, .forget = forget_shard
    };
    int finished;
    *shard = (struct at_study_shard){ 0 };
    AT_TRY(at_journal_file_read(path, &content, &record->request, &record->provenance, shard->shard, &finished));
    return finished ? AT_OK : AT_FAIL(AT_USAGE, "%s: this shard's study did not end; finish it with --resume", path);
}

void at_study_shard_release(struct at_study_shard *shard) {
    at_study_rows_release(&shard->rows);
    free(shard->begins);
    *shard = (struct at_study_shard){ 0 };
}
