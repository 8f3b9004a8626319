/* Plots of distributions: how large values are, how scores spread, where the mass lies, how much is zero.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/export_distributions.h"

enum { EXPONENTS = 300, LOWEST = -150, CDF_POINTS = 101, MAX_NAMES = 512 };

at_status at_export_pooled(const struct at_distributions *d, enum at_dist_what what, int64_t i, uint64_t *counts,
                           uint64_t *one) {
    const int64_t bins = at_dist_bins(d->shape.bins);
    memset(counts, 0, (size_t)bins * sizeof *counts);
    for (int64_t h = 0; h < at_dist_heads(&d->shape, what); h++) {
        AT_TRY(at_distributions_counts(d, what, i, h, one));
        for (int64_t b = 0; b < bins; b++)
            if (__builtin_add_overflow(counts[b], one[b], &counts[b]))
                return AT_FAIL(AT_USAGE, "distributions: counts of %s do not fit 64 bits", at_dist_name(what));
    }
    return AT_OK;
}

/* ---- maps of layers and heads ---- */

struct names {
    char layer[MAX_NAMES][16], column[MAX_NAMES][24];
    const char *rows[MAX_NAMES], *cols[MAX_NAMES];
    int n_rows, n_cols;
};

static void name_layers(const struct at_distributions *d, struct names *n) {
    n->n_rows = d->shape.n_layers < MAX_NAMES ? (int)d->shape.n_layers : MAX_NAMES;
    for (int i = 0; i < n->n_rows; i++) {
        snprintf(n->layer[i], sizeof n->layer[i], "%" PRId64, d->layer[i]);
        n->rows[i] = n->layer[i];
    }
}

static void name_heads(int64_t heads, struct names *n) {
    n->n_cols = heads < MAX_NAMES ? (int)heads : MAX_NAMES;
    for (int h = 0; h < n->n_cols; h++) {
        snprintf(n->column[h], sizeof n->column[h], "%d", h);
        n->cols[h] = n->column[h];
    }
}

static at_status give_map(const struct names *n, struct at_heat *heat, struct at_figure *figure,
                          const struct at_figure_sink *sink) {
    heat->rows = n->n_rows;
    heat->cols = n->n_cols;
    heat->row_names = n->rows;
    heat->col_names = n->cols;
    heat->y_title = "layer";
    figure->heat = heat;
    return n->n_rows && n->n_cols ? sink->take(sink->context, figure) : AT_OK;
}

static at_status headroom_maps(const struct at_distributions *d, struct names *n, double *values,
                               const struct at_figure_sink *sink) {
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        const enum at_dist_what what = (enum at_dist_what)w;
        const int64_t heads = at_dist_heads(&d->shape, what);
        struct at_heat heat = { .x_title = at_dist_is_kv(what) ? "key/value head" : "query head",
                                .values = values,
                                .pale = 16,
                                .dark = 0,
                                .digits = 1 };
        struct at_figure figure = { .heat = NULL };
        if (!at_dist_has(&d->shape, what) || at_dist_is_row(what) || what == AT_DIST_p) /* p is at most 1 */
            continue;
        name_heads(heads, n);
        for (int r = 0; r < n->n_rows; r++)
            for (int c = 0; c < n->n_cols; c++) {
                const struct at_dist_summary *s = &d->summary[w][r * heads + c];
                values[r * n->n_cols + c] = s->overflow ? -(double)INFINITY : s->headroom;
            }
        snprintf(heat.title, sizeof heat.title, "Headroom of %s, bit", at_dist_name(what));
        snprintf(figure.name, sizeof figure.name, "headroom_%s", at_dist_name(what));
        snprintf(figure.caption, sizeof figure.caption,
                 "%s: log2(65504 / largest value) of each layer and head; -inf: some values were beyond the format.",
                 at_dist_meaning(what));
        AT_TRY(give_map(n, &heat, &figure, sink));
    }
    return AT_OK;
}

static at_status zero_maps(const struct at_distributions *d, struct names *n, double *values,
                           const struct at_figure_sink *sink) {
    static const struct {
        enum at_dist_zero zero, total;
        const char *what, *caption;
    } maps[] = { { AT_DIST_ZERO_element_zero, AT_DIST_ZERO_element_total, "elements", "single weights" },
                 { AT_DIST_ZERO_key_zero, AT_DIST_ZERO_key_total, "keys",
                   "keys that no head of a key/value head needs for a query" },
                 { AT_DIST_ZERO_page_zero, AT_DIST_ZERO_page_total, "pages",
                   "pages of 16 keys that no head of a key/value head needs for a query" },
                 { AT_DIST_ZERO_tile_zero, AT_DIST_ZERO_tile_total, "tiles", "tiles of 64 queries and 16 keys" } };
    for (size_t m = 0; m < sizeof maps / sizeof *maps; m++) {
        const int64_t heads = at_dist_zero_heads(&d->shape, maps[m].zero);
        struct at_heat heat = {
            .x_title = heads == d->shape.h ? "query head" : "key/value head", .values = values, .pale = 0, .dark = 100
        };
        struct at_figure figure = { .heat = NULL };
        name_heads(heads, n);
        for (int r = 0; r < n->n_rows; r++)
            for (int c = 0; c < n->n_cols; c++) {
                const double total = (double)d->zero[maps[m].total][r * heads + c];
                values[r * n->n_cols + c] = 100 * (double)d->zero[maps[m].zero][r * heads + c] / total;
            }
        snprintf(heat.title, sizeof heat.title, "Zero %s of p, %%", maps[m].what);
        snprintf(figure.name, sizeof figure.name, "zero_%s", maps[m].what);
        snprintf(figure.caption, sizeof figure.caption, "Share of the visible ones whose p is 0: %s.", maps[m].caption);
        AT_TRY(give_map(n, &heat, &figure, sink));
    }
    return AT_OK;
}

static at_status mass_map(const struct at_distributions *d, struct names *n, double *values,
                          const struct at_figure_sink *sink) {
    const int64_t bins = d->shape.n_distances;
    struct at_heat heat = { .title = "Mass of p by distance of the key, %",
                            .x_title = "distance of query and key, keys",
                            .values = values,
                            .pale = 0,
                            .dark = 50,
                            .digits = 1 };
    struct at_figure figure = { .name = "mass",
                                .caption =
                                    "Where the attention weights of each layer lie, all heads together: 0 is the "
                                    "query's own position. Rows add up to 100." };
    n->n_cols = bins < MAX_NAMES ? (int)bins : MAX_NAMES;
    for (int b = 0; b < n->n_cols; b++) {
        const int64_t first = at_dist_distance_edge(b), last = at_dist_distance_edge(b + 1) - 1;
        snprintf(n->column[b], sizeof n->column[b], first == last ? "%" PRId64 : "%" PRId64 "-%" PRId64, first, last);
        n->cols[b] = n->column[b];
    }
    for (int r = 0; r < n->n_rows; r++) {
        double total = 0;
        for (int b = 0; b < n->n_cols; b++) {
            values[r * n->n_cols + b] = 0;
            for (int64_t h = 0; h < d->shape.h; h++)
                values[r * n->n_cols + b] += (double)d->mass[(r * d->shape.h + h) * bins + b];
            total += values[r * n->n_cols + b];
        }
        for (int b = 0; b < n->n_cols; b++)
            values[r * n->n_cols + b] *= 100 / total;
    }
    return give_map(n, &heat, &figure, sink);
}

static at_status maps(const struct at_distributions *d, const struct at_figure_sink *sink) {
    struct names *n = calloc(1, sizeof *n);
    const int64_t columns = d->shape.h > AT_DIST_MAX_DISTANCES ? d->shape.h : AT_DIST_MAX_DISTANCES;
    double *values = calloc((size_t)(d->shape.n_layers * columns) + 1, sizeof *values);
    at_status status = AT_OK;
    if (!n || !values)
        AT_FAIL_OUT(AT_NO_MEMORY, "export: no memory for maps of distributions");
    name_layers(d, n);
    AT_TRY_OUT(headroom_maps(d, n, values, sink));
    AT_TRY_OUT(zero_maps(d, n, values, sink));
    AT_TRY_OUT(mass_map(d, n, values, sink));
out:
    free(n);
    free(values);
    return status;
}

/* ---- curves, a panel for each layer ---- */

struct look {
    enum at_dist_what what;
    enum at_look look;
};

struct curves {
    const struct at_distributions *d;
    uint64_t *counts, *one;
    struct at_plot plot;
};

/* Shares by power of two of |x|; zeros and infinities have none. */
static void fill_sizes(const struct curves *c, struct at_curve *curve) {
    const enum at_format bins = c->d->shape.bins;
    double sums[EXPONENTS] = { 0 }, all = 0;
    int low = EXPONENTS, high = -1;
    for (int64_t b = 0; b < at_dist_bins(bins); b++) {
        const double value = fabs(at_dist_value_of(bins, b));
        if (!c->counts[b])
            continue;
        all += (double)c->counts[b];
        if (!(value > 0) || isinf(value))
            continue;
        const int at = ilogb(value) - LOWEST;
        sums[at] += (double)c->counts[b];
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    if (high - low >= AT_PLOT_POINTS)
        low = high - AT_PLOT_POINTS + 1; /* the large ones matter */
    for (int at = low; at <= high; at++)
        at_curve_add(curve, at + LOWEST, sums[at] > 0 ? sums[at] / all : (double)NAN);
    curve->steps = 1;
}

/* Quantiles, from which a distribution function is drawn; the outermost thousandths are left out. */
static void fill_cdf(const struct curves *c, struct at_curve *curve) {
    const enum at_format bins = c->d->shape.bins;
    for (int k = 0; k < CDF_POINTS; k++) {
        const double share = 0.001 + 0.998 * k / (CDF_POINTS - 1);
        const int64_t bin = at_dist_quantile(bins, c->counts, share);
        if (bin >= 0)
            at_curve_add(curve, at_dist_value_of(bins, bin), share);
    }
}

static at_status fill_panels(struct curves *c, const struct look *looks, int n,
                             void (*fill)(const struct curves *, struct at_curve *)) {
    char title[32];
    for (int64_t i = 0; i < c->d->shape.n_layers; i++) {
        snprintf(title, sizeof title, "layer %" PRId64, c->d->layer[i]);
        struct at_panel *panel = at_plot_add(&c->plot, title);
        for (int k = 0; panel && k < n; k++) {
            if (!at_dist_has(&c->d->shape, looks[k].what))
                continue;
            AT_TRY(at_export_pooled(c->d, looks[k].what, i, c->counts, c->one));
            c->plot.legend[looks[k].look] = at_dist_name(looks[k].what);
            panel->curve[panel->n].look = looks[k].look;
            fill(c, &panel->curve[panel->n++]);
        }
    }
    return AT_OK;
}

/* A recording may hold some of the quantities only. */
static int has_curves(const struct curves *c) { return c->plot.n_panels && c->plot.panels[0].n; }

static at_status give_sizes(struct curves *c, const char *name, const char *title, const struct look *looks, int n,
                            const struct at_figure_sink *sink) {
    struct at_figure figure = { .plot = &c->plot };
    struct at_panel *panels = c->plot.panels;
    c->plot = (struct at_plot){ .x_title = "log2 |x|, bit",
                                .y_title = "share of the values",
                                .x_scale = AT_AXIS_LINEAR,
                                .y_scale = AT_AXIS_POWERS_OF_10,
                                .mark = 16,
                                .panels = panels };
    snprintf(c->plot.title, sizeof c->plot.title, "%s", title);
    snprintf(figure.name, sizeof figure.name, "%s", name);
    snprintf(figure.caption, sizeof figure.caption,
             "Share of the values in each power of two, all heads together. The dashed line is 65536, where FP16 ends. "
             "Zeros are not drawn.");
    AT_TRY(fill_panels(c, looks, n, fill_sizes));
    return has_curves(c) ? sink->take(sink->context, &figure) : AT_OK;
}

static at_status give_cdf(struct curves *c, const struct at_figure_sink *sink) {
    static const struct look looks[] = { { AT_DIST_scaled, AT_LOOK_SOLID },
                                         { AT_DIST_fir, AT_LOOK_PALE },
                                         { AT_DIST_row_max, AT_LOOK_DASHED } };
    struct at_figure figure = { .name = "scores", .plot = &c->plot };
    struct at_panel *panels = c->plot.panels;
    c->plot = (struct at_plot){ .x_title = "score after the scale, no unit",
                                .y_title = "share at or below",
                                .x_scale = AT_AXIS_LINEAR,
                                .y_scale = AT_AXIS_PERCENT,
                                .mark = NAN,
                                .panels = panels };
    snprintf(c->plot.title, sizeof c->plot.title, "Distribution functions of the scores");
    snprintf(
        figure.caption, sizeof figure.caption,
        "Scores after the scale, after the FIR where there is one, and the largest of each row; all heads together, "
        "from 0.1 %% to 99.9 %%.");
    AT_TRY(fill_panels(c, looks, 3, fill_cdf));
    return has_curves(c) ? sink->take(sink->context, &figure) : AT_OK;
}

at_status at_figures_distributions(const struct at_export *e, const struct at_figure_sink *sink) {
    static const struct look tensors[] = { { AT_DIST_q, AT_LOOK_SOLID },
                                           { AT_DIST_k, AT_LOOK_PALE },
                                           { AT_DIST_v, AT_LOOK_DASHED },
                                           { AT_DIST_out, AT_LOOK_DOTTED } };
    static const struct look scores[] = { { AT_DIST_raw, AT_LOOK_SOLID },
                                          { AT_DIST_scaled, AT_LOOK_PALE },
                                          { AT_DIST_fir, AT_LOOK_DASHED },
                                          { AT_DIST_p, AT_LOOK_DOTTED } };
    struct curves c = { .d = e->distributions };
    at_status status = AT_OK;
    if (!c.d)
        return AT_OK;
    c.counts = malloc(2 * (size_t)at_dist_bins(c.d->shape.bins) * sizeof *c.counts);
    c.plot.panels = calloc(AT_PLOT_PANELS, sizeof *c.plot.panels);
    if (!c.counts || !c.plot.panels)
        AT_FAIL_OUT(AT_NO_MEMORY, "export: no memory for distributions");
    c.one = c.counts + at_dist_bins(c.d->shape.bins);
    AT_TRY_OUT(maps(c.d, sink));
    AT_TRY_OUT(give_cdf(&c, sink));
    AT_TRY_OUT(give_sizes(&c, "sizes", "Sizes of q, k, v and the output", tensors, 4, sink));
    AT_TRY_OUT(give_sizes(&c, "score_sizes", "Sizes of the scores and weights", scores, 4, sink));
out:
    free(c.counts);
    free(c.plot.panels);
    return status;
}
