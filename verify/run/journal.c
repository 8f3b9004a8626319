/* The journal of a run of verify: its entries are results, all tensors of a job on one line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/run/journal.h"

#include <stdlib.h>
#include <string.h>

#include "verify/result/result_scan.h"

/* Who gets the results of a journal, one after the other. */
struct receiver {
    at_status (*put)(void *context, const struct at_result *result);
    void *context;
    struct at_run_record *forgotten; /* emptied when the journal is of an earlier run; NULL: nothing is */
    struct at_result *line;          /* results of a line */
    int64_t capacity;
};

static at_status take(void *context, const char *where, const json_t *entry) {
    struct receiver *r = context;
    struct at_result *result = malloc(sizeof *result);
    char *text = json_dumps(entry, JSON_COMPACT | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    at_status status = AT_OK;
    if (!result || !text)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for a result", where);
    AT_TRY_OUT(at_result_from_json(text, where, result));
    AT_TRY_OUT(r->put(r->context, result));
out:
    free(result);
    free(text);
    return status;
}

static at_status put_record(void *context, const struct at_result *result) {
    return at_run_record_add(context, result);
}

static at_status room_for(struct receiver *r, int64_t n) {
    if (n <= r->capacity)
        return AT_OK;
    struct at_result *grown = realloc(r->line, 2 * (size_t)n * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld results of a job", (long long)n);
    r->line = grown;
    r->capacity = 2 * n;
    return AT_OK;
}

/* All results of the line first: where one is written otherwise, none of them was taken. */
static at_status take_line(void *context, const char *where, const char *text, int64_t *n) {
    static const char head[] = "{\"event\":\"results\",\"results\":[";
    struct receiver *r = context;
    int64_t found = 0;
    (void)where;
    *n = 0;
    if (strncmp(text, head, sizeof head - 1) != 0)
        return AT_OK;
    text += sizeof head - 1;
    do {
        AT_TRY(room_for(r, found + 1));
        if (!at_result_scan(&text, &r->line[found++]))
            return AT_OK;
    } while (*text++ == ',');
    if (strcmp(text - 1, "]}\n") != 0)
        return AT_OK;
    for (int64_t i = 0; i < found; i++)
        AT_TRY(r->put(r->context, &r->line[i]));
    *n = found;
    return AT_OK;
}

static void forget(void *context) {
    const struct receiver *r = context;
    if (r->forgotten)
        at_run_record_release(r->forgotten);
}

static struct at_journal_content content_of(struct receiver *r) {
    return (struct at_journal_content){
        .name = "results", .context = r, .take = take, .forget = forget, .take_line = take_line
    };
}

at_status at_journal_open(const char *path, const struct at_run_record *record, int resume, struct at_run_record *done,
                          struct at_journal **journal) {
    at_run_record_init(done);
    return at_journal_open_into(path, record, resume, done, journal);
}

at_status at_journal_open_into(const char *path, const struct at_run_record *record, int resume,
                               struct at_run_record *done, struct at_journal **journal) {
    const struct at_journal_head head = { record->request, record->provenance };
    struct receiver r = { .put = put_record, .context = done, .forgotten = done };
    const struct at_journal_content content = content_of(&r);
    const at_status status = at_journal_file_open(path, &head, resume, &content, journal);
    free(r.line);
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

at_status at_journal_visit(const char *path, at_status (*put)(void *context, const struct at_result *result),
                           void *context, struct at_run_record *head, char shard[32], int *finished) {
    struct receiver r = { .put = put, .context = context };
    const struct at_journal_content content = content_of(&r);
    at_run_record_init(head);
    const at_status status = at_journal_file_read(path, &content, &head->request, &head->provenance, shard, finished);
    free(r.line);
    if (status != AT_OK)
        at_run_record_release(head);
    return status;
}

at_status at_journal_read(const char *path, struct at_run_record *record, char shard[32], int *finished) {
    return at_journal_visit(path, put_record, record, record, shard, finished);
}
