/* Plots of studies: error over length and overflow by data of accumulators.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/figures.h"

enum { MAX = 64 };

/* ---- accumulate ---- */

struct sums {
    const struct at_frame *frame;
    const struct at_frame_column *attention, *product, *mode, *data, *d, *length;
    int64_t modes[MAX], datas[MAX];
    int n_modes, n_datas;
};

static double number(const struct sums *s, const char *name, int64_t row) {
    return at_frame_number(at_frame_column(s->frame, name), row, 0);
}

static int is_qk(const struct sums *s, int64_t row) { return strcmp(at_frame_text(s->product, row), "qk") == 0; }

/* Rows of the same attention and product. */
static int same_kind(const struct sums *s, int64_t a, int64_t b) {
    return at_figure_index(s->attention, &a, 1, b) == 0 && at_figure_index(s->product, &a, 1, b) == 0;
}

/* The first row of normal data among those like `like`, else `like`. */
static int64_t typical(const struct sums *s, int64_t like) {
    for (int64_t i = 0; i < s->frame->n; i++)
        if (same_kind(s, like, i) && strcmp(at_frame_text(s->data, i), "normal") == 0)
            return i;
    return like;
}

static double largest_d(const struct sums *s, int64_t like) {
    double most = 0;
    for (int64_t i = 0; i < s->frame->n; i++)
        if (same_kind(s, like, i))
            most = fmax(most, at_frame_number(s->d, i, 0));
    return most;
}

/* What is drawn over the length: columns of a row, each with its look. */
struct curves {
    const char *name, *title, *y_title, *nothing;
    const char *what, *more; /* of the caption */
    enum at_axis_scale y_scale;
    int n;
    const char *column[AT_PLOT_CURVES], *legend[AT_PLOT_CURVES];
    enum at_look look[AT_PLOT_CURVES];
};
static const struct curves errors = {
    .name = "accumulate",
    .title = "Error of the sum",
    .y_title = "error / sum |a b|, no unit",
    .what = "Error of the sums",
    .more = " Points: measured; lines without points: theory.",
    .nothing = "no error, or no finite result",
    .y_scale = AT_AXIS_POWERS_OF_10,
    .n = 4,
    .column = { "err_mean", "err_max", "bound", "probable" },
    .legend = { "mean", "largest", "bound for any inputs", "bound with the root of the roundings" },
    .look = { AT_LOOK_DOTS, AT_LOOK_RINGS, AT_LOOK_DASHED, AT_LOOK_DOTTED },
};
static const struct curves swamped = {
    .name = "accumulate_swamped",
    .title = "Swamped steps",
    .y_title = "steps that change nothing, % of all",
    .what = "Steps whose products are not 0 and leave the sum as it was",
    .more = "",
    .nothing = "no steps",
    .y_scale = AT_AXIS_PERCENT,
    .n = 1,
    .column = { "swamped_share" },
    .legend = { "share of steps" },
    .look = { AT_LOOK_DOTS },
};

static void fill_curves(const struct sums *s, int64_t like, const struct curves *of, struct at_plot *plot) {
    const double d = largest_d(s, like);
    for (int m = 0; m < s->n_modes; m++) {
        struct at_panel *panel = at_plot_add(plot, at_frame_text(s->mode, s->modes[m]));
        if (!panel)
            return;
        panel->n = of->n;
        for (int c = 0; c < of->n; c++)
            panel->curve[c].look = of->look[c];
        for (int64_t i = 0; i < s->frame->n; i++) {
            if (!same_kind(s, like, i) || at_figure_index(s->mode, &s->modes[m], 1, i) != 0 ||
                at_figure_index(s->data, &like, 1, i) != 0 || (!is_qk(s, i) && at_frame_number(s->d, i, 0) != d))
                continue;
            for (int c = 0; c < of->n; c++)
                at_curve_add(&panel->curve[c], at_frame_number(s->length, i, 0), number(s, of->column[c], i));
        }
    }
}

static at_status curves_of(const struct sums *s, int64_t first, const struct curves *of,
                           const struct at_figure_sink *sink) {
    const int64_t like = typical(s, first);
    const char *attention = at_frame_text(s->attention, like), *product = at_frame_text(s->product, like);
    struct at_plot plot = { .x_title = is_qk(s, like) ? "products of a sum = head size" : "products of a sum = keys",
                            .y_title = of->y_title,
                            .x_scale = AT_AXIS_POWERS_OF_2,
                            .y_scale = of->y_scale,
                            .nothing = of->nothing,
                            .mark = NAN };
    struct at_figure figure = { .plot = &plot };
    for (int c = 0; c < of->n; c++)
        plot.legend[of->look[c]] = of->legend[c];
    plot.panels = calloc(AT_PLOT_PANELS, sizeof *plot.panels);
    if (!plot.panels)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for a plot");
    fill_curves(s, like, of, &plot);
    snprintf(plot.title, sizeof plot.title, "%s: %.12s, %.12s, data %.40s", of->title, attention, product,
             at_frame_text(s->data, like));
    snprintf(figure.name, sizeof figure.name, "%s_%.12s_%.12s", of->name, attention, product);
    at_figure_file_name(figure.name);
    snprintf(figure.caption, sizeof figure.caption,
             "%s: %.12s, product %.12s, data %.40s, in each mode of accumulation%s.%s", of->what, attention, product,
             at_frame_text(s->data, like), is_qk(s, like) ? "" : ", at the largest head size", of->more);
    int points = 0;
    for (int p = 0; p < plot.n_panels; p++)
        points = plot.panels[p].curve[0].n > points ? plot.panels[p].curve[0].n : points;
    const at_status status = points > 1 ? sink->take(sink->context, &figure) : AT_OK; /* one length is no curve */
    free(plot.panels);
    return status;
}

/* values[mode, data]: log10 of the largest mean error / share of sums that overflowed, in %. sums: as many, zeroed. */
static void fill_map(const struct sums *s, int64_t like, int overflow, double *values, double *sums) {
    for (int i = 0; i < s->n_modes * s->n_datas; i++)
        values[i] = NAN;
    for (int64_t i = 0; i < s->frame->n; i++) {
        const int m = at_figure_index(s->mode, s->modes, s->n_modes, i);
        const int k = at_figure_index(s->data, s->datas, s->n_datas, i);
        if (m < 0 || k < 0 || !same_kind(s, like, i))
            continue;
        double *value = &values[m * s->n_datas + k], *of = &sums[m * s->n_datas + k];
        const double error = number(s, "err_mean", i), lost = number(s, "overflowed", i);
        if (overflow && number(s, "sums", i) > 0) {
            const double before = isnan(*value) ? 0 : *value * *of / 100;
            *of += number(s, "sums", i);
            *value = 100 * (before + lost) / *of;
        } else if (!overflow && error > 0 && number(s, "compared", i) > 0 && !(log10(error) <= *value)) {
            *value = log10(error);
        }
    }
}

static at_status map_of(const struct sums *s, int64_t like, int overflow, const struct at_figure_sink *sink) {
    const char *attention = at_frame_text(s->attention, like), *product = at_frame_text(s->product, like);
    const char *rows[MAX], *cols[MAX];
    at_status status = AT_OK;
    const size_t cells = (size_t)s->n_modes * (size_t)s->n_datas;
    double *values = calloc(2 * cells + 1, sizeof *values);
    if (!values)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for a plot");
    for (int m = 0; m < s->n_modes; m++)
        rows[m] = at_frame_text(s->mode, s->modes[m]);
    for (int k = 0; k < s->n_datas; k++)
        cols[k] = at_frame_text(s->data, s->datas[k]);
    fill_map(s, like, overflow, values, values + cells);
    struct at_heat heat = { .x_title = "data",
                            .y_title = "mode",
                            .rows = s->n_modes,
                            .cols = s->n_datas,
                            .row_names = rows,
                            .col_names = cols,
                            .values = values,
                            .pale = overflow ? 0 : -8,
                            .dark = overflow ? 100 : 0,
                            .digits = overflow ? 0 : 1 };
    struct at_figure figure = { .heat = &heat };
    snprintf(heat.title, sizeof heat.title,
             overflow ? "Sums beyond 65504, %%: %.12s, %.12s" : "log10 error: %.12s, %.12s", attention, product);
    snprintf(figure.name, sizeof figure.name, "accumulate_%s_%.12s_%.12s", overflow ? "overflow" : "worst", attention,
             product);
    at_figure_file_name(figure.name);
    snprintf(
        figure.caption, sizeof figure.caption,
        overflow
            ? "Share of the sums of %.12s, product %.12s, with an accumulator beyond 65504 on the way, in %%."
            : "The largest mean error of any length and head size of %.12s, product %.12s, as a power of ten: -3 is "
              "a thousandth of sum |a b|. A dash: no error, or no finite result.",
        attention, product);
    AT_TRY_OUT(sink->take(sink->context, &figure));
out:
    free(values);
    return status;
}

static at_status accumulate(const struct at_frame *frame, const struct at_figure_sink *sink) {
    struct sums s = { .frame = frame,
                      .attention = at_frame_column(frame, "attention"),
                      .product = at_frame_column(frame, "product"),
                      .mode = at_frame_column(frame, "mode"),
                      .data = at_frame_column(frame, "data"),
                      .d = at_frame_column(frame, "d"),
                      .length = at_frame_column(frame, "length") };
    if (!s.attention || !s.product || !s.mode || !s.data || !s.d || !s.length)
        return AT_OK;
    s.n_modes = at_figure_distinct(s.mode, frame->n, s.modes, MAX);
    s.n_datas = at_figure_distinct(s.data, frame->n, s.datas, MAX);
    int64_t kinds[MAX];
    int n_kinds = 0;
    for (int64_t i = 0; i < frame->n && n_kinds < MAX; i++) {
        int seen = 0;
        for (int k = 0; k < n_kinds && !seen; k++)
            seen = same_kind(&s, i, kinds[k]);
        if (seen)
            continue;
        kinds[n_kinds++] = i;
        AT_TRY(curves_of(&s, i, &errors, sink));
        if (at_frame_column(frame, "swamped_share"))
            AT_TRY(curves_of(&s, i, &swamped, sink));
        AT_TRY(map_of(&s, i, 0, sink));
        AT_TRY(map_of(&s, i, 1, sink));
    }
    return AT_OK;
}

at_status at_figures_studies(const struct at_export *e, const struct at_figure_sink *sink) {
    const struct at_frame *sums = at_frame_find(&e->frames, "studies/accumulate");
    const struct at_frame *cores = at_frame_find(&e->frames, "studies/tensor_core");
    const struct at_frame *exp2 = at_frame_find(&e->frames, "studies/exp2");
    const struct at_frame *steps = at_frame_find(&e->frames, "studies/stack_steps");
    if (sums)
        AT_TRY(accumulate(sums, sink));
    if (cores)
        AT_TRY(at_figures_tensor_core(cores, sink));
    if (steps)
        AT_TRY(at_figures_stack(steps, sink));
    return exp2 ? at_figures_exp2(exp2, sink) : AT_OK;
}
