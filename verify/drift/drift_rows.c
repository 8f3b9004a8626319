/* Metrics of one quantity of one layer and head.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/drift/drift_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/drift/drift_measure.h"

void at_drift_bench_release(struct at_drift_bench *w) {
    free(w->value);
    free(w->class_value);
    free(w->a);
    free(w->b);
    free(w->coarse_a);
    free(w->coarse_b);
    *w = (struct at_drift_bench){ 0 };
}

at_status at_drift_bench_init(enum at_format f, struct at_drift_bench *w) {
    *w = (struct at_drift_bench){ .format = f, .bins = at_dist_bins(f), .classes = at_dist_classes(f) };
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

static void to_classes(const struct at_drift_bench *w, const uint64_t *counts, uint64_t *coarse) {
    memset(coarse, 0, (size_t)w->classes * sizeof *coarse);
    for (int64_t i = 0; i < w->bins; i++)
        if (counts[i])
            coarse[at_dist_class_of(w->format, i)] += counts[i];
}

/* Neighbouring classes become one until it holds JOINED values of both sides together. There are as many classes from
 * 0.001 to 0.01 as from 1 to 10, and next to 0 they hold a value each, which any noise puts into another one: the
 * divergence would be that of the noise. Returns how many there are then. */
enum { JOINED = 10 };
static int64_t join_classes(const struct at_drift_bench *w) {
    int64_t n = 0;
    uint64_t a = 0, b = 0;
    for (int64_t c = 0; c < w->classes; c++) {
        a += w->coarse_a[c];
        b += w->coarse_b[c];
        if (a + b < JOINED && c + 1 < w->classes)
            continue;
        const int rest = a + b < JOINED && n > 0; /* the last ones go to those before */
        w->coarse_a[n - rest] = a + (rest ? w->coarse_a[n - 1] : 0);
        w->coarse_b[n - rest] = b + (rest ? w->coarse_b[n - 1] : 0);
        n += !rest;
        a = b = 0;
    }
    return n;
}

/* |x - y|; two infinities of one sign are equal, and no number on both sides is no change. A number against none
 * is NaN, which is within no limit: headroom where there are only NaNs is a class of its own. */
static double change(double x, double y) { return x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y); }

/* A measure that neither side has values for is no change; where one side alone has values, ks says so. */
static double or_none(double measure) { return isnan(measure) ? 0 : measure; }

/* The deviation that an area is held against: of both sides, so that which of them is called A does not matter. */
static double deviation(const struct at_dist_summary *a, const struct at_dist_summary *b) {
    return sqrt((or_none(a->std) * or_none(a->std) + or_none(b->std) * or_none(b->std)) / 2);
}

void at_drift_measure_row(const struct at_drift_bench *w, const struct at_dist_summary *a,
                          const struct at_dist_summary *b, struct at_drift_row *row) {
    int64_t at;
    const double ks = at_drift_ks(w->bins, w->a, w->b, &at);
    const double area = or_none(at_drift_wasserstein(w->bins, w->value, w->a, w->b)), spread = deviation(a, b);
    to_classes(w, w->a, w->coarse_a);
    to_classes(w, w->b, w->coarse_b);
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
    row->metric[AT_DRIFT_js] = or_none(at_drift_js(join_classes(w), w->coarse_a, w->coarse_b));
    row->metric[AT_DRIFT_grain] = or_none(at_drift_grain(w->format, w->bins, w->value, w->a, w->b, &row->grain_bits));
    row->metric[AT_DRIFT_zero_share] = change(row->zero_a, row->zero_b);
    if (isnan(row->zero_a) != isnan(row->zero_b)) /* values on one side alone: ks says so */
        row->metric[AT_DRIFT_zero_share] = 0;
    const double nan_a = a->n ? (double)a->nan / (double)a->n : 0, nan_b = b->n ? (double)b->nan / (double)b->n : 0;
    row->metric[AT_DRIFT_infinite_share] =
        change(or_none(at_drift_infinite_share(w->bins, w->value, w->a)) * (1 - nan_a) + nan_a,
               or_none(at_drift_infinite_share(w->bins, w->value, w->b)) * (1 - nan_b) + nan_b);
    row->metric[AT_DRIFT_headroom] = change(a->headroom, b->headroom);
}

/* ---- the mask ---- */

/* (query, key) of a layer, visible or not, by its units; they say how long requests are. */
static uint64_t pairs_of(const struct at_distributions *d, int64_t layer) {
    uint64_t pairs = 0;
    for (int64_t i = 0; i < d->n_units; i++)
        if (d->units[i].layer == layer)
            pairs += (uint64_t)d->units[i].queries * (uint64_t)d->units[i].keys;
    return pairs;
}

/* Share of them that the mask hides from a head; NaN: there are none. */
static double hidden_share(const struct at_distributions *d, const struct at_drift_row *row) {
    const uint64_t pairs = pairs_of(d, row->layer);
    const uint64_t visible = d->zero[AT_DIST_ZERO_element_total][row->index * d->shape.h + row->head];
    return pairs ? 1 - (double)visible / (double)pairs : (double)NAN;
}

/* q, k and v lie before the mask. */
static int is_masked(enum at_dist_what what) { return what != AT_DIST_q && what != AT_DIST_k && what != AT_DIST_v; }

at_status at_drift_measure(struct at_drift_bench *w, const struct at_distributions *a, const struct at_distributions *b,
                           struct at_drift_row *row) {
    const int64_t at = row->index * at_dist_heads(&a->shape, row->what) + row->head;
    AT_TRY(at_distributions_counts(a, row->what, row->index, row->head, w->a));
    AT_TRY(at_distributions_counts(b, row->what, row->index, row->head, w->b));
    at_drift_measure_row(w, &a->summary[row->what][at], &b->summary[row->what][at], row);
    row->hidden_a = row->hidden_b = (double)NAN;
    if (is_masked(row->what)) {
        row->hidden_a = hidden_share(a, row);
        row->hidden_b = hidden_share(b, row);
    }
    row->metric[AT_DRIFT_masked_share] = or_none(fabs(row->hidden_a - row->hidden_b));
    return AT_OK;
}
