/* The journal of a recording: a line for each layer that is begun or finished.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Entries: {"begun": N, "shard": "2/5"} alone; or {"layer": N, "shard": "2/5"} first, then {"request": R, "hash": "..."}
 * for each unit. The shard stands in every line because the journal's head says what was asked for and not which share
 * of it. */
#include "verify/record/dist_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/record.h"

static at_status remember(struct at_dist_journal *j, int64_t layer, enum at_dist_progress progress) {
    if (j->n == j->capacity) {
        const int64_t capacity = j->capacity ? 2 * j->capacity : 64;
        struct at_dist_journal_layer *more = realloc(j->layer, (size_t)capacity * sizeof *more);
        if (!more)
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld layers", (long long)capacity);
        j->layer = more;
        j->capacity = capacity;
    }
    j->layer[j->n++] = (struct at_dist_journal_layer){ layer, progress };
    return AT_OK;
}

static at_status take(void *context, const char *where, const json_t *entry) {
    struct at_dist_journal *j = context;
    const json_t *done = json_object_get(entry, "layer"), *layer = done ? done : json_object_get(entry, "begun");
    const char *shard = json_string_value(json_object_get(entry, "shard"));
    if (!layer)
        return json_is_integer(json_object_get(entry, "request"))
                   ? AT_OK
                   : AT_FAIL(AT_USAGE, "%s: wanted a layer or a request", where);
    if (!json_is_integer(layer) || !shard)
        return AT_FAIL(AT_USAGE, "%s: layer: wanted a number and its shard", where);
    if (strcmp(shard, j->shard) != 0)
        return AT_FAIL(AT_USAGE, "cannot resume %s, it is of shard '%.32s', this is '%s'", where, shard, j->shard);
    return remember(j, json_integer_value(layer), done ? AT_DIST_DONE : AT_DIST_BEGUN);
}

static void forget(void *context) { ((struct at_dist_journal *)context)->n = 0; }

at_status at_dist_journal_open(const char *out, const struct at_run_record *record, const char *shard, int resume,
                               struct at_dist_journal *journal) {
    const struct at_journal_head head = { record->request, record->provenance };
    const struct at_journal_content content = { .name = "units", .context = journal, .take = take, .forget = forget };
    char path[4352];
    *journal = (struct at_dist_journal){ 0 };
    snprintf(journal->shard, sizeof journal->shard, "%s", shard);
    if (snprintf(path, sizeof path, "%s.jsonl", out) >= (int)sizeof path)
        return AT_FAIL(AT_USAGE, "--out: the path is too long");
    return at_journal_file_open(path, &head, resume, &content, &journal->file);
}

enum at_dist_progress at_dist_journal_of(const struct at_dist_journal *j, int64_t layer) {
    enum at_dist_progress most = AT_DIST_UNKNOWN;
    for (int64_t i = 0; i < j->n; i++)
        if (j->layer[i].number == layer && j->layer[i].progress > most)
            most = j->layer[i].progress;
    return most;
}

at_status at_dist_journal_append(struct at_dist_journal *j, int64_t layer, enum at_dist_progress progress,
                                 const struct at_dist_unit_row *units, int64_t n) {
    if (at_dist_journal_of(j, layer) >= progress)
        return AT_OK;
    char **texts = calloc((size_t)n + 1, sizeof *texts);
    at_status status = AT_OK;
    if (!texts)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld units", (long long)n);
    for (int64_t i = 0; i <= n; i++) {
        json_t *entry =
            i == 0 ? json_pack("{s:I, s:s}", progress == AT_DIST_DONE ? "layer" : "begun", (json_int_t)layer, "shard",
                               j->shard)
                   : json_pack("{s:I, s:s}", "request", (json_int_t)units[i - 1].request, "hash", units[i - 1].hash);
        texts[i] = entry ? json_dumps(entry, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
        json_decref(entry);
        if (!texts[i])
            AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %lld units", (long long)n);
    }
    AT_TRY_OUT(at_journal_file_append(j->file, (const char *const *)texts, n + 1));
    AT_TRY_OUT(remember(j, layer, progress));
out:
    for (int64_t i = 0; i <= n; i++)
        free(texts[i]);
    free(texts);
    return status;
}

at_status at_dist_journal_finish(struct at_dist_journal *j) {
    struct at_journal *file = j->file;
    j->file = NULL;
    const at_status status = at_journal_finish(file, j->shard);
    at_dist_journal_abandon(j);
    return status;
}

void at_dist_journal_abandon(struct at_dist_journal *j) {
    at_journal_abandon(j->file);
    free(j->layer);
    *j = (struct at_dist_journal){ 0 };
}
