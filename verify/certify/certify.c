/* attest certify: every variant on every case of a plan, spread over workers, gathered in the plan's order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/certify/certify.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "attest/env.h"
#include "verify/certify/certify_measure.h"
#include "verify/cli/progress.h"
#include "verify/run/provenance.h"

struct certifying {
    const struct at_certify_options *options;
    struct at_runner **runners; /* [jobs]; 0 is the one that planned */
    struct at_plan plan;
    int with;
    struct at_certificate *found; /* [jobs of the plan][AT_PROPERTY_COUNT] */
    int64_t *first_job;           /* of each item of the plan */
    struct at_progress progress;
    pthread_mutex_t lock; /* of progress */
};

struct at_certify_options at_certify_defaults(void) {
    return (struct at_certify_options){ .selection = { .cases_glob = "certify:*", .cases_dir = "certify", .shards = 1 },
                                        .runner = "cpu",
                                        .properties = (1u << AT_PROPERTY_COUNT) - 1,
                                        .capacities = { 4, { 2, 4, 8, 16 } },
                                        .batches = { 3, { 8, 32, 128 } },
                                        .pieces = { 3, { 2, 3, 7 } },
                                        .pages = { 5, { 0, 8, 16, 32, 64 } },
                                        .one_by_one = 64,
                                        .jobs = at_threads() };
}

static void begin_row(const struct at_variant *v, int property, struct at_certificate *row) {
    *row = (struct at_certificate){ .value = "n/a" };
    snprintf(row->family, sizeof row->family, "%s", v->family);
    snprintf(row->variant, sizeof row->variant, "%s", v->name);
    snprintf(row->path, sizeof row->path, "%s", v->path);
    snprintf(row->sha256, sizeof row->sha256, "%s", v->sha256);
    snprintf(row->property, sizeof row->property, "%s", at_property_name(property));
    if (at_numerics_format(&v->numerics, row->numerics, sizeof row->numerics) != AT_OK)
        row->numerics[0] = 0;
}

/* ---- one job ---- */

/* What a property's settings came to. */
static void close_row(const struct at_measure *m, int property) {
    struct at_certificate *row = &m->rows[property];
    if (at_certificate_value(row) == AT_CERTIFIED_FAILED || at_settings_none(m, (enum at_property)property))
        return;
    if (row->from[0]) { /* bits differ, or may by what is declared */
        at_certificate_set(row, AT_CERTIFIED_NO);
        row->reason[0] = 0;
        return;
    }
    const int shown = row->settings > 0 && (property != AT_PROPERTY_split || (m->is_cut && m->path && m->n_ways > 1));
    if (!m->declared.repeats) {
        snprintf(row->reason, sizeof row->reason, "declares that its bits do not repeat");
    } else if (shown && m->not_zero[property]) {
        at_certificate_set(row, AT_CERTIFIED_YES);
        row->reason[0] = 0;
    } else if (row->settings && !m->not_zero[property]) {
        snprintf(row->reason, sizeof row->reason, "every element that could be compared is 0");
    } else if (!row->reason[0]) {
        snprintf(row->reason, sizeof row->reason, "the case has nothing to change");
    }
}

static at_status measure_properties(struct at_measure *m) {
    at_status status = AT_OK;
    int goes_on;
    AT_TRY_OUT(at_measure_first(m, &goes_on));
    for (int p = 0; p < AT_PROPERTY_COUNT && goes_on; p++)
        if (m->options->properties >> p & 1)
            AT_TRY_OUT(at_settings_of(m, (enum at_property)p));
    for (int p = 0; p < AT_PROPERTY_COUNT; p++)
        close_row(m, p);
out:
    at_outputs_release(&m->first);
    return status;
}

/* Attention is laid out anew, page after page, so that nothing but a setting's own change lies between its bits and these. */
static at_status measure_on(struct certifying *k, struct at_runner *runner, const struct at_case *c, int variant,
                            const struct at_problem *problem, struct at_certificate *rows) {
    struct at_measure m = { .options = k->options,
                            .runner = runner,
                            .c = c,
                            .variant = variant,
                            .with = k->with,
                            .problem = problem,
                            .rows = rows };
    if (k->with >= 0)
        snprintf(rows[AT_PROPERTY_row].with, sizeof rows[AT_PROPERTY_row].with, "%s", k->options->with);
    return measure_properties(&m);
}

static at_status lay_out(const struct at_problem *from, struct at_trial *trial) {
    const struct at_trial_layout layout = at_trial_layout_of(from);
    struct at_piece *pieces = malloc((size_t)(from->sizes.b + 1) * sizeof *pieces);
    if (!pieces)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld requests", (long long)from->sizes.b);
    for (int64_t r = 0; r < from->sizes.b; r++)
        pieces[r] = at_trial_request(from, r);
    const at_status status = at_trial_pieces(from, pieces, from->sizes.b, &layout, trial);
    free(pieces);
    return status;
}

static at_status measure_item(struct certifying *k, struct at_runner *runner, int64_t item) {
    const struct at_plan_case *at = &k->plan.items[item];
    struct at_case_data data = { 0 };
    struct at_trial own = { 0 };
    at_status status = AT_OK;
    AT_TRY_OUT(at_case_build(at->c, &data));
    const int cut = at_trial_is_cut(&data.problem);
    if (cut)
        AT_TRY_OUT(lay_out(&data.problem, &own));
    for (int i = 0; i < at->n_variants && !at_session_signal(); i++) {
        const struct at_variant *v = at_runner_variant(runner, at->variants[i]);
        struct at_certificate *rows = k->found + (k->first_job[item] + i) * AT_PROPERTY_COUNT;
        for (int p = 0; p < AT_PROPERTY_COUNT; p++) {
            begin_row(v, p, &rows[p]);
            if (at->c->exact)
                snprintf(rows[p].reason, sizeof rows[p].reason, "exact data: every order gives the same bits");
        }
        if (!at->c->exact)
            AT_TRY_OUT(measure_on(k, runner, at->c, at->variants[i], cut ? &own.problem : &data.problem, rows));
        pthread_mutex_lock(&k->lock);
        at_progress_step(&k->progress, 1, 0, v->name);
        pthread_mutex_unlock(&k->lock);
    }
out:
    at_trial_release(&own);
    at_case_data_release(&data);
    return status;
}

static at_status work(void *context, int64_t begin, int64_t end, int worker) {
    struct certifying *k = context;
    if (!k->runners[worker])
        AT_TRY(at_runner_open(k->options->runner, &k->runners[worker]));
    for (int64_t item = begin; item < end && !at_session_signal(); item++)
        AT_TRY(measure_item(k, k->runners[worker], item));
    return AT_OK;
}

/* ---- gathering ---- */

static at_status gather(const struct certifying *k, struct at_certify_run *run) {
    const int n = at_runner_variant_count(k->runners[0]);
    run->rows = calloc((size_t)n * AT_PROPERTY_COUNT + 1, sizeof *run->rows);
    if (!run->rows)
        return AT_FAIL(AT_NO_MEMORY, "no memory for certificates of %d variants", n);
    for (int v = 0; v < n; v++) {
        struct at_certificate *sum = &run->rows[run->n];
        int met = 0;
        for (int64_t item = 0; item < k->plan.n_items; item++)
            for (int i = 0; i < k->plan.items[item].n_variants; i++) {
                const struct at_certificate *one = k->found + (k->first_job[item] + i) * AT_PROPERTY_COUNT;
                if (k->plan.items[item].variants[i] != v)
                    continue;
                for (int p = 0; !met && p < AT_PROPERTY_COUNT; p++) {
                    begin_row(at_runner_variant(k->runners[0], v), p, &sum[p]);
                    memcpy(sum[p].with, one[p].with, sizeof sum[p].with);
                }
                met = 1;
                for (int p = 0; p < AT_PROPERTY_COUNT; p++)
                    at_certificate_add(&sum[p], &one[p]);
            }
        int64_t kept = 0;
        for (int p = 0; met && p < AT_PROPERTY_COUNT; p++)
            if (k->options->properties >> p & 1)
                sum[kept++] = sum[p];
        run->n += kept;
    }
    return AT_OK;
}

/* ---- the run ---- */

static at_status find_with(struct certifying *k) {
    const char *with = k->options->with;
    const struct at_selection one = { .globs = &with, .n_globs = 1, .shards = 1 };
    k->with = -1;
    if (!with)
        return AT_OK;
    for (int i = 0; i < at_runner_variant_count(k->runners[0]); i++)
        if (at_selects_variant(&one, at_runner_variant(k->runners[0], i), NULL)) {
            if (k->with >= 0)
                return AT_FAIL(AT_USAGE, "--with: '%.160s' names several variants, wanted one", with);
            k->with = i;
        }
    if (k->with < 0)
        return AT_FAIL(AT_NOT_FOUND, "--with: no variant of the runner is '%.160s'", with);
    const char *family = at_runner_variant(k->runners[0], k->with)->family;
    for (int64_t i = 0; i < k->plan.n_items; i++)
        if (!at_family_find(family) || strcmp(at_family_find(family)->op, k->plan.items[i].c->op->name) != 0)
            return AT_FAIL(AT_USAGE, "--with: '%.160s' computes another operator than %s", with,
                           k->plan.items[i].c->family->name);
    return AT_OK;
}

/* What the settings were, beside what every run is asked for. */
static at_status fill_request(struct certifying *k, struct at_run_record *record) {
    struct at_session_options session = at_session_defaults();
    session.selection = k->options->selection;
    session.runner = k->options->runner;
    session.seed = k->options->seed;
    AT_TRY(at_provenance_fill(&session, &k->plan, k->runners[0], NULL, record));
    json_t *request = json_loads(record->request, 0, NULL), *settings = json_object();
    const struct {
        const char *name;
        const struct at_certify_numbers *numbers;
    } lists[] = { { "capacities", &k->options->capacities },
                  { "batches", &k->options->batches },
                  { "pieces", &k->options->pieces },
                  { "pages", &k->options->pages } };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        json_t *list = json_array();
        for (int n = 0; n < lists[i].numbers->n; n++)
            json_array_append_new(list, json_integer((json_int_t)lists[i].numbers->of[n]));
        json_object_set_new(settings, lists[i].name, list);
    }
    json_object_set_new(settings, "one_by_one", json_integer((json_int_t)k->options->one_by_one));
    json_object_set_new(settings, "with", json_string(k->options->with ? k->options->with : ""));
    json_object_set_new(request, "settings", settings);
    char *text = request ? json_dumps(request, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(request);
    if (!text)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the run's description");
    free(record->request);
    record->request = text;
    return AT_OK;
}

static at_status run_plan(struct certifying *k, struct at_certify_run *run) {
    int64_t jobs = 0;
    k->first_job = calloc((size_t)k->plan.n_items + 1, sizeof *k->first_job);
    if (!k->first_job)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    for (int64_t i = 0; i < k->plan.n_items; i++) {
        k->first_job[i] = jobs;
        jobs += k->plan.items[i].n_variants;
    }
    k->found = calloc((size_t)jobs * AT_PROPERTY_COUNT + 1, sizeof *k->found);
    if (!k->found)
        return AT_FAIL(AT_NO_MEMORY, "no memory for certificates of %lld jobs", (long long)jobs);
    at_session_watch_signals();
    at_progress_start(&k->progress, "certifying", jobs);
    const at_status status = at_parallel(k->plan.n_items, 1, k->options->jobs, work, k);
    at_progress_end(&k->progress);
    if (at_session_signal()) { /* which runners may have had, too */
        run->record.signal = at_session_signal();
        at_error_clear();
        return AT_OK;
    }
    AT_TRY(status);
    return gather(k, run);
}

at_status at_certify_run(const struct at_certify_options *options, struct at_certify_run *run) {
    at_status status = AT_OK;
    struct certifying k = { .options = options, .lock = PTHREAD_MUTEX_INITIALIZER };
    *run = (struct at_certify_run){ .n = 0 };
    at_run_record_init(&run->record);
    k.runners = calloc((size_t)options->jobs + 1, sizeof(struct at_runner *));
    if (!k.runners)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d workers", options->jobs);
    AT_TRY_OUT(at_runner_open(options->runner, &k.runners[0]));
    AT_TRY_OUT(at_plan_make(&options->selection, k.runners[0], &k.plan));
    AT_TRY_OUT(find_with(&k));
    AT_TRY_OUT(fill_request(&k, &run->record));
    status = run_plan(&k, run);
out:
    for (int i = 0; k.runners && i < options->jobs; i++)
        if (k.runners[i])
            at_runner_close(k.runners[i]);
    free(k.runners);
    free(k.found);
    free(k.first_job);
    at_plan_release(&k.plan);
    pthread_mutex_destroy(&k.lock);
    return status;
}

void at_certify_run_release(struct at_certify_run *run) {
    free(run->rows);
    run->rows = NULL;
    run->n = 0;
    at_run_record_release(&run->record);
}
