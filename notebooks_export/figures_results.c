/* Plots of verification results: how near errors came to their limits, and how much range was left.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/figures.h"

/* Formats of operands, each with a look of its own; bins of err_hist (verify/archive/README.md). */
enum { LOOKS = 4, FIRST_BIN = -56, MAX_FAMILIES = 64, MAX_DATA = 48 };
static const enum at_look looks[LOOKS] = { AT_LOOK_SOLID, AT_LOOK_PALE, AT_LOOK_DASHED, AT_LOOK_DOTTED };

struct histograms {
    const struct at_export_results *r;
    const struct at_frame_column *hist, *family, *variant, *dtype;
    int64_t format[LOOKS]; /* rows of /cases with the different formats */
    int n_formats;
    struct at_plot plot;
    uint64_t sums[AT_PLOT_PANELS][LOOKS][64];
};

static void add_result(struct histograms *h, int64_t i) {
    const int64_t kernel = at_export_kernel(h->r, i);
    const int look = at_figure_index(h->dtype, h->format, h->n_formats, at_export_case(h->r, i));
    const char *variant = at_frame_text(h->variant, kernel);
    int p = 0;
    uint64_t any = 0;
    for (int b = 0; b < 64; b++)
        any |= h->hist->at.u64[i * 64 + b];
    if (look < 0 || !any)
        return;
    while (p < h->plot.n_panels && strncmp(h->plot.panels[p].title, variant, 63) != 0)
        p++;
    if (p == h->plot.n_panels && !at_plot_add(&h->plot, variant))
        return;
    for (int b = 0; b < 64; b++)
        h->sums[p][look][b] += h->hist->at.u64[i * 64 + b];
}

/* Shares of the elements; those without an error have no place on the axis, and are in the panel's title. */
static void draw_panel(struct histograms *h, int p) {
    struct at_panel *panel = &h->plot.panels[p];
    uint64_t total = 0, exact = 0;
    for (int look = 0; look < h->n_formats; look++) {
        const uint64_t *sums = h->sums[p][look];
        struct at_curve *curve = &panel->curve[panel->n];
        double all = 0;
        int low = 1, high = 63;
        for (int b = 0; b < 64; b++)
            all += (double)sums[b];
        total += (uint64_t)all;
        exact += sums[0];
        while (low < 64 && !sums[low])
            low++;
        while (high > low && !sums[high])
            high--;
        if (low == 64)
            continue;
        curve->look = looks[look];
        curve->steps = 1;
        for (int b = low; b <= high; b++)
            at_curve_add(curve, FIRST_BIN + b, sums[b] ? (double)sums[b] / all : NAN);
        panel->n++;
    }
    char title[64];
    snprintf(title, sizeof title, "%.22s, exact %.3g %%", panel->title,
             total ? 100 * (double)exact / (double)total : 0);
    snprintf(panel->title, sizeof panel->title, "%s", title);
}

static at_status give_family(struct histograms *h, const char *family, const struct at_figure_sink *sink) {
    struct at_figure figure = { .plot = &h->plot };
    for (int p = 0; p < h->plot.n_panels; p++)
        draw_panel(h, p);
    snprintf(h->plot.title, sizeof h->plot.title, "Error over limit: %.64s", family);
    snprintf(figure.name, sizeof figure.name, "err_hist_%.64s", family);
    at_figure_file_name(figure.name);
    snprintf(
        figure.caption, sizeof figure.caption,
        "Error over limit of every element, all cases of %.64s together. Left of the dashed line, at 0, lies what is "
        "inside its limit; -10 is a thousandth of it. Exact: the share without any error, which has no place on the "
        "axis.",
        family);
    return sink->take(sink->context, &figure);
}

static at_status error_histograms(const struct at_export_results *r, const struct at_figure_sink *sink) {
    at_status status = AT_OK;
    int64_t families[MAX_FAMILIES];
    struct histograms *h = calloc(1, sizeof *h);
    struct at_panel *panels = calloc(AT_PLOT_PANELS, sizeof *panels);
    if (!h || !panels)
        AT_FAIL_OUT(AT_NO_MEMORY, "export: no memory for histograms");
    h->r = r;
    h->hist = at_frame_column(r->results, "err_hist");
    h->family = at_frame_column(r->kernels, "family");
    h->variant = at_frame_column(r->kernels, "variant");
    h->dtype = at_frame_column(r->cases, "dtype");
    if (!h->hist || h->hist->kind != AT_FRAME_U64 || h->hist->width != 64 || !h->family || !h->variant || !h->dtype)
        goto out;
    h->n_formats = at_figure_distinct(h->dtype, r->cases->n, h->format, LOOKS);
    const int n = at_figure_distinct(h->family, r->kernels->n, families, MAX_FAMILIES);
    for (int f = 0; f < n; f++) {
        h->plot = (struct at_plot){ .x_title = "log2(error / limit), bit",
                                    .y_title = "elements, share of all",
                                    .x_scale = AT_AXIS_LINEAR,
                                    .y_scale = AT_AXIS_POWERS_OF_10,
                                    .nothing = NULL,
                                    .panels = panels };
        memset(h->sums, 0, sizeof h->sums);
        for (int k = 0; k < h->n_formats; k++) {
            const char *name = at_frame_text(h->dtype, h->format[k]);
            h->plot.legend[looks[k]] = *name ? name : "other";
        }
        for (int64_t i = 0; i < r->results->n; i++)
            if (at_figure_index(h->family, &families[f], 1, at_export_kernel(r, i)) == 0)
                add_result(h, i);
        if (h->plot.n_panels)
            AT_TRY_OUT(give_family(h, at_frame_text(h->family, families[f]), sink));
    }
out:
    free(panels);
    free(h);
    return status;
}

/* ---- headroom ---- */

struct headroom {
    const char *rows[MAX_DATA];
    int64_t first[MAX_DATA];
    double *values;
    int n, n_stages;
};

/* Least headroom of each stage on each kind of data, over all results. */
static void fill_headroom(const struct at_frame *ledger, const struct at_export_results *r,
                          const struct at_frame_column *data, struct headroom *h) {
    const struct at_frame_column *result = at_frame_column(ledger, "result"), *stage = at_frame_column(ledger, "stage");
    const struct at_frame_column *bits = at_frame_column(ledger, "headroom"), *inf = at_frame_column(ledger, "inf");
    for (int i = 0; i < h->n * h->n_stages; i++)
        h->values[i] = NAN;
    for (int64_t i = 0; i < ledger->n; i++) {
        const int64_t row = result->at.i64[i];
        const int at =
            row < 0 || row >= r->results->n ? -1 : at_figure_index(data, h->first, h->n, at_export_case(r, row));
        if (at < 0)
            continue;
        double *value = &h->values[at * h->n_stages + stage->at.i64[i]];
        const double have = at_frame_number(inf, i, 0) > 0 ? -INFINITY : at_frame_number(bits, i, 0);
        if (isnan(*value) || have < *value)
            *value = have;
    }
}

static at_status headroom_map(const struct at_export *e, const struct at_export_results *r,
                              const struct at_figure_sink *sink) {
    const struct at_frame *ledger = at_frame_find(&e->frames, "ledger");
    const struct at_frame_column *stage = at_frame_column(ledger, "stage"), *data = at_frame_column(r->cases, "data");
    const struct at_frame_column *result = at_frame_column(ledger, "result");
    struct headroom h = { 0 };
    at_status status = AT_OK;
    if (!stage || stage->kind != AT_FRAME_FLAG || !data || !result || result->kind != AT_FRAME_I64 || ledger->n == 0)
        return AT_OK;
    h.n_stages = stage->n_flags;
    h.n = at_figure_distinct(data, r->cases->n, h.first, MAX_DATA);
    h.values = calloc((size_t)h.n * (size_t)h.n_stages, sizeof *h.values);
    if (!h.values)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for the ledger");
    for (int i = 0; i < h.n; i++) {
        const char *name = at_frame_text(data, h.first[i]);
        const char *recorded = at_frame_text(at_frame_column(r->cases, "dataset"), h.first[i]);
        h.rows[i] = *name ? name : *recorded ? recorded : "none";
    }
    fill_headroom(ledger, r, data, &h);
    struct at_heat heat = { .title = "Least headroom to 65504, in bit",
                            .x_title = "stage",
                            .y_title = "data",
                            .rows = h.n,
                            .cols = h.n_stages,
                            .row_names = h.rows,
                            .col_names = stage->flag,
                            .values = h.values,
                            .pale = 16,
                            .dark = 0,
                            .digits = 1 };
    struct at_figure figure = { .name = "headroom",
                                .caption =
                                    "Least headroom of all results: log2(65504 / largest value). Below 0 a value "
                                    "does not fit FP16, -inf: it was infinite. A dash: nothing was seen.",
                                .heat = &heat };
    AT_TRY_OUT(sink->take(sink->context, &figure));
out:
    free(h.values);
    return status;
}

at_status at_figures_results(const struct at_export *e, const struct at_figure_sink *sink) {
    struct at_export_results r;
    AT_TRY(at_export_results_of(e, &r));
    if (!r.results)
        return AT_OK;
    AT_TRY(error_histograms(&r, sink));
    return headroom_map(e, &r, sink);
}
