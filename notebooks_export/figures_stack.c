/* Plots of a stack: errors by layer, a panel for each output of a step.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/figures.h"

/* The columns of a panel's curves, over the rms of the run in double. */
static const struct {
    const char *column, *legend;
    enum at_look look;
} curves[] = { { "error_rms", "against the run in double", AT_LOOK_SOLID },
               { "inherited_rms", "what its inputs brought", AT_LOOK_DASHED },
               { "entered_rms", "what the step added", AT_LOOK_DOTS } };
enum { CURVES = sizeof curves / sizeof *curves };

static double number(const struct at_frame *frame, const char *column, int64_t row) {
    return at_frame_number(at_frame_column(frame, column), row, 0);
}

/* Step and tensor of each row: its panel. */
static void name_of(const struct at_frame *frame, int64_t row, char *name, size_t size) {
    snprintf(name, size, "%.30s %.28s", at_frame_text(at_frame_column(frame, "name"), row),
             at_frame_text(at_frame_column(frame, "tensor"), row));
}

static struct at_panel *panel_of(struct at_plot *plot, const char *name) {
    for (int p = 0; p < plot->n_panels; p++)
        if (strcmp(plot->panels[p].title, name) == 0)
            return &plot->panels[p];
    struct at_panel *panel = at_plot_add(plot, name);
    for (int c = 0; panel && c < CURVES; c++)
        panel->curve[c].look = curves[c].look;
    if (panel)
        panel->n = CURVES;
    return panel;
}

at_status at_figures_stack(const struct at_frame *frame, const struct at_figure_sink *sink) {
    struct at_plot plot = { .title = "Errors by layer",
                            .x_title = "layer",
                            .y_title = "rms of the error over the rms of the run in double",
                            .x_scale = AT_AXIS_LINEAR,
                            .y_scale = AT_AXIS_POWERS_OF_10,
                            .nothing = "no error",
                            .first = AT_LOOK_SOLID,
                            .mark = NAN };
    struct at_figure figure = { .name = "stack_errors", .plot = &plot };
    if (!at_frame_column(frame, "name") || !at_frame_column(frame, "tensor") || !at_frame_column(frame, "layer"))
        return AT_OK;
    for (int c = 0; c < CURVES; c++)
        plot.legend[curves[c].look] = curves[c].legend;
    plot.panels = calloc(AT_PLOT_PANELS, sizeof *plot.panels);
    if (!plot.panels)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for a plot");
    for (int64_t i = 0; i < frame->n; i++) {
        const double layer = number(frame, "layer", i), rms = number(frame, "rms", i);
        char name[64];
        name_of(frame, i, name, sizeof name);
        struct at_panel *panel = isnan(layer) || layer < 0 ? NULL : panel_of(&plot, name);
        for (int c = 0; panel && c < CURVES && panel->curve[c].n < AT_PLOT_POINTS; c++)
            at_curve_add(&panel->curve[c], layer, number(frame, curves[c].column, i) / rms);
    }
    snprintf(figure.caption, sizeof figure.caption,
             "Each output of a layer's steps: how far kernels that round at every step are from a run in double of the "
             "same stored "
             "inputs and weights, by layer; of that, what the errors of a step's inputs have become, and what the "
             "step's own "
             "arithmetic added. Read off where an error enters, and whether it grows from layer to layer.");
    const at_status status = plot.n_panels ? sink->take(sink->context, &figure) : AT_OK;
    free(plot.panels);
    return status;
}
