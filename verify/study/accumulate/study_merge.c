/* Joining the shards of a study of accumulation: its plan is made again from the request, and says whose case comes next.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/study/accumulate/study.h"
#include "verify/study/accumulate/study_journal.h"
#include "verify/study/accumulate/study_plan.h"

int at_study_is_accumulate(const char *path) {
    struct at_table_rows rows = { .table = &at_study_table_accumulate };
    struct at_run_record record;
    at_run_record_init(&record);
    const int is = at_archive_read_tables(path, &rows, 1, &record) == AT_OK && rows.n >= 0;
    free(rows.rows);
    at_run_record_release(&record);
    return is;
}

struct merge {
    const char *const *paths;
    struct at_study_shard *shard; /* [n], as they were given */
    int *of;                      /* [n] which of them is shard i; -1: none yet */
    int64_t *next;                /* [n] its next case */
    int n;
    struct at_run_record record;
};

static at_status read_one(struct merge *m, int i) {
    struct at_run_record record;
    char path[4096], difference[512] = "";
    int shard, shards;
    at_status status = AT_OK;
    at_run_record_init(&record);
    if (snprintf(path, sizeof path, "%s.jsonl", m->paths[i]) >= (int)sizeof path)
        return AT_FAIL(AT_USAGE, "merge: the path is too long");
    AT_TRY_OUT(at_study_journal_read(path, &m->shard[i], &record));
    if (sscanf(m->shard[i].shard, "%d/%d", &shard, &shards) != 2)
        AT_FAIL_OUT(AT_USAGE, "%s: is a whole study, not a shard", m->paths[i]);
    if (shards != m->n || shard < 1 || shard > m->n)
        AT_FAIL_OUT(AT_USAGE, "%s: is shard %d of %d, and %d were given", m->paths[i], shard, shards, m->n);
    if (m->of[shard - 1] >= 0)
        AT_FAIL_OUT(AT_USAGE, "%s: shard %d/%d is given twice", m->paths[i], shard, shards);
    m->of[shard - 1] = i;
    if (i && (at_json_difference(m->record.request, record.request, difference, sizeof difference) ||
              at_json_difference(m->record.provenance, record.provenance, difference, sizeof difference)))
        AT_FAIL_OUT(AT_USAGE, "%s and %s are of different studies or builds: %s", m->paths[0], m->paths[i], difference);
    if (i == 0) {
        m->record = record;
        return AT_OK;
    }
out:
    at_run_record_release(&record);
    return status;
}

static void read_sizes(const json_t *list, struct at_study_sizes *sizes) {
    *sizes = (struct at_study_sizes){ 0 };
    for (size_t i = 0; i < json_array_size(list) && sizes->n < AT_STUDY_SIZES; i++)
        sizes->value[sizes->n++] = json_integer_value(json_array_get(list, i));
}

static at_status plan_again(const struct merge *m, struct at_study_plan *plan) {
    json_t *request = json_loads(m->record.request, 0, NULL);
    const char *data = json_string_value(json_object_get(request, "data"));
    const char *attention = json_string_value(json_object_get(request, "attention"));
    struct at_study_sizes lengths, d;
    read_sizes(json_object_get(request, "lengths"), &lengths);
    read_sizes(json_object_get(request, "d"), &d);
    const uint64_t seed = (uint64_t)json_integer_value(json_object_get(request, "seed"));
    const at_status status = data && attention
                                 ? at_study_plan_make(data, strcmp(attention, "softmax") != 0,
                                                      strcmp(attention, "asynct") != 0, &lengths, &d, seed, plan)
                                 : AT_FAIL(AT_USAGE, "%s: is no study of accumulation", m->paths[0]);
    json_decref(request);
    return status;
}

/* The rows of the next case of a shard, to the end of `rows`. */
static at_status take_case(struct merge *m, int i, struct at_study_rows *rows) {
    const struct at_study_shard *shard = &m->shard[i];
    const int64_t at = m->next[i]++;
    struct at_study_row *to;
    if (at >= shard->n_cases)
        return AT_FAIL(AT_USAGE, "%s: has %lld cases, the study wants more of it; was it made with other recordings?",
                       m->paths[i], (long long)shard->n_cases);
    const int64_t begin = shard->begins[at], n = shard->begins[at + 1] - begin;
    AT_TRY(at_study_rows_add(rows, n, &to));
    memcpy(to, shard->rows.items + begin, (size_t)n * sizeof *to);
    return AT_OK;
}

static at_status join(struct merge *m, const struct at_study_plan *plan, struct at_study_rows *rows) {
    int *dealt = calloc((size_t)plan->n + 1, sizeof *dealt);
    at_status status = AT_OK;
    if (!dealt)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld cases", (long long)plan->n);
    AT_TRY_OUT(at_study_plan_deal(plan, m->n, dealt));
    for (int64_t i = 0; i < plan->n; i++)
        AT_TRY_OUT(take_case(m, m->of[dealt[i]], rows));
    for (int i = 0; i < m->n; i++)
        if (m->next[i] != m->shard[i].n_cases)
            AT_FAIL_OUT(AT_USAGE, "%s: has %lld cases, wanted %lld", m->paths[i], (long long)m->shard[i].n_cases,
                        (long long)m->next[i]);
    status = at_study_fit(rows);
out:
    free(dealt);
    return status;
}

static at_status merge(struct merge *m, struct at_study_plan *plan, struct at_study_rows *rows, const char *out) {
    m->shard = calloc((size_t)m->n, sizeof *m->shard);
    m->of = calloc((size_t)m->n, sizeof *m->of);
    m->next = calloc((size_t)m->n, sizeof *m->next);
    if (!m->shard || !m->of || !m->next)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d shards", m->n);
    for (int i = 0; i < m->n; i++)
        m->of[i] = -1;
    for (int i = 0; i < m->n; i++)
        AT_TRY(read_one(m, i));
    AT_TRY(plan_again(m, plan));
    AT_TRY(join(m, plan, rows));
    const struct at_table_rows table = { &at_study_table_accumulate, rows->items, rows->n };
    return at_archive_write_tables(&table, 1, &m->record, out);
}

at_status at_study_merge(const char *const *paths, int n, const char *out) {
    struct merge m = { .paths = paths, .n = n };
    struct at_study_plan plan = { 0 };
    struct at_study_rows rows = { 0 };
    at_run_record_init(&m.record);
    const at_status status = merge(&m, &plan, &rows, out);
    for (int i = 0; m.shard && i < n; i++)
        at_study_shard_release(&m.shard[i]);
    free(m.shard);
    free(m.of);
    free(m.next);
    at_study_rows_release(&rows);
    at_study_plan_release(&plan);
    at_run_record_release(&m.record);
    return status;
}
