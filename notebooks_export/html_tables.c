/* Benchmarks and studies on the page.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "notebooks_export/html.h"

/* ---- benchmarks ---- */

static void put_bench_row(FILE *f, const struct at_frame *bench, int64_t i) {
    const double cold = at_frame_number(at_frame_column(bench, "cold"), i, 0);
    const double hot = at_frame_number(at_frame_column(bench, "hot"), i, 0);
    const double bytes = at_frame_number(at_frame_column(bench, "bytes"), i, 0);
    const double flops = at_frame_number(at_frame_column(bench, "flops"), i, 0);
    const double floor = bytes / at_frame_number(at_frame_column(bench, "copy_rate"), i, 0);
    const double source = at_frame_number(at_frame_column(bench, "source_seconds"), i, 0);
    fputs("<tr>", f);
    at_html_cell(f, at_frame_text(at_frame_column(bench, "variant"), i));
    at_html_number(f, 1e6 * cold, 5);
    at_html_number(f, 1e6 * hot, 5);
    at_html_number(f, bytes / cold / 1e9, 4);
    at_html_number(f, flops / cold / 1e12, 4);
    at_html_number(f, 100 * floor / cold, 3);
    at_html_number(f, 1e6 * source, 5);
    at_html_number(f, cold / source, 3);
    at_html_cell(f, at_frame_text(at_frame_column(bench, "verdict"), i));
    fputs("</tr>\n", f);
}

static int same_case(const struct at_frame *bench, int64_t a, int64_t b) {
    const struct at_frame_column *id = at_frame_column(bench, "case_id");
    return strcmp(at_frame_text(id, a), at_frame_text(id, b)) == 0;
}

at_status at_html_bench(const struct at_export *e, FILE *f) {
    static const char *const heads[] = { "variant",          "#cold, us",   "#hot, us",       "#GB/s",   "#TFLOP/s",
                                         "#of the floor, %", "#source, us", "#cold / source", "verified" };
    const struct at_figure_sink sink = { at_html_take_figure, f };
    const struct at_frame *bench = at_frame_find(&e->frames, "bench");
    if (!bench)
        return AT_OK;
    at_html_section(f, "bench", "Times");
    fputs("<p>Medians of launches among replays of a graph, with inputs rotated past the caches (cold) and with one "
          "set of "
          "inputs (hot). The floor is the time of a large copy of the bytes that a dense evaluation must move. Only "
          "verified "
          "kernels are timed.</p>\n",
          f);
    for (int64_t i = 0, end; i < bench->n; i = end) {
        for (end = i + 1; end < bench->n && same_case(bench, i, end);)
            end++;
        at_html_table(f, at_frame_text(at_frame_column(bench, "case_id"), i), heads, sizeof heads / sizeof *heads);
        for (int64_t row = i; row < end; row++)
            put_bench_row(f, bench, row);
        at_html_table_end(f);
    }
    at_html_fold(f, "Plots: share of the floor, case by case");
    const at_status status = at_figures_bench(e, &sink);
    at_html_fold_end(f);
    return status;
}

/* ---- studies ---- */

/* Short tables stand open. */
static void put_study(FILE *f, const struct at_frame *frame) {
    char text[96];
    const int folded = frame->n > 60;
    fputs("<h3>", f);
    at_html_text(f, frame->group + strlen("studies/"));
    fputs("</h3>\n", f);
    snprintf(text, sizeof text, "Every row: %lld", (long long)frame->n);
    if (folded)
        at_html_fold(f, text);
    at_html_frame(f, frame);
    if (folded)
        at_html_fold_end(f);
}

at_status at_html_studies(const struct at_export *e, FILE *f) {
    const struct at_figure_sink sink = { at_html_take_figure, f };
    int any = 0;
    for (int i = 0; i < e->frames.n; i++) {
        const struct at_frame *frame = &e->frames.items[i];
        if (strncmp(frame->group, "studies/", 8) != 0)
            continue;
        if (!any++) {
            at_html_section(f, "studies", "Studies");
            AT_TRY(at_figures_studies(e, &sink));
        }
        put_study(f, frame);
    }
    return AT_OK;
}
