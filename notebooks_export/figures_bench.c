/* Plots of a benchmark: how near each variant came to the floor that its bytes set, a plot for each case.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/figures.h"

enum { MAX_CASES = 512 };

static double share_of_floor(const struct at_frame *bench, int64_t row, const char *time) {
    const double bytes = at_frame_number(at_frame_column(bench, "bytes"), row, 0);
    const double rate = at_frame_number(at_frame_column(bench, "copy_rate"), row, 0);
    return bytes / rate / at_frame_number(at_frame_column(bench, time), row, 0);
}

at_status at_figures_bench(const struct at_export *e, const struct at_figure_sink *sink) {
    const struct at_frame *bench = at_frame_find(&e->frames, "bench");
    const struct at_frame_column *case_id = at_frame_column(bench, "case_id"),
                                 *name = at_frame_column(bench, "variant");
    int64_t cases[MAX_CASES];
    at_status status = AT_OK;
    if (!case_id || !name)
        return AT_OK;
    struct at_bars bars = { .x_title = "time of a large copy of the same bytes over the time of a launch, %",
                            .legend = { "caches cold", "caches hot" } };
    const int n = at_figure_distinct(case_id, bench->n, cases, MAX_CASES);
    bars.bars = calloc((size_t)bench->n + 1, sizeof *bars.bars);
    if (!bars.bars)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for a plot");
    for (int c = 0; c < n; c++) {
        struct at_figure figure = { .bars = &bars };
        bars.n = 0;
        for (int64_t i = 0; i < bench->n; i++) {
            const double cold = share_of_floor(bench, i, "cold"), hot = share_of_floor(bench, i, "hot");
            if (at_figure_index(case_id, &cases[c], 1, i) != 0 || (isnan(cold) && isnan(hot)))
                continue;
            struct at_bar *bar = &bars.bars[bars.n++];
            snprintf(bar->name, sizeof bar->name, "%.20s", at_frame_text(name, i));
            bar->share[0] = cold;
            bar->share[1] = hot;
        }
        snprintf(bars.title, sizeof bars.title, "Share of the floor, case %d", c + 1);
        snprintf(figure.name, sizeof figure.name, "bench_%03d", c + 1);
        snprintf(figure.caption, sizeof figure.caption, "%.480s", at_frame_text(case_id, cases[c]));
        if (bars.n)
            AT_TRY_OUT(sink->take(sink->context, &figure));
    }
out:
    free(bars.bars);
    return status;
}
