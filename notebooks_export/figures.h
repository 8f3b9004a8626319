/* The plots of an archive, each given to a sink in turn: files of SVG and the page of HTML show the same ones.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FIGURES_H
#define AT_FIGURES_H

#include "notebooks_export/export.h"
#include "notebooks_export/plots/plots.h"

/* One of plot, heat and bars. The texts say what is seen and what is to be read off it. */
struct at_figure {
    char name[128]; /* for a file: letters, digits, '_', '-' and '.' */
    char caption[512];
    const struct at_plot *plot;
    const struct at_heat *heat;
    const struct at_bars *bars;
};
struct at_figure_sink {
    at_status (*take)(void *context, const struct at_figure *figure);
    void *context;
};

/* Archives that lack a column of a plot have no such plot. */
at_status at_figures_results(const struct at_export *e, const struct at_figure_sink *sink);
at_status at_figures_bench(const struct at_export *e, const struct at_figure_sink *sink);
at_status at_figures_studies(const struct at_export *e, const struct at_figure_sink *sink);
/* The studies that are one map each, by their tables. */
at_status at_figures_tensor_core(const struct at_frame *frame, const struct at_figure_sink *sink);
at_status at_figures_exp2(const struct at_frame *frame, const struct at_figure_sink *sink);
/* Errors of a stack's steps, by layer. */
at_status at_figures_stack(const struct at_frame *frame, const struct at_figure_sink *sink);

/* Different texts of a column, in the order of their first row, at most `most`: numbers of rows in which they stand.
 * Returns how many. */
int at_figure_distinct(const struct at_frame_column *column, int64_t rows, int64_t *first, int most);
/* Index of the text of `row` among those; -1: none of them. */
int at_figure_index(const struct at_frame_column *column, const int64_t *first, int n, int64_t row);
/* Characters that a file's name should not have become '-'. */
void at_figure_file_name(char *name);

#endif
