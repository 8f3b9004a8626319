/* attest drift: two recordings, quantity by quantity, layer by layer, head by head.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/drift/drift.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/drift/drift_permute.h"
#include "verify/drift/drift_rows.h"
#include "verify/cli/progress.h"

/* ---- can they be compared ---- */

static at_status check_layers(const struct at_distributions *a, const struct at_distributions *b, const char *name_a,
                              const char *name_b) {
    for (int64_t i = 0; i < a->shape.n_layers && i < b->shape.n_layers; i++)
        if (a->layer[i] != b->layer[i])
            return AT_FAIL(AT_USAGE, "drift: layers: %s has %" PRId64 " where %s has %" PRId64, name_a, a->layer[i],
                           name_b, b->layer[i]);
    return a->shape.n_layers == b->shape.n_layers
               ? AT_OK
               : AT_FAIL(AT_USAGE, "drift: layers: %s has %" PRId64 " of them, %s has %" PRId64, name_a,
                         a->shape.n_layers, name_b, b->shape.n_layers);
}

at_status at_drift_check_shapes(const struct at_distributions *a, const struct at_distributions *b, const char *name_a,
                                const char *name_b) {
    if (strcmp(a->attention, b->attention) != 0)
        return AT_FAIL(AT_USAGE, "drift: attention: %s has %s, %s has %s", name_a, a->attention, name_b, b->attention);
    if (a->shape.bins != b->shape.bins)
        return AT_FAIL(AT_USAGE, "drift: bins: %s has %s, %s has %s; record both with the same --bins", name_a,
                       at_format_info(a->shape.bins)->name, name_b, at_format_info(b->shape.bins)->name);
    if (a->shape.h != b->shape.h || a->shape.hk != b->shape.hk)
        return AT_FAIL(AT_USAGE, "drift: heads: %s has %" PRId64 "/%" PRId64 ", %s has %" PRId64 "/%" PRId64, name_a,
                       a->shape.h, a->shape.hk, name_b, b->shape.h, b->shape.hk);
    return check_layers(a, b, name_a, name_b);
}

/* A refusal names both files. */
static at_status check_alike(const char *path_a, const char *path_b, const struct at_drift *drift) {
    struct at_error_copy error;
    const at_status status = at_drift_check_shapes(&drift->a, &drift->b, "A", "B");
    if (status == AT_OK)
        return AT_OK;
    at_error_save(&error);
    return AT_FAIL(status, "%s (A is %s, B %s)", error.message, path_a, path_b);
}

/* ---- verdict of a row ---- */

static void judge_row(const struct at_drift_limits *limits, int paired, struct at_drift_row *row) {
    at_drift_set_limits(limits, paired, row);
    const double p = fmin(isnan(row->p) ? 1 : row->p, isnan(row->p_spread) ? 1 : row->p_spread);
    for (int m = 0; m < AT_DRIFT_METRICS; m++) {
        const double x = row->metric[m], limit = row->limit[m];
        const int ok = x <= limit;
        const double times = limit > 0 && !isnan(x) ? x / limit : (double)INFINITY, over = ok && limit == 0 ? 0 : times;
        row->failed |= !ok << m;
        row->excess = over > row->excess ? over : row->excess;
    }
    if (limits->level > 0) {
        row->failed |= (p <= limits->level) << AT_DRIFT_METRICS;
        row->excess = fmax(row->excess, limits->level / p);
    }
}

/* ---- all rows ---- */

static int64_t list_rows(const struct at_drift *drift, const char *what_glob, struct at_drift_row *rows) {
    int64_t n = 0;
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        const enum at_dist_what what = (enum at_dist_what)w;
        if (!at_dist_has(&drift->a.shape, what) || !at_dist_has(&drift->b.shape, what) ||
            (what_glob && fnmatch(what_glob, at_dist_name(what), FNM_EXTMATCH) != 0))
            continue;
        for (int64_t i = 0; i < drift->a.shape.n_layers; i++)
            for (int64_t head = 0; head < at_dist_heads(&drift->a.shape, what); head++, n++)
                if (rows)
                    rows[n] = (struct at_drift_row){ .what = what,
                                                     .layer = drift->a.layer[i],
                                                     .index = i,
                                                     .head = head,
                                                     .p = NAN,
                                                     .p_spread = NAN,
                                                     .spread = NAN };
    }
    return n;
}

static at_status measure_rows(struct at_drift *drift, struct at_drift_bench *w) {
    struct at_progress progress;
    at_status status = AT_OK;
    at_progress_start(&progress, "comparing", drift->n);
    for (int64_t i = 0; i < drift->n; i++) {
        AT_TRY_OUT(at_drift_measure(w, &drift->a, &drift->b, &drift->rows[i]));
        at_progress_step(&progress, 1, 0, at_dist_name(drift->rows[i].what));
    }
out:
    at_progress_end(&progress);
    return status;
}

/* ---- other requests: the permutation test ---- */

struct loader {
    const struct at_distributions *first, *second;
    const struct at_drift_row *rows;
    int64_t half; /* counts of the first one's groups */
    struct at_progress progress;
};

static at_status load_groups(void *context, int64_t series, uint64_t *counts) {
    struct loader *l = context;
    const struct at_drift_row *row = &l->rows[series];
    at_progress_step(&l->progress, 1, 0, at_dist_name(row->what));
    AT_TRY(at_distributions_coarse(l->first, row->what, row->index, row->head, counts));
    return at_distributions_coarse(l->second, row->what, row->index, row->head, counts + l->half);
}

/* Which of the two comes first when groups are dealt: by what they hold, so that A against B and B against A are dealt
 * alike and give the same p. */
static int b_is_first(const struct at_distributions *a, const struct at_distributions *b) {
    if (a->n_units != b->n_units)
        return b->n_units < a->n_units;
    for (int64_t i = 0; i < a->n_units; i++) {
        const int order = strcmp(b->units[i].hash, a->units[i].hash);
        if (order != 0)
            return order < 0;
    }
    return 0;
}

static at_status permute_rows(struct at_drift *drift, const struct at_drift_bench *w, int64_t deals, uint64_t seed) {
    const int swapped = b_is_first(&drift->a, &drift->b);
    struct loader loader = { .first = swapped ? &drift->b : &drift->a,
                             .second = swapped ? &drift->a : &drift->b,
                             .rows = drift->rows };
    const int64_t groups_first = loader.first->shape.n_groups, groups_second = loader.second->shape.n_groups;
    const struct at_drift_deal deal = { groups_first, groups_second, w->classes,  w->class_value,
                                        deals,        seed,          load_groups, &loader };
    struct at_drift_series *series = calloc((size_t)drift->n + 1, sizeof *series);
    if (!series)
        return AT_FAIL(AT_NO_MEMORY, "drift: no memory for %" PRId64 " rows", drift->n);
    loader.half = groups_first * w->classes;
    drift->least_p = at_drift_least_p(&deal);
    drift->deals = at_drift_deals(&deal);
    at_progress_start(&loader.progress, "dealing requests anew", drift->n);
    const at_status status = at_drift_permute(&deal, series, drift->n);
    at_progress_end(&loader.progress);
    for (int64_t i = 0; i < drift->n && status == AT_OK; i++) {
        drift->rows[i].p = series[i].p;
        drift->rows[i].p_spread = series[i].p_spread;
        drift->rows[i].spread = swapped ? -series[i].spread : series[i].spread;
    }
    free(series);
    return status;
}

/* A comparison that nothing could have failed judges nothing. */
static int could_fail(const struct at_drift *drift, const struct at_drift_limits *limits) {
    int limited = limits->level > 0 && drift->least_p <= limits->level;
    for (int r = 0; r < limits->n_rules; r++)
        for (int m = 0; m < AT_DRIFT_METRICS; m++)
            limited |= isfinite(limits->rule[r].limit[m]);
    uint64_t values = 0;
    for (int64_t i = 0; i < drift->n; i++)
        values |= drift->rows[i].n_a | drift->rows[i].n_b;
    return limited && values > 0;
}

static at_status judge_rows(const struct at_drift_options *options, const struct at_drift_limits *limits,
                            struct at_drift *drift) {
    struct at_drift_bench w;
    at_status status = AT_OK;
    AT_TRY_OUT(at_drift_bench_init(drift->a.shape.bins, &w));
    AT_TRY_OUT(measure_rows(drift, &w));
    if (!drift->paired)
        AT_TRY_OUT(permute_rows(drift, &w, limits->deals, (uint64_t)options->seed));
    if (options->n_noise > 0)
        AT_TRY_OUT(at_drift_measure_noise(options->noise, options->n_noise, &w, drift));
    for (int64_t i = 0; i < drift->n; i++) {
        judge_row(limits, drift->paired, &drift->rows[i]);
        drift->failed += drift->rows[i].failed != 0;
    }
    drift->judged = drift->failed > 0 || could_fail(drift, limits);
out:
    at_drift_bench_release(&w);
    return status;
}

at_status at_drift_compare(const char *path_a, const char *path_b, const struct at_drift_options *options,
                           struct at_drift_limits *limits, struct at_drift *drift) {
    *drift = (struct at_drift){ 0 };
    AT_TRY(at_distributions_open(path_a, &drift->a));
    AT_TRY(at_distributions_open(path_b, &drift->b));
    AT_TRY(check_alike(path_a, path_b, drift));
    AT_TRY(at_drift_pair(options->pairing, &drift->a, &drift->b, &drift->paired, drift->why, sizeof drift->why));
    if (options->n_noise > 0 && !drift->paired)
        return AT_FAIL(AT_USAGE, "drift: --noise is for recordings of the same requests, found %s", drift->why);
    AT_TRY(at_drift_check_noise(path_a, path_b, options->noise, options->n_noise));
    at_drift_limits_default(drift->paired, limits);
    if (options->limits)
        AT_TRY(at_drift_limits_read(options->limits, drift->paired, limits));
    drift->n = list_rows(drift, options->what, NULL);
    if (drift->n == 0)
        return AT_FAIL(AT_NOT_FOUND, "drift: A and B have no quantity%s%s in common", options->what ? " like " : "",
                       options->what ? options->what : "");
    drift->rows = calloc((size_t)drift->n, sizeof *drift->rows);
    if (!drift->rows)
        return AT_FAIL(AT_NO_MEMORY, "drift: no memory for %" PRId64 " rows", drift->n);
    list_rows(drift, options->what, drift->rows);
    return judge_rows(options, limits, drift);
}

void at_drift_release(struct at_drift *drift) {
    at_distributions_close(&drift->a);
    at_distributions_close(&drift->b);
    free(drift->rows);
    *drift = (struct at_drift){ 0 };
}

/* ---- what a row says ---- */

/* Key/value heads are shared by h/hk query heads. */
static int same_head(const struct at_drift *drift, const struct at_drift_row *x, const struct at_drift_row *y) {
    const int64_t group = drift->a.shape.h / (drift->a.shape.hk ? drift->a.shape.hk : 1);
    const int64_t kv_x = at_dist_is_kv(x->what) ? x->head : x->head / (group ? group : 1),
                  kv_y = at_dist_is_kv(y->what) ? y->head : y->head / (group ? group : 1);
    return x->index == y->index && kv_x == kv_y &&
           (x->head == y->head || at_dist_is_kv(x->what) || at_dist_is_kv(y->what));
}

const struct at_drift_row *at_drift_origin(const struct at_drift *drift, const struct at_drift_row *row) {
    if (row->what == AT_DIST_q || row->what == AT_DIST_k || row->what == AT_DIST_v)
        return row;                        /* they follow from nothing here */
    for (int64_t i = 0; i < drift->n; i++) /* rows lie in the order of the quantities */
        if (drift->rows[i].failed && same_head(drift, &drift->rows[i], row))
            return &drift->rows[i];
    return row;
}

static int by_excess(const void *a, const void *b) {
    const struct at_drift_head *x = a, *y = b;
    if (x->worst->excess != y->worst->excess)
        return x->worst->excess < y->worst->excess ? 1 : -1;
    return x->worst < y->worst ? -1 : x->worst > y->worst; /* rows lie in one array, in a fixed order */
}

at_status at_drift_heads(const struct at_drift *drift, struct at_drift_head **heads, int64_t *n) {
    *n = 0;
    *heads = calloc((size_t)drift->n + 1, sizeof **heads);
    if (!*heads)
        return AT_FAIL(AT_NO_MEMORY, "drift: no memory for %" PRId64 " rows", drift->n);
    for (int64_t i = 0; i < drift->n; i++) {
        const struct at_drift_row *row = &drift->rows[i];
        int64_t at = 0;
        if (!row->failed)
            continue;
        while (at < *n && !((*heads)[at].worst->index == row->index && (*heads)[at].worst->head == row->head &&
                            at_dist_is_kv((*heads)[at].worst->what) == at_dist_is_kv(row->what)))
            at++;
        if (at == *n)
            (*heads)[(*n)++] = (struct at_drift_head){ row, at_drift_origin(drift, row) };
        else if (row->excess > (*heads)[at].worst->excess)
            (*heads)[at].worst = row;
    }
    qsort(*heads, (size_t)*n, sizeof **heads, by_excess);
    return AT_OK;
}

void at_drift_reasons(const struct at_drift_row *row, char *text, size_t size) {
    text[0] = 0;
    for (int m = 0; m <= AT_DRIFT_METRICS; m++)
        if (row->failed & 1 << m)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", text[0] ? ", " : "",
                     m < AT_DRIFT_METRICS ? at_drift_metric_name((enum at_drift_metric)m) : "permutation test");
}
