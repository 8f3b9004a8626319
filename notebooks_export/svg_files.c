/* The plots of an archive as files of SVG.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/export_distributions.h"
#include "notebooks_export/figures.h"

static at_status write_figure(void *context, const struct at_figure *figure) {
    struct at_export *e = context;
    struct at_atomic_file file;
    AT_TRY(at_export_begin(e, figure->name, "svg", &file));
    if (figure->plot)
        at_plot_sheet(file.stream, figure->plot);
    else if (figure->heat)
        at_plot_heat(file.stream, figure->heat);
    else
        at_plot_bars(file.stream, figure->bars);
    return at_export_end(e, &file);
}

at_status at_export_svg(struct at_export *e) {
    const struct at_figure_sink sink = { write_figure, e };
    AT_TRY(at_figures_results(e, &sink));
    AT_TRY(at_figures_bench(e, &sink));
    AT_TRY(at_figures_studies(e, &sink));
    AT_TRY(at_figures_distributions(e, &sink));
    return e->files ? AT_OK
                    : AT_FAIL(AT_UNSUPPORTED, "%s: has nothing that is plotted; --to csv exports it", e->archive);
}
