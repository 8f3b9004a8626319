/* Tables, figures and folds of the page of HTML.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "notebooks_export/csv_write.h"
#include "notebooks_export/html.h"
#include "notebooks_export/plots/svg.h"

void at_html_text(FILE *f, const char *text) { at_svg_escape(f, text); }

void at_html_name(FILE *f, const char *name) {
    char part[256];
    while (*name) {
        const size_t n = strcspn(name, "_"), length = n + (name[n] == '_');
        snprintf(part, sizeof part, "%.*s", (int)length, name);
        at_html_text(f, part);
        fputs(name[n] ? "<wbr>" : "", f);
        name += length;
    }
}

void at_html_section(FILE *f, const char *id, const char *title) {
    fprintf(f, "<h2 id=\"%s\">", id);
    at_html_text(f, title);
    fputs("</h2>\n", f);
}

/* ---- tables ---- */

void at_html_table(FILE *f, const char *caption, const char *const *heads, int n) {
    if (caption) { /* no <caption>: it would scroll sideways with the table */
        fputs("<p class=\"caption\">", f);
        at_html_text(f, caption);
        fputs("</p>\n", f);
    }
    fputs("<div class=\"wide\"><table>\n", f);
    fputs("<thead><tr>", f);
    for (int i = 0; i < n; i++) {
        const int is_number = heads[i][0] == '#';
        fprintf(f, "<th%s>", is_number ? " class=\"n\"" : "");
        at_html_text(f, heads[i] + is_number);
        fputs("</th>", f);
    }
    fputs("</tr></thead>\n<tbody>\n", f);
}

void at_html_table_end(FILE *f) { fputs("</tbody></table></div>\n", f); }

void at_html_cell(FILE *f, const char *text) {
    fputs("<td>", f);
    at_html_text(f, text);
    fputs("</td>", f);
}

void at_html_number(FILE *f, double value, int digits) {
    if (isnan(value))
        fputs("<td class=\"n\">-</td>", f);
    else
        fprintf(f, "<td class=\"n\">%.*g</td>", digits, value);
}

void at_html_count(FILE *f, double value) {
    if (isnan(value))
        fputs("<td class=\"n\">-</td>", f);
    else
        fprintf(f, "<td class=\"n\">%.0f</td>", value);
}

void at_html_fold(FILE *f, const char *summary) {
    fputs("<details><summary>", f);
    at_html_text(f, summary);
    fputs("</summary>\n", f);
}

void at_html_fold_end(FILE *f) { fputs("</details>\n", f); }

/* ---- figures ---- */

void at_html_figure(FILE *f, const struct at_figure *figure) {
    fprintf(f, "<figure%s>\n", figure->heat ? " class=\"map\"" : "");
    if (figure->plot) {
        fputs("<p class=\"title\">", f);
        at_html_text(f, figure->plot->title);
        fputs("</p>\n<p class=\"legend\">", f);
        for (int i = 0; i < AT_LOOKS; i++)
            if (figure->plot->legend[i]) {
                fputs("<span>", f);
                at_plot_sample(f, (enum at_look)i);
                at_html_text(f, figure->plot->legend[i]);
                fputs("</span> ", f);
            }
        fputs("</p>\n<div class=\"panels\">\n", f);
        for (int p = 0; p < figure->plot->n_panels; p++)
            at_plot_panel(f, figure->plot, p);
        fputs("</div>\n", f);
    } else {
        fputs("<div class=\"wide\">\n", f);
        if (figure->heat)
            at_plot_heat(f, figure->heat);
        else
            at_plot_bars(f, figure->bars);
        fputs("</div>\n", f);
    }
    fputs("<figcaption>", f);
    at_html_text(f, figure->caption);
    fputs("</figcaption></figure>\n", f);
}

at_status at_html_take_figure(void *context, const struct at_figure *figure) {
    at_html_figure(context, figure);
    return AT_OK;
}

/* ---- a table as it is ---- */

/* A page with more rows is slow to open. */
enum { MAX_COLUMNS = 256, MAX_ROWS = 3000, PAPER_COLUMNS = 14 };

static void put_value(FILE *f, const struct at_frame_column *c, int64_t i) {
    char text[32];
    switch (c->kind) {
    case AT_FRAME_TEXT:
    case AT_FRAME_FLAG:
        at_html_cell(f, at_frame_text(c, i));
        return;
    case AT_FRAME_I64:
        snprintf(text, sizeof text, "%" PRId64, c->at.i64[i]);
        fprintf(f, "<td class=\"n\">%s</td>", c->has_missing && c->at.i64[i] == -1 ? "-" : text);
        return;
    case AT_FRAME_U64:
        fprintf(f, "<td class=\"n\">%" PRIu64 "</td>", c->at.u64[i]);
        return;
    case AT_FRAME_F64:
        at_html_number(f, c->at.f64[i], 5);
        return;
    }
}

void at_html_frame(FILE *f, const struct at_frame *frame) {
    const char *heads[MAX_COLUMNS];
    char marked[MAX_COLUMNS][64];
    int n = 0;
    for (int c = 0; c < frame->n_columns && n < MAX_COLUMNS; c++) {
        const struct at_frame_column *column = &frame->columns[c];
        if (column->width != 1)
            continue;
        const int text = column->kind == AT_FRAME_TEXT || column->kind == AT_FRAME_FLAG;
        const int dimensionless = strcmp(column->units, "1") == 0 || !*column->units;
        snprintf(marked[n], sizeof marked[n], dimensionless ? "%s%.40s" : "%s%.40s, %.16s", text ? "" : "#",
                 column->name, column->units);
        heads[n] = marked[n];
        n++;
    }
    if (n > PAPER_COLUMNS)
        fprintf(f,
                "<p class=\"paper\">A table of %d columns is too wide for paper: <code>attest export --to csv</code> "
                "writes "
                "it.</p>\n<div class=\"screen\">\n",
                n);
    at_html_table(f, NULL, heads, n);
    for (int64_t i = 0; i < frame->n && i < MAX_ROWS; i++) {
        fputs("<tr>", f);
        for (int c = 0, k = 0; c < frame->n_columns && k < n; c++)
            if (frame->columns[c].width == 1) {
                put_value(f, &frame->columns[c], i);
                k++;
            }
        fputs("</tr>\n", f);
    }
    at_html_table_end(f);
    fputs(n > PAPER_COLUMNS ? "</div>\n" : "", f);
    if (frame->n > MAX_ROWS)
        fprintf(f, "<p>The first %d of %lld rows; <code>attest export --to csv</code> writes them all.</p>\n", MAX_ROWS,
                (long long)frame->n);
}
