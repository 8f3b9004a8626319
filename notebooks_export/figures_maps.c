/* Plots of studies that are one map: neighbours of the tensor cores' model, errors of exp2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "notebooks_export/figures.h"

enum { MAX = 64 };

/* ---- tensor cores ---- */

at_status at_figures_tensor_core(const struct at_frame *frame, const struct at_figure_sink *sink) {
    static const char *const neighbours[] = { "kept_less",  "kept_more",   "floor_less",    "floor_more",
                                              "block_half", "block_twice", "other_rounding" };
    enum { N = sizeof neighbours / sizeof *neighbours };
    const struct at_frame_column *instruction = at_frame_column(frame, "instruction");
    const struct at_frame_column *patterns = at_frame_column(frame, "patterns");
    int64_t first[MAX];
    const char *rows[MAX];
    double values[MAX * N], of[MAX * N];
    if (!instruction || !patterns)
        return AT_OK;
    const int n = at_figure_distinct(instruction, frame->n, first, MAX);
    for (int i = 0; i < n * N; i++) {
        values[i] = NAN;
        of[i] = 0;
    }
    for (int64_t i = 0; i < frame->n; i++) {
        const int row = at_figure_index(instruction, first, n, i);
        for (int k = 0; k < N && row >= 0; k++) {
            const double told = at_frame_number(at_frame_column(frame, neighbours[k]), i, 0);
            if (!(told >= 0)) /* -1: there is no such neighbour */
                continue;
            const double before = of[row * N + k] > 0 ? values[row * N + k] * of[row * N + k] : 0;
            of[row * N + k] += at_frame_number(patterns, i, 0);
            values[row * N + k] = (before + 100 * told) / of[row * N + k];
        }
    }
    for (int i = 0; i < n; i++)
        rows[i] = at_frame_text(instruction, first[i]);
    struct at_heat heat = { .title = "Patterns that tell a neighbour of the model, %",
                            .x_title = "neighbour",
                            .y_title = "instruction",
                            .rows = n,
                            .cols = N,
                            .row_names = rows,
                            .col_names = neighbours,
                            .values = values,
                            .pale = 0,
                            .dark = 50,
                            .digits = 2 };
    struct at_figure figure = {
        .name = "tensor_core_neighbours",
        .caption = "How often a model with one bit less or more, half or twice the block, or the other "
                   "rounding would have given another result, in % of the patterns. A dash: there is "
                   "no such neighbour.",
        .heat = &heat
    };
    return n ? sink->take(sink->context, &figure) : AT_OK;
}

/* ---- exp2 ---- */

struct exp2_map {
    const struct at_frame *frame;
    const struct at_frame_column *variant, *class;
    const char *rows[MAX], *cols[MAX];
    int64_t first[MAX], first_class[MAX];
    int n_rows, n_cols;
    double *values;
};

/* share: the column in % of the inputs; else as it is. Classes without inputs have a dash. */
static void fill_exp2(struct exp2_map *m, const char *column, int share) {
    const struct at_frame_column *inputs = at_frame_column(m->frame, "inputs");
    for (int i = 0; i < m->n_rows * m->n_cols; i++)
        m->values[i] = NAN;
    for (int64_t i = 0; i < m->frame->n; i++) {
        const int row = at_figure_index(m->variant, m->first, m->n_rows, i);
        const int col = at_figure_index(m->class, m->first_class, m->n_cols, i);
        const double value = at_frame_number(at_frame_column(m->frame, column), i, 0);
        const double n = at_frame_number(inputs, i, 0);
        if (row >= 0 && col >= 0 && n > 0)
            m->values[row * m->n_cols + col] = share ? 100 * value / n : value;
    }
}

static at_status give_exp2(const struct exp2_map *m, const char *name, const char *title, const char *caption,
                           double dark, const struct at_figure_sink *sink) {
    struct at_heat heat = { .x_title = "class of inputs, by what 2^x is",
                            .y_title = "variant",
                            .rows = m->n_rows,
                            .cols = m->n_cols,
                            .row_names = m->rows,
                            .col_names = m->cols,
                            .values = m->values,
                            .pale = 0,
                            .dark = dark,
                            .digits = 2 };
    struct at_figure figure = { .heat = &heat };
    snprintf(heat.title, sizeof heat.title, "%s", title);
    snprintf(figure.name, sizeof figure.name, "%s", name);
    snprintf(figure.caption, sizeof figure.caption, "%s", caption);
    return sink->take(sink->context, &figure);
}

at_status at_figures_exp2(const struct at_frame *frame, const struct at_figure_sink *sink) {
    struct exp2_map m = { .frame = frame,
                          .variant = at_frame_column(frame, "variant"),
                          .class = at_frame_column(frame, "name") };
    at_status status = AT_OK;
    if (!m.variant || !m.class || frame->n == 0)
        return AT_OK;
    m.n_rows = at_figure_distinct(m.variant, frame->n, m.first, MAX);
    m.n_cols = at_figure_distinct(m.class, frame->n, m.first_class, MAX);
    m.values = calloc((size_t)m.n_rows * (size_t)m.n_cols, sizeof *m.values);
    if (!m.values)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for a plot");
    for (int i = 0; i < m.n_rows; i++)
        m.rows[i] = at_frame_text(m.variant, m.first[i]);
    for (int i = 0; i < m.n_cols; i++)
        m.cols[i] = at_frame_text(m.class, m.first_class[i]);
    fill_exp2(&m, "max_ulp", 0);
    AT_TRY_OUT(give_exp2(&m, "exp2_ulp", "Largest error of 2^x, ulp",
                         "Largest error in units in the last place, of results that were not flushed to 0. A dash: no "
                         "such input, or no such result.",
                         2, sink));
    fill_exp2(&m, "not_nearest", 1);
    AT_TRY_OUT(give_exp2(&m, "exp2_nearest", "Results of 2^x that are not the nearest number, %",
                         "Share of the inputs whose result is finite and not what 2^x rounds to.", 100, sink));
out:
    free(m.values);
    return status;
}
