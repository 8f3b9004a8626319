/* The cases of a study.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/accumulate/study_plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "datasets/fill/data.h"
#include "datasets/readers/dataset.h"
#include "verify/plan/balance.h"

/* Products that building a case is worth, and those of a recorded layer. */
static const double A_CASE = 64, A_RECORDING = 400;

static int by_size(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

at_status at_study_sizes_parse(const char *option, const char *text, int64_t low, int64_t high,
                               struct at_study_sizes *sizes) {
    int64_t found[AT_STUDY_SIZES];
    int n = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        const long long value = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || errno || value < low || value > high)
            return AT_FAIL(AT_USAGE, "%s: found \"%.60s\", wanted whole numbers from %lld to %lld with commas between",
                           option, text, (long long)low, (long long)high);
        if (n == AT_STUDY_SIZES)
            return AT_FAIL(AT_USAGE, "%s: more than %d numbers", option, AT_STUDY_SIZES);
        found[n++] = value;
        at = end;
        if (!*at)
            break;
    }
    qsort(found, (size_t)n, sizeof *found, by_size);
    sizes->n = 0;
    for (int i = 0; i < n; i++)
        if (i == 0 || found[i] != found[i - 1])
            sizes->value[sizes->n++] = found[i];
    return AT_OK;
}

static at_status add(struct at_study_plan *plan, const char *attention, const char *data, int with_qk,
                     struct at_study_case **added) {
    if (plan->n == plan->capacity) {
        const int64_t capacity = 2 * plan->capacity + 64;
        struct at_study_case *items = realloc(plan->items, (size_t)capacity * sizeof *items);
        if (!items)
            return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld cases", (long long)capacity);
        plan->items = items;
        plan->capacity = capacity;
    }
    *added = &plan->items[plan->n++];
    **added = (struct at_study_case){ .with_qk = with_qk };
    snprintf((*added)->attention, sizeof(*added)->attention, "%s", attention);
    snprintf((*added)->data, sizeof(*added)->data, "%s", data);
    return AT_OK;
}

/* Two requests with two heads each: families that spare request 0, or attack q.k in one head and p.v in the other,
 * show all they have. */
static at_status add_family(struct at_study_plan *plan, const char *attention, const char *data,
                            const struct at_study_sizes *lengths, const struct at_study_sizes *d, uint64_t seed) {
    struct at_study_case *c;
    for (int i = 0; i < d->n; i++)
        for (int j = 0; j < lengths->n; j++) {
            AT_TRY(add(plan, attention, data, j == lengths->n - 1, &c));
            c->cost = A_CASE + (double)lengths->value[j] + (c->with_qk ? (double)d->value[i] : 0);
            snprintf(c->line, sizeof c->line,
                     "%s_decode b=2 h=2 hk=2 sk=%" PRId64 " d=%" PRId64 " dtype=f16 data=%s seed=%" PRIu64, attention,
                     lengths->value[j], d->value[i], data, seed);
        }
    return AT_OK;
}

static at_status add_families(const char *glob, const char *attention, const struct at_study_sizes *lengths,
                              const struct at_study_sizes *d, uint64_t seed, struct at_study_plan *plan) {
    for (int i = 0; i < at_data_count(); i++) {
        const struct at_data_family *family = at_data_at(i);
        if ((family->uses & AT_DATA_ATTENTION) && fnmatch(glob, family->name, FNM_EXTMATCH) == 0)
            AT_TRY(add_family(plan, attention, family->name, lengths, d, seed));
    }
    return AT_OK;
}

/* Layers are numbered from 0 without a gap. */
static at_status count_layers(const char *dataset, int *layers) {
    char path[4096], name[64];
    struct at_reader *reader;
    snprintf(path, sizeof path, "%s/activations/%s.safetensors", at_datasets_dir(), dataset);
    AT_TRY(at_reader_open(path, &reader));
    for (*layers = 0;; ++*layers) {
        snprintf(name, sizeof name, "layers.%d.q", *layers);
        if (at_reader_find(reader, name) < 0)
            break;
    }
    at_reader_close(reader);
    return AT_OK;
}

static at_status add_dataset(const char *glob, const char *attention, const char *dataset, struct at_study_plan *plan) {
    struct at_study_case *c;
    int layers;
    AT_TRY(count_layers(dataset, &layers));
    for (int i = 0; i < layers; i++) {
        char name[40];
        snprintf(name, sizeof name, "%.28s/%d", dataset, i);
        if (fnmatch(glob, name, FNM_EXTMATCH) != 0)
            continue;
        AT_TRY(add(plan, attention, name, 1, &c));
        c->cost = A_RECORDING;
        snprintf(c->line, sizeof c->line, "%s_prefill dataset=%.100s layer=%d dtype=f16", attention, dataset, i);
    }
    return AT_OK;
}

static at_status add_datasets(const char *glob, const char *attention, struct at_study_plan *plan) {
    char **names = NULL;
    int n = 0;
    at_status status = at_recorded_list(&names, &n);
    if (status == AT_NOT_FOUND) {
        fprintf(stderr, "attest: study: %s; going on without recorded activations\n", at_error_message());
        return AT_OK;
    }
    for (int i = 0; i < n && names; i++) {
        if (status == AT_OK && names[i])
            status = add_dataset(glob, attention, names[i], plan);
        free(names[i]);
    }
    free(names);
    return status;
}

static at_status nothing_matches(const char *glob) {
    const char *names[64];
    int n = 0;
    for (int i = 0; i < at_data_count() && n < 64; i++)
        if (at_data_at(i)->uses & AT_DATA_ATTENTION)
            names[n++] = at_data_at(i)->name;
    const char *nearest = at_nearest_name(glob, names, n);
    return AT_FAIL(AT_NOT_FOUND, "study: --data '%s' is no data family of attention and no DATASET/LAYER%s%s%s", glob,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

at_status at_study_plan_make(const char *data, int asynct, int softmax, const struct at_study_sizes *lengths,
                             const struct at_study_sizes *d, uint64_t seed, struct at_study_plan *plan) {
    static const char *const attentions[] = { "asynct", "softmax" };
    *plan = (struct at_study_plan){ 0 };
    for (int i = 0; i < 2; i++) {
        if (!(i ? softmax : asynct))
            continue;
        AT_TRY(add_families(data, attentions[i], lengths, d, seed, plan));
        AT_TRY(add_datasets(data, attentions[i], plan));
    }
    return plan->n ? AT_OK : nothing_matches(data);
}

at_status at_study_plan_deal(const struct at_study_plan *plan, int shards, int *shard) {
    struct at_balance_item *items = calloc((size_t)plan->n + 1, sizeof *items);
    if (!items)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for %lld cases", (long long)plan->n);
    for (int64_t i = 0; i < plan->n; i++)
        items[i].cost = plan->items[i].cost;
    const at_status status = at_balance(items, plan->n, shards, shard);
    free(items);
    return status;
}

void at_study_plan_release(struct at_study_plan *plan) {
    free(plan->items);
    *plan = (struct at_study_plan){ 0 };
}
