/* attest drift: two recordings, quantity by quantity, layer by layer, head by head.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/drift/drift.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/drift/drift_measure.h"
#include "verify/drift/drift_permute.h"
#include "verify/cli/progress.h"

/* ---- can they be compared, and how ---- */

static at_status check_layers(const struct at_distributions *a, const struct at_distributions *b) {
    for (int64_t i = 0; i < a->shape.n_layers && i < b->shape.n_layers; i++)
        if (a->layer[i] != b->layer[i])
            return AT_FAIL(AT_USAGE, "drift: layers: A has %" PRId64 " where B has %" PRId64, a->layer[i], b->layer[i]);
    return a->shape.n_layers == b->shape.n_layers
               ? AT_OK
               : AT_FAIL(AT_USAGE, "drift: layers: A has %" PRId64 " of them, B has %" PRId64, a->shape.n_layers,
                         b->shape.n_layers);
}

static at_status check_shapes(const struct at_distributions *a, const struct at_distributions *b) {
    if (strcmp(a->attention, b->attention) != 0)
        return AT_FAIL(AT_USAGE, "drift: attention: A has %s, B has %s", a->attention, b->attention);
    if (a->shape.bins != b->shape.bins)
        return AT_FAIL(AT_USAGE, "drift: bins: A has %s, B has %s; record both with the same --bins",
                       at_format_info(a->shape.bins)->name, at_format_info(b->shape.bins)->name);
    if (a->shape.h != b->shape.h || a->shape.hk != b->shape.hk)
        return AT_FAIL(AT_USAGE, "drift: heads: A has %" PRId64 "/%" PRId64 ", B has %" PRId64 "/%" PRId64, a->shape.h,
                       a->shape.hk, b->shape.h, b->shape.hk);
    return check_layers(a, b);
}

/* A refusal names both files. */
static at_status check_alike(const char *path_a, const char *path_b, const struct at_drift *drift) {
    struct at_error_copy error;
    const at_status status = check_shapes(&drift->a, &drift->b);
    if (status == AT_OK)
        return AT_OK;
    at_error_save(&error);
    return AT_FAIL(status, "%s (A is %s, B %s)", error.message, path_a, path_b);
}

/* Whether A and B have as many requests of the same sizes, and *same_values: one of them the very same values in some
 * layer. Sizes alone agree by chance where all requests are of one length; a change of the model may leave the values
 * of the first layer alone alike. */
static int same_requests(const struct at_distributions *a, const struct at_distributions *b, int *same_values) {
    *same_values = 0;
    if (a->n_units != b->n_units)
        return 0;
    for (int64_t i = 0; i < a->n_units; i++) {
        const struct at_dist_unit_row *x = &a->units[i], *y = &b->units[i];
        if (x->layer != y->layer || x->request != y->request || x->queries != y->queries || x->keys != y->keys)
            return 0;
        *same_values |= strcmp(x->hash, y->hash) == 0;
    }
    return 1;
}

static at_status choose_pairing(enum at_drift_pairing pairing, struct at_drift *drift) {
    int same_values;
    const int same_sizes = same_requests(&drift->a, &drift->b, &same_values);
    drift->paired = pairing == AT_DRIFT_PAIRED || (pairing == AT_DRIFT_PAIR_AUTO && same_sizes && same_values);
    if (pairing == AT_DRIFT_PAIRED && !same_sizes)
        return AT_FAIL(AT_USAGE, "drift: --paired: A and B do not have the same requests (numbers, queries, keys)");
    drift->why = pairing != AT_DRIFT_PAIR_AUTO ? "as asked for"
                 : drift->paired               ? "the same requests, and values of theirs that are equal"
                 : same_sizes
                     ? "requests of the same sizes, but no values that are equal; --paired if they are the same"
                     : "other requests";
    return AT_OK;
}

/* ---- metrics of a row ---- */

/* What a comparison works with: values of bins, and counts of both sides. */
struct bench {
    enum at_format format;
    int64_t bins, classes, groups_a, groups_b;
    double *value, *class_value;   /* [bins], [classes] */
    uint64_t *a, *b;               /* [bins] */
    uint64_t *coarse_a, *coarse_b; /* [classes] */
};

static void bench_release(struct bench *w) {
    free(w->value);
    free(w->class_value);
    free(w->a);
    free(w->b);
    free(w->coarse_a);
    free(w->coarse_b);
}

static at_status bench_init(const struct at_drift *drift, struct bench *w) {
    const enum at_format f = drift->a.shape.bins;
    *w = (struct bench){ .format = f,
                         .bins = at_dist_bins(f),
                         .classes = at_dist_classes(f),
                         .groups_a = drift->a.shape.n_groups,
                         .groups_b = drift->b.shape.n_groups };
    w->value = calloc((size_t)w->bins, sizeof *w->value);
    w->class_value = calloc((size_t)w->classes, sizeof *w->class_value);
    w->a = calloc((size_t)w->bins, sizeof *w->a);
    w->b = calloc((size_t)w->bins, sizeof *w->b);
    w->coarse_a = calloc((size_t)w->classes, sizeof *w->coarse_a);
    w->coarse_b = calloc((size_t)w->classes, sizeof *w->coarse_b);
    if (!w->value || !w->class_value || !w->a || !w->b || !w->coarse_a || !w->coarse_b)
        return AT_FAIL(AT_NO_MEMORY, "drift: no memory for %" PRId64 " bins", w->bins);
    for (int64_t i = 0; i < w->bins; i++)
        w->value[i] = at_dist_value_of(f, i);
    /* A class stands at the middle of its bins; one that reaches infinity has no value. */
    for (int64_t c = 0; c < w->classes; c++) {
        const int64_t first = at_dist_class_first(f, c),
                      end = c + 1 < w->classes ? at_dist_class_first(f, c + 1) : w->bins;
        w->class_value[c] = (w->value[first] + w->value[end - 1]) / 2;
    }
    return AT_OK;
}

static void to_classes(const struct bench *w, const uint64_t *counts, uint64_t *coarse) {
    memset(coarse, 0, (size_t)w->classes * sizeof *coarse);
    for (int64_t i = 0; i < w->bins; i++)
        if (counts[i])
            coarse[at_dist_class_of(w->format, i)] += counts[i];
}

/* |x - y|; two infinities of one sign are equal, and no number on both sides is no change. */
static double change(double x, double y) { return x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y); }

/* A measure that neither side has values for is no change; where one side alone has values, ks says so. */
static double or_none(double measure) { return isnan(measure) ? 0 : measure; }

static void measure_row(const struct bench *w, const struct at_dist_summary *a, const struct at_dist_summary *b,
                        struct at_drift_row *row) {
    int64_t at;
    const double ks = at_drift_ks(w->bins, w->a, w->b, &at);
    const double area = or_none(at_drift_wasserstein(w->bins, w->value, w->a, w->b)), spread = a->std;
    row->n_a = a->n;
    row->n_b = b->n;
    row->ks_at = w->value[at];
    row->zero_a = at_drift_zero_share(w->bins, w->value, w->a);
    row->zero_b = at_drift_zero_share(w->bins, w->value, w->b);
    row->headroom_a = a->headroom;
    row->headroom_b = b->headroom;
    /* NaNs have no bin: a side that is all NaN has no values here, and differs from one that has. */
    row->metric[AT_DRIFT_ks] = !isnan(ks) ? ks : (a->n - a->nan > 0) != (b->n - b->nan > 0);
    row->metric[AT_DRIFT_wasserstein] = area == 0 ? 0 : spread > 0 ? area / spread : (double)INFINITY;
    row->metric[AT_DRIFT_js] = or_none(at_drift_js(w->classes, w->coarse_a, w->coarse_b));
    row->metric[AT_DRIFT_grain] = or_none(at_drift_grain(w->format, w->bins, w->value, w->a, w->b, &row->grain_bits));
    row->metric[AT_DRIFT_zero_share] = change(row->zero_a, row->zero_b);
    const double nan_a = a->n ? (double)a->nan / (double)a->n : 0, nan_b = b->n ? (double)b->nan / (double)b->n : 0;
    row->metric[AT_DRIFT_infinite_share] =
        change(or_none(at_drift_infinite_share(w->bins, w->value, w->a)) * (1 - nan_a) + nan_a,
               or_none(at_drift_infinite_share(w->bins, w->value, w->b)) * (1 - nan_b) + nan_b);
    row->metric[AT_DRIFT_headroom] = change(a->headroom, b->headroom);
}

static void judge_row(const struct at_drift_limits *limits, struct at_drift_row *row) {
    const struct at_drift_rule *rule = at_drift_rule_of(limits, at_dist_name(row->what));
    const double p = fmin(isnan(row->p) ? 1 : row->p, isnan(row->p_spread) ? 1 : row->p_spread);
    for (int m = 0; m < AT_DRIFT_METRICS; m++) {
        const double x = row->metric[m], limit = rule->limit[m];
        const int ok = x <= limit;
        const double over = ok ? (limit > 0 ? x / limit : 0) : limit > 0 ? x / limit : (double)INFINITY;
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

static at_status measure_rows(struct at_drift *drift, struct bench *w) {
    struct at_progress progress;
    at_status status = AT_OK;
    at_progress_start(&progress, "comparing", drift->n);
    for (int64_t i = 0; i < drift->n; i++) {
        struct at_drift_row *row = &drift->rows[i];
        const int64_t at = row->index * at_dist_heads(&drift->a.shape, row->what) + row->head;
        AT_TRY_OUT(at_distributions_counts(&drift->a, row->what, row->index, row->head, w->a));
        AT_TRY_OUT(at_distributions_counts(&drift->b, row->what, row->index, row->head, w->b));
        to_classes(w, w->a, w->coarse_a);
        to_classes(w, w->b, w->coarse_b);
        measure_row(w, &drift->a.summary[row->what][at], &drift->b.summary[row->what][at], row);
        at_progress_step(&progress, 1, 0, at_dist_name(row->what));
    }
out:
    at_progress_end(&progress);
    return status;
}

/* ---- other requests: the permutation test ---- */

struct loader {
    const struct at_drift *drift;
    int64_t half; /* counts of A's groups */
    struct at_progress progress;
};

static at_status load_groups(void *context, int64_t series, uint64_t *counts) {
    struct loader *l = context;
    const struct at_drift_row *row = &l->drift->rows[series];
    at_progress_step(&l->progress, 1, 0, at_dist_name(row->what));
    AT_TRY(at_distributions_coarse(&l->drift->a, row->what, row->index, row->head, counts));
    return at_distributions_coarse(&l->drift->b, row->what, row->index, row->head, counts + l->half);
}

static at_status permute_rows(struct at_drift *drift, const struct bench *w, int64_t deals, uint64_t seed) {
    struct loader loader = { .drift = drift, .half = w->groups_a * w->classes };
    const struct at_drift_deal deal = { w->groups_a, w->groups_b, w->classes,  w->class_value,
                                        deals,       seed,        load_groups, &loader };
    struct at_drift_series *series = calloc((size_t)drift->n + 1, sizeof *series);
    if (!series)
        return AT_FAIL(AT_NO_MEMORY, "drift: no memory for %" PRId64 " rows", drift->n);
    drift->least_p = at_drift_least_p(&deal);
    drift->deals = at_drift_deals(&deal);
    at_progress_start(&loader.progress, "dealing requests anew", drift->n);
    const at_status status = at_drift_permute(&deal, series, drift->n);
    at_progress_end(&loader.progress);
    for (int64_t i = 0; i < drift->n && status == AT_OK; i++) {
        drift->rows[i].p = series[i].p;
        drift->rows[i].p_spread = series[i].p_spread;
        drift->rows[i].spread = series[i].spread;
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
    struct bench w;
    at_status status = AT_OK;
    AT_TRY_OUT(bench_init(drift, &w));
    AT_TRY_OUT(measure_rows(drift, &w));
    if (!drift->paired)
        AT_TRY_OUT(permute_rows(drift, &w, limits->deals, (uint64_t)options->seed));
    for (int64_t i = 0; i < drift->n; i++) {
        judge_row(limits, &drift->rows[i]);
        drift->failed += drift->rows[i].failed != 0;
    }
    drift->judged = drift->failed > 0 || could_fail(drift, limits);
out:
    bench_release(&w);
    return status;
}

at_status at_drift_compare(const char *path_a, const char *path_b, const struct at_drift_options *options,
                           struct at_drift_limits *limits, struct at_drift *drift) {
    *drift = (struct at_drift){ 0 };
    AT_TRY(at_distributions_open(path_a, &drift->a));
    AT_TRY(at_distributions_open(path_b, &drift->b));
    AT_TRY(check_alike(path_a, path_b, drift));
    AT_TRY(choose_pairing(options->pairing, drift));
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
