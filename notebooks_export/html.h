/* Parts of the page of HTML.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HTML_H
#define AT_HTML_H

#include <stdio.h>

#include "notebooks_export/figures.h"
#include "notebooks_export/html_order.h"

/* ---- pieces ---- */

void at_html_text(FILE *f, const char *text);
/* A name of a variant, which may go on in the next line after each '_'. */
void at_html_name(FILE *f, const char *name);
/* A heading with an anchor: "results". */
void at_html_section(FILE *f, const char *id, const char *title);
/* <table> with a caption (NULL: none) and a row of heads; a head that begins with '#' is of a column of numbers. */
void at_html_table(FILE *f, const char *caption, const char *const *heads, int n);
void at_html_table_end(FILE *f);
/* Cells; numbers with few digits, a dash for NaN. */
void at_html_cell(FILE *f, const char *text);
void at_html_number(FILE *f, double value, int digits);
void at_html_count(FILE *f, double value);
/* <details>, closed. */
void at_html_fold(FILE *f, const char *summary);
void at_html_fold_end(FILE *f);
/* A figure with its legend and caption. */
void at_html_figure(FILE *f, const struct at_figure *figure);
/* Every column and row of a table as it is; on paper only where it fits. */
void at_html_frame(FILE *f, const struct at_frame *frame);

/* ---- sections; nothing where the archive has no such content ---- */

/* Title, what was run and what came of it, in one line each, and links to the sections. */
void at_html_head(const struct at_export *e, const struct at_html_order *order, FILE *f);
at_status at_html_matrix(const struct at_html_order *order, FILE *f);
at_status at_html_results(const struct at_export *e, const struct at_html_order *order, FILE *f);
/* How many of the results, of the worst ones, have a row on the page. */
int64_t at_html_results_shown(const struct at_html_order *order);
at_status at_html_bench(const struct at_export *e, FILE *f);
at_status at_html_studies(const struct at_export *e, FILE *f);
at_status at_html_distributions(const struct at_export *e, FILE *f);

/* A sink that writes figures to the stream `context`. */
at_status at_html_take_figure(void *context, const struct at_figure *figure);

#endif
