/* Plots of a study: errors and swamped steps over the length, overflow by distribution.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "notebooks_export/plots/plots.h"
#include "verify/result/atomic_file.h"
#include "verify/study/accumulate/study.h"

struct plots {
    const struct at_study_rows *rows;
    const char *dir;
    int n;
};

/* Whole or not at all. */
static at_status write_plot(const char *path, const struct at_plot *plot, const struct at_bars *bars) {
    struct at_atomic_file file;
    AT_TRY(at_atomic_open(path, &file));
    if (plot)
        at_plot_sheet(file.stream, plot);
    else
        at_plot_bars(file.stream, bars);
    return at_atomic_commit(&file);
}

static int same_plot(const struct at_study_row *a, const struct at_study_row *b) {
    return strcmp(a->attention, b->attention) == 0 && strcmp(a->product, b->product) == 0 &&
           strcmp(a->data, b->data) == 0 && (a->d == b->d || strcmp(a->product, "qk") == 0);
}

/* "minilm/0" is no file name. */
static void file_name(char *text) {
    for (; *text; text++)
        if (*text == '/')
            *text = '-';
}

/* ---- over the length ---- */

static struct at_panel *panel_of(struct at_plot *plot, const struct at_study_row *row, int curves) {
    char title[64];
    snprintf(title, sizeof title, "%s", row->mode);
    if (plot->y_scale != AT_AXIS_PERCENT && isfinite(row->slope))
        snprintf(title, sizeof title, "%s, slope %.2f", row->mode, row->slope);
    for (int i = 0; i < plot->n_panels; i++)
        if (strcmp(plot->panels[i].title, title) == 0)
            return &plot->panels[i];
    struct at_panel *panel = at_plot_add(plot, title);
    if (panel)
        panel->n = curves;
    return panel;
}

static void put_point(struct at_curve *curve, enum at_look look, double x, double y) {
    curve->look = look;
    at_curve_add(curve, x, y);
}

static void add_row(struct at_plot *plot, const struct at_study_row *row) {
    struct at_panel *panel = panel_of(plot, row, plot->y_scale == AT_AXIS_PERCENT ? 1 : 4);
    if (!panel)
        return;
    const double x = (double)row->length;
    if (plot->y_scale == AT_AXIS_PERCENT) {
        put_point(&panel->curve[0], AT_LOOK_DOTS, x, row->swamped_share);
        return;
    }
    put_point(&panel->curve[0], AT_LOOK_DOTS, x, row->err_mean);
    put_point(&panel->curve[1], AT_LOOK_RINGS, x, row->err_max);
    put_point(&panel->curve[2], AT_LOOK_DASHED, x, row->bound);
    put_point(&panel->curve[3], AT_LOOK_DOTTED, x, row->probable);
}

static at_status plot_over_length(struct plots *p, const struct at_study_row *like, int swamped) {
    char path[4096], name[192];
    struct at_plot plot = { .x_scale = AT_AXIS_POWERS_OF_2,
                            .y_scale = swamped ? AT_AXIS_PERCENT : AT_AXIS_POWERS_OF_10,
                            .mark = NAN,
                            .nothing = swamped ? "nothing to show" : "no error, or no finite result",
                            .x_title = strcmp(like->product, "qk") == 0 ? "products of a sum = head size"
                                                                        : "products of a sum = keys of a row",
                            .y_title = swamped ? "steps that change nothing, % of steps" : "error / sum |a b|, no unit",
                            .legend = { [AT_LOOK_DOTS] = swamped ? "share of steps" : "mean",
                                        [AT_LOOK_RINGS] = swamped ? NULL : "largest",
                                        [AT_LOOK_DASHED] = swamped ? NULL : "bound in any inputs",
                                        [AT_LOOK_DOTTED] = swamped ? NULL : "bound with the root of the roundings" } };
    int lengths = 0;
    plot.panels = calloc(AT_PLOT_PANELS, sizeof *plot.panels);
    if (!plot.panels)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for a plot");
    for (int64_t i = 0; i < p->rows->n; i++)
        if (same_plot(&p->rows->items[i], like))
            add_row(&plot, &p->rows->items[i]);
    for (int i = 0; i < plot.n_panels; i++)
        lengths = plot.panels[i].curve[0].n > lengths ? plot.panels[i].curve[0].n : lengths;
    const int qk = strcmp(like->product, "qk") == 0;
    snprintf(name, sizeof name, "%s_%s_%s_%s%s", swamped ? "swamped" : "error", like->attention, like->product,
             like->data, qk ? "" : "_d");
    if (!qk)
        snprintf(name + strlen(name), sizeof name - strlen(name), "%lld", (long long)like->d);
    file_name(name);
    snprintf(plot.title, sizeof plot.title, "%s: %s, %s, data %s", swamped ? "Swamped steps" : "Error of the sum",
             like->attention, strcmp(like->product, "qk") == 0 ? "Q K" : "P V", like->data);
    if (!qk)
        snprintf(plot.title + strlen(plot.title), sizeof plot.title - strlen(plot.title), ", head size %lld%s",
                 (long long)like->d,
                 strcmp(like->product, "pv_unit") == 0 ? ", P normalised before it is rounded" : "");
    snprintf(path, sizeof path, "%s/%s.svg", p->dir, name);
    const at_status status = lengths < 2 ? AT_OK : write_plot(path, &plot, NULL); /* one length is no curve */
    p->n += lengths >= 2 && status == AT_OK;
    free(plot.panels);
    return status;
}

/* ---- overflow by distribution ---- */

static int same_overflow(const struct at_study_row *a, const struct at_study_row *b) {
    return strcmp(a->mode, b->mode) == 0 && strcmp(a->attention, b->attention) == 0 &&
           strcmp(a->product, b->product) == 0;
}

/* There is room for one of each row. */
static struct at_bar *bar_of(struct at_bars *bars, const char *data) {
    for (int i = 0; i < bars->n; i++)
        if (strcmp(bars->bars[i].name, data) == 0)
            return &bars->bars[i];
    struct at_bar *bar = &bars->bars[bars->n++];
    snprintf(bar->name, sizeof bar->name, "%s", data);
    bar->share[0] = bar->share[1] = 0;
    return bar;
}

/* Shares of the worst length and head size of each distribution. */
static at_status plot_overflow(struct plots *p, const struct at_study_row *like) {
    char path[4096];
    if (strncmp(like->mode, "f16", 3) != 0)
        return AT_OK; /* the others do not end at 65504 */
    struct at_bars bars = { .x_title = "sums, % of those with finite operands",
                            .legend = { "beyond 65504 at some step", "result Inf or NaN" } };
    bars.bars = calloc((size_t)p->rows->n + 1, sizeof *bars.bars);
    if (!bars.bars)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for a plot");
    for (int64_t i = 0; i < p->rows->n; i++) {
        const struct at_study_row *row = &p->rows->items[i];
        const double sums = (double)(row->sums - row->inputs_nonfinite);
        if (!same_overflow(row, like) || sums == 0)
            continue;
        struct at_bar *bar = bar_of(&bars, row->data);
        bar->share[0] = fmax(bar->share[0], (double)row->overflowed / sums);
        bar->share[1] = fmax(bar->share[1], (double)(row->result_inf + row->result_nan) / sums);
    }
    snprintf(bars.title, sizeof bars.title, "Overflow of %s: %s, %s, the worst length and head size", like->mode,
             like->attention, like->product);
    snprintf(path, sizeof path, "%s/overflow_%s_%s_%s.svg", p->dir, like->attention, like->product, like->mode);
    const at_status status = write_plot(path, NULL, &bars);
    p->n += status == AT_OK;
    free(bars.bars);
    return status;
}

/* Calls plot once for each set of rows that are `same`. */
static at_status each_once(struct plots *p, int (*same)(const struct at_study_row *, const struct at_study_row *),
                           at_status (*plot)(struct plots *, const struct at_study_row *)) {
    char *done = calloc((size_t)p->rows->n + 1, 1);
    at_status status = AT_OK;
    if (!done)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for plots");
    for (int64_t i = 0; i < p->rows->n && status == AT_OK; i++) {
        if (done[i])
            continue;
        for (int64_t j = i; j < p->rows->n; j++)
            done[j] |= (char)same(&p->rows->items[i], &p->rows->items[j]);
        status = plot(p, &p->rows->items[i]);
    }
    free(done);
    return status;
}

static at_status plot_both(struct plots *p, const struct at_study_row *like) {
    AT_TRY(plot_over_length(p, like, 0));
    return plot_over_length(p, like, 1);
}

at_status at_study_plots(const struct at_study_rows *rows, const char *dir, int *n) {
    struct plots p = { .rows = rows, .dir = dir };
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return AT_FAIL(AT_IO, "%s: %s", dir, strerror(errno));
    AT_TRY(each_once(&p, same_plot, plot_both));
    AT_TRY(each_once(&p, same_overflow, plot_overflow));
    *n = p.n;
    return AT_OK;
}
