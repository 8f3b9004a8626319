/* The matrix of the page: variants by family, roles of cases, in each cell what became of their results.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/html.h"

/* A page with more has no overview: roles that have no column of their own are counted in the last one, and variants
 * with the worst results have lines before others. */
enum { MAX_ROLES = 16, MAX_VARIANTS = 300 };

struct matrix {
    const struct at_html_order *order;
    const struct at_frame_column *role, *family, *variant, *runner;
    int64_t role_first[MAX_ROLES]; /* rows of /cases with the different roles */
    int n_roles, n_columns;        /* one more than roles where some cases are of yet another role */
    int n_states, several_runners;
    int *column_of;                             /* [cases] */
    int *line_of;                               /* [kernels]: -1: has none */
    int64_t without_line;                       /* variants with results, but no line */
    int64_t worst[MAX_VARIANTS][MAX_ROLES + 1]; /* place in the order of the worst result, -1: none */
    int64_t *count;                             /* [lines columns states] */
};

/* ---- counting ---- */

static int64_t *counts_of(const struct matrix *m, int line, int column) {
    return m->count + ((int64_t)line * m->n_columns + column) * m->n_states;
}

static void find_columns(struct matrix *m) {
    const int64_t n = m->order->r.cases->n;
    m->n_columns = m->n_roles = at_figure_distinct(m->role, n, m->role_first, MAX_ROLES);
    for (int64_t i = 0; i < n; i++) {
        m->column_of[i] = at_figure_index(m->role, m->role_first, m->n_roles, i);
        if (m->column_of[i] < 0) {
            m->column_of[i] = m->n_roles;
            m->n_columns = m->n_roles + 1;
        }
    }
}

/* Variants that have a line: those with the worst results. */
static void choose_variants(struct matrix *m) {
    const struct at_html_order *o = m->order;
    int lines = 0;
    for (int64_t k = 0; k < o->r.kernels->n; k++)
        m->line_of[k] = -1;
    for (int64_t i = 0; i < o->r.results->n; i++) {
        int *line = &m->line_of[at_export_kernel(&o->r, o->row[i])];
        if (*line == -1 && lines == MAX_VARIANTS) {
            *line = -2;
            m->without_line++;
        } else if (*line == -1) {
            *line = lines++;
        }
    }
}

static void count_results(struct matrix *m) {
    const struct at_html_order *o = m->order;
    for (int64_t i = 0; i < o->r.results->n; i++) {
        const int64_t row = o->row[i];
        const int line = m->line_of[at_export_kernel(&o->r, row)];
        const int column = m->column_of[at_export_case(&o->r, row)];
        if (line < 0)
            continue;
        if (m->worst[line][column] < 0)
            m->worst[line][column] = i;
        counts_of(m, line, column)[o->state->at.i64[row]]++;
    }
}

static at_status make(struct matrix *m) {
    const struct at_export_results *r = &m->order->r;
    m->role = at_frame_column(r->cases, "role");
    m->family = at_frame_column(r->kernels, "family");
    m->variant = at_frame_column(r->kernels, "variant");
    m->runner = at_frame_column(r->kernels, "runner");
    m->n_states = m->order->state->n_flags;
    m->column_of = calloc((size_t)r->cases->n + 1, sizeof *m->column_of);
    m->line_of = calloc((size_t)r->kernels->n + 1, sizeof *m->line_of);
    m->count = calloc((size_t)MAX_VARIANTS * (MAX_ROLES + 1) * (size_t)m->n_states + 1, sizeof *m->count);
    if (!m->column_of || !m->line_of || !m->count)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for the matrix of variants and roles");
    for (int line = 0; line < MAX_VARIANTS; line++)
        for (int c = 0; c <= MAX_ROLES; c++)
            m->worst[line][c] = -1;
    for (int64_t k = 1; k < r->kernels->n; k++)
        m->several_runners |= strcmp(at_frame_text(m->runner, 0), at_frame_text(m->runner, k)) != 0;
    find_columns(m);
    choose_variants(m);
    count_results(m);
    return AT_OK;
}

static void release(struct matrix *m) {
    free(m->column_of);
    free(m->line_of);
    free(m->count);
    free(m);
}

/* ---- writing ---- */

static void put_heads(FILE *f, const struct matrix *m) {
    fputs("<div class=\"wide\"><table class=\"matrix\">\n<thead><tr><th scope=\"col\">variant</th>", f);
    for (int c = 0; c < m->n_columns; c++) {
        const char *role = c < m->n_roles ? at_frame_text(m->role, m->role_first[c]) : "other roles";
        fputs("<th scope=\"col\">", f);
        at_html_text(f, *role ? role : m->n_columns == 1 ? "all cases" : "no role");
        fputs("</th>", f);
    }
    fputs("</tr></thead>\n", f);
}

/* Its worst state with how many results have it, then the other states. */
static void put_cell(FILE *f, const struct matrix *m, int line, int column) {
    const struct at_html_order *o = m->order;
    const int64_t place = m->worst[line][column], *count = counts_of(m, line, column);
    if (place < 0) {
        fputs("<td></td>", f);
        return;
    }
    const int64_t row = o->row[place], worst = o->state->at.i64[row];
    const int linked = place < at_html_results_shown(o);
    fputs("<td>", f);
    if (linked)
        fprintf(f, "<a href=\"#r%lld\">", (long long)row);
    at_html_badge(f, (enum at_html_class)o->class_of[row], o->state->flag[worst]);
    fprintf(f, " %lld%s", (long long)count[worst], linked ? "</a>" : "");
    const char *between = "<span class=\"also\">";
    for (int s = 0; s < m->n_states; s++)
        if (s != worst && count[s]) {
            fprintf(f, "%s%lld ", between, (long long)count[s]);
            at_html_text(f, o->state->flag[s]);
            between = ", ";
        }
    fputs(*between == ',' ? "</span></td>" : "</td>", f);
}

static void put_variant(FILE *f, const struct matrix *m, int64_t k) {
    fputs("<tr><th scope=\"row\">", f);
    at_html_name(f, at_frame_text(m->variant, k));
    if (m->several_runners) {
        fputs("<span class=\"runner\">", f);
        at_html_text(f, at_frame_text(m->runner, k));
        fputs("</span>", f);
    }
    fputs("</th>", f);
    for (int c = 0; c < m->n_columns; c++)
        put_cell(f, m, m->line_of[k], c);
    fputs("</tr>\n", f);
}

/* The families in the order of their first variant, and all variants of each. */
static void put_families(FILE *f, struct matrix *m) {
    const int64_t n = m->order->r.kernels->n;
    for (int64_t first = 0; first < n; first++) {
        if (m->line_of[first] < 0)
            continue;
        fprintf(f, "<tbody>\n<tr class=\"family\"><th scope=\"rowgroup\" colspan=\"%d\"><span>", m->n_columns + 1);
        at_html_text(f, at_frame_text(m->family, first));
        fputs("</span></th></tr>\n", f);
        for (int64_t k = first; k < n; k++)
            if (m->line_of[k] >= 0 && at_figure_index(m->family, &first, 1, k) == 0) {
                put_variant(f, m, k);
                m->line_of[k] = -1;
            }
        fputs("</tbody>\n", f);
    }
}

static void put_key(FILE *f, const struct matrix *m) {
    static const char *const meaning[AT_HTML_CLASSES] = { "fails the run", "proves nothing", "right", "not judged" };
    fputs("<p>", f);
    for (int c = 0; c < AT_HTML_CLASSES; c++) {
        at_html_badge(f, (enum at_html_class)c, meaning[c]);
        fputc(' ', f);
    }
    fputs(
        "</p>\n<p>A row is a variant, a column the role of its cases: the case file they are in. A cell has its worst "
        "state with the number of results that have it, then the others, and leads to the worst of them below. It is "
        "empty where nothing was run.",
        f);
    if (m->order->r.results->n > at_html_results_shown(m->order))
        fputs(" A cell without a link has none of its results among the rows that this page shows.", f);
    fputs("</p>\n", f);
    if (m->without_line)
        fprintf(
            f,
            "<p>%lld more variants have no row here, none with a worse result than those above: <code>attest export "
            "--to csv</code> writes what became of them.</p>\n",
            (long long)m->without_line);
}

at_status at_html_matrix(const struct at_html_order *order, FILE *f) {
    struct matrix *m;
    if (!order->r.results || order->r.results->n == 0)
        return AT_OK;
    m = calloc(1, sizeof *m);
    if (!m)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for the matrix of variants and roles");
    m->order = order;
    const at_status status = make(m);
    if (status == AT_OK) {
        at_html_section(f, "matrix", "Variants by role of their cases");
        put_heads(f, m);
        put_families(f, m);
        fputs("</table></div>\n", f);
        put_key(f, m);
    }
    release(m);
    return status;
}
