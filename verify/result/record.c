/* A run's record: gathered, put in order, merged from shards, and judged as a whole.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/result/record.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "verify/result/hash_index.h"
#include "verify/result/result_heap.h"
#include "verify/result/text.h"

void at_run_record_init(struct at_run_record *record) { *record = (struct at_run_record){ 0 }; }

void at_run_record_release(struct at_run_record *record) {
    free(record->request);
    free(record->provenance);
    free(record->results);
    if (record->stored)
        at_result_heap_release(record->stored);
    free(record->stored);
    for (int i = 0; i < record->n_witness; i++)
        free(record->witness[i]);
    free(record->witness);
    at_run_record_init(record);
}

at_status at_run_record_store(struct at_run_record *record, const char *beside) {
    record->stored = calloc(1, sizeof *record->stored);
    if (!record->stored)
        return AT_FAIL(AT_NO_MEMORY, "no memory for results");
    record->stored->scratch.beside = beside;
    return AT_OK;
}

int64_t at_run_record_place(const struct at_run_record *record, int64_t i) {
    return record->stored ? record->stored->entries[i].plan_index : record->results[i].plan_index;
}

const struct at_result *at_run_record_at(const struct at_run_record *record, int64_t i) {
    static const struct at_result none;
    const struct at_result *result = &none;
    if (!record->stored)
        return &record->results[i];
    if (record->stored->failed == AT_OK)
        record->stored->failed = at_result_heap_get(record->stored, i, &result);
    return record->stored->failed == AT_OK ? result : &none;
}

at_status at_run_record_readable(const struct at_run_record *record) {
    return record->stored ? record->stored->failed : AT_OK; /* the trail is that of the read */
}

static at_status reserve(struct at_run_record *record, int64_t n) {
    if (n <= record->capacity)
        return AT_OK;
    int64_t capacity = record->capacity ? record->capacity : 16;
    while (capacity < n)
        capacity *= 2;
    struct at_result *results = realloc(record->results, (size_t)capacity * sizeof *results);
    if (!results)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " results of %zu bytes", capacity, sizeof *results);
    record->results = results;
    record->capacity = capacity;
    return AT_OK;
}

static void clean_texts(struct at_result *result) {
    const struct at_field *field;
    for (int i = 0; (field = at_result_field(i)); i++)
        if (field->kind == AT_FIELD_TEXT)
            at_text_clean(at_field_at(field, result));
}

at_status at_run_record_add(struct at_run_record *record, const struct at_result *result) {
    if (record->stored) {
        AT_TRY(at_result_heap_add(record->stored, result));
        record->n = record->stored->n;
        return AT_OK;
    }
    AT_TRY(reserve(record, record->n + 1));
    record->results[record->n] = *result;
    clean_texts(&record->results[record->n++]);
    return AT_OK;
}

void at_run_record_take(struct at_run_record *record, struct at_run_record *from) {
    record->results = from->results;
    record->n = from->n;
    record->capacity = from->capacity;
    record->stored = from->stored;
    from->results = NULL;
    from->n = from->capacity = 0;
    from->stored = NULL;
}

at_status at_run_record_add_witness(struct at_run_record *record, const char *folder) {
    char **list = realloc(record->witness, ((size_t)record->n_witness + 1) * sizeof *list);
    if (list)
        record->witness = list;
    if (!list || !(list[record->n_witness] = strdup(folder)))
        return AT_FAIL(AT_NO_MEMORY, "no memory for a folder's name");
    record->n_witness++;
    return AT_OK;
}

static int compare_results(const void *a, const void *b) { return at_result_compare(a, b); }

at_status at_run_record_sort(struct at_run_record *record) {
    if (record->stored)
        return at_result_heap_sort(record->stored);
    if (record->n > 1)
        qsort(record->results, (size_t)record->n, sizeof record->results[0], compare_results);
    return AT_OK;
}

/* ---- comparing canonical JSON ---- */

static void put_value(const json_t *value, char *text, size_t size) {
    char *dumped = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
    snprintf(text, size, "%.80s", dumped ? dumped : "missing");
    at_text_clean(text);
    free(dumped);
}

/* Goes down into objects, so that the key named is the one that differs. */
static int find_difference(const char *path, const json_t *a, const json_t *b, char *text, size_t size) {
    if (json_equal(a, b))
        return 0;
    if (json_is_object(a) && json_is_object(b)) {
        const json_t *sides[2] = { a, b };
        for (int side = 0; side < 2; side++)
            for (void *it = json_object_iter((json_t *)sides[side]); it;
                 it = json_object_iter_next((json_t *)sides[side], it)) {
                char inner[256];
                const char *key = json_object_iter_key(it);
                snprintf(inner, sizeof inner, "%s%s%s", path, path[0] ? "." : "", key);
                if (find_difference(inner, json_object_get(a, key), json_object_get(b, key), text, size))
                    return 1;
            }
    }
    char left[88], right[88];
    put_value(a, left, sizeof left);
    put_value(b, right, sizeof right);
    snprintf(text, size, "%s: %s here, %s there", path[0] ? path : "all of it", left, right);
    return 1;
}

int at_json_difference(const char *a, const char *b, char *text, size_t size) {
    a = a ? a : "null";
    b = b ? b : "null";
    if (strcmp(a, b) == 0)
        return 0;
    json_t *left = json_loads(a, JSON_DECODE_ANY, NULL), *right = json_loads(b, JSON_DECODE_ANY, NULL);
    int differs = 1;
    if (left && right)
        differs = find_difference("", left, right, text, size);
    else
        snprintf(text, size, "all of it: %.80s here, %.80s there", a, b);
    json_decref(left);
    json_decref(right);
    return differs;
}

/* ---- merging ---- */

at_status at_run_record_same_run(const struct at_run_record *first, const struct at_run_record *shard, int i) {
    char difference[512];
    if (at_json_difference(first->request, shard->request, difference, sizeof difference))
        return AT_FAIL(AT_USAGE, "shard %d answers another request than shard 1: %s", i + 1, difference);
    if (at_json_difference(first->provenance, shard->provenance, difference, sizeof difference))
        return AT_FAIL(AT_USAGE, "shard %d was made by another build or machine than shard 1: %s", i + 1, difference);
    return AT_OK;
}

at_status at_record_complete(const struct at_run_record *record, int64_t positions) {
    int64_t next = 0;
    for (int64_t i = 0; i < record->n; i++) {
        int64_t at = record->results[i].plan_index;
        if (at > next)
            break;
        if (at == next)
            next++;
    }
    if (next < positions)
        return AT_FAIL(AT_USAGE, "results are missing: plan position %" PRId64 " of %" PRId64 " has none", next,
                       positions);
    if (record->n && record->results[record->n - 1].plan_index >= positions)
        return AT_FAIL(AT_USAGE, "a result is of plan position %" PRId64 ", but the plan has %" PRId64,
                       record->results[record->n - 1].plan_index, positions);
    return AT_OK;
}

/* ---- the run as a whole ---- */

int64_t at_run_record_jobs(const struct at_run_record *record) {
    int64_t jobs = 0;
    for (int64_t i = 0; i < record->n; i++)
        jobs += i == 0 || at_run_record_place(record, i) != at_run_record_place(record, i - 1);
    return jobs;
}

static int same_variant(const struct at_result *a, const struct at_result *b) {
    return strcmp(a->variant, b->variant) == 0 && strcmp(a->family, b->family) == 0;
}

static int is_judged(const struct at_result *r) { return at_state_class(r->state) != AT_CLASS_DECLINED; }

/* The first result of each variant; judged: any of its results was. */
struct variant {
    const struct at_result *first;
    int judged;
};

struct variants {
    struct variant *list; /* room for one a result */
    struct at_hash_index index;
    const struct at_result *wanted;
};

static int is_wanted(const void *context, int64_t number) {
    const struct variants *v = context;
    return same_variant(v->list[number].first, v->wanted);
}

static at_status find_variants(const struct at_run_record *record, struct variants *v) {
    v->list = calloc((size_t)record->n + 1, sizeof *v->list);
    if (!v->list)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the variants of %" PRId64 " results", record->n);
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *r = v->wanted = &record->results[i];
        const uint64_t family = at_hash_bytes(r->family, strlen(r->family), AT_HASH_START);
        const uint64_t hash = at_hash_bytes(r->variant, strlen(r->variant), family);
        int64_t number = at_hash_index_find(&v->index, hash, is_wanted, v);
        if (number < 0) {
            number = v->index.n;
            v->list[number].first = r;
            AT_TRY(at_hash_index_add(&v->index, hash));
        }
        v->list[number].judged |= is_judged(r);
    }
    return AT_OK;
}

at_status at_run_record_unjudged(const struct at_run_record *record, int64_t *i, const struct at_result **found) {
    struct variants v = { 0 };
    at_status status = AT_OK;
    *found = NULL;
    if (record->is_part)
        return AT_OK;
    AT_TRY_OUT(find_variants(record, &v));
    for (int64_t k = 0; k < v.index.n && !*found; k++) /* in the order of their first results */
        if (!v.list[k].judged && v.list[k].first >= record->results + *i)
            *found = v.list[k].first;
    *i = *found ? *found - record->results + 1 : record->n;
out:
    free(v.list);
    at_hash_index_release(&v.index);
    return status;
}

int at_run_record_exit_code(const struct at_run_record *record, int strict) {
    int64_t judged = 0, first = 0;
    if (record->signal)
        return 128 + record->signal;
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *r = &record->results[i];
        if (at_state_fails(r->state, r->expect, strict))
            return 1;
        judged += is_judged(r);
    }
    if (!judged)
        return 4;
    const struct at_result *unjudged = NULL;
    const at_status status = strict ? at_run_record_unjudged(record, &first, &unjudged) : AT_OK;
    if (status != AT_OK)
        return at_status_exit_code(status);
    return unjudged ? 1 : 0;
}
