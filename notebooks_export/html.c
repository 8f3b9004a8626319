/* One page of HTML that holds all of an archive: no scripts, no other files, no network.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/html.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/templates.h"

static void put_template(FILE *f, const char *name) {
    for (int i = 0; at_templates[i].name; i++)
        if (strcmp(at_templates[i].name, name) == 0)
            for (const char *const *line = at_templates[i].lines; *line; line++)
                fprintf(f, "%s\n", *line);
}

static void put_head(const struct at_export *e, FILE *f) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          f);
    at_html_text(f, e->name);
    fputs(", an archive of attest</title>\n<style>\n", f);
    put_template(f, "page.css");
    fputs("</style>\n</head>\n<body>\n<h1>", f);
    at_html_text(f, e->name);
    fputs("</h1>\n", f);
}

/* ---- what it is ---- */

static void put_content(const struct at_export *e, FILE *f) {
    static const struct {
        const char *group, *rows;
    } known[] = { { "results", "results of verification" },
                  { "ledger", "rows of the overflow ledger" },
                  { "bench", "timed kernels" } };
    fputs("<p>An archive of attest, which judges GPU attention kernels against plain references. It holds", f);
    const char *between = " ";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct at_frame *frame = at_frame_find(&e->frames, known[i].group);
        if (frame) {
            fprintf(f, "%s%lld %s", between, (long long)frame->n, known[i].rows);
            between = ", ";
        }
    }
    for (int i = 0; i < e->frames.n; i++)
        if (strncmp(e->frames.items[i].group, "studies/", 8) == 0) {
            fprintf(f, "%sthe study ", between);
            at_html_text(f, e->frames.items[i].group + 8);
            fprintf(f, " (%lld rows)", (long long)e->frames.items[i].n);
            between = ", ";
        }
    if (e->frames.has_distributions)
        fprintf(f, "%sscore distributions", between);
    fputs(".</p>\n<p class=\"paper\">Folded parts are not on paper: open them before printing.</p>\n", f);
}

static void put_link(FILE *f, int there, const char *id, const char *text) {
    if (there)
        fprintf(f, "<a href=\"#%s\">%s</a> ", id, text);
}

static void put_contents(const struct at_export *e, FILE *f) {
    const int results = at_frame_find(&e->frames, "results") != NULL;
    int studies = 0;
    for (int i = 0; i < e->frames.n; i++)
        studies |= strncmp(e->frames.items[i].group, "studies/", 8) == 0;
    fputs("<nav>", f);
    put_link(f, results, "summary", "by state");
    put_link(f, results, "results", "results");
    put_link(f, results, "limits", "limits and range");
    put_link(f, at_frame_find(&e->frames, "bench") != NULL, "bench", "times");
    put_link(f, studies, "studies", "studies");
    put_link(f, e->frames.has_distributions, "distributions", "distributions");
    put_link(f, 1, "provenance", "where it comes from");
    fputs("</nav>\n", f);
}

/* ---- where it comes from ---- */

static void put_facts(FILE *f, const char *caption, const char *text) {
    static const char *const heads[] = { "key", "value" };
    json_t *object = json_loads(text, 0, NULL), *value;
    const char *key;
    at_html_table(f, caption, heads, 2);
    if (!json_is_object(object)) { /* not ours: shown as it is */
        fputs("<tr>", f);
        at_html_cell(f, "");
        at_html_cell(f, text);
        fputs("</tr>\n", f);
    }
    json_object_foreach(object, key, value) {
        char *dumped =
            json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        fputs("<tr>", f);
        at_html_cell(f, key);
        at_html_cell(f, json_is_string(value) ? json_string_value(value) : dumped ? dumped : "");
        fputs("</tr>\n", f);
        free(dumped);
    }
    at_html_table_end(f);
    json_decref(object);
}

static void put_provenance(const struct at_export *e, FILE *f) {
    at_html_section(f, "provenance", "Where it comes from");
    put_facts(f, "What was asked for", e->frames.request);
    put_facts(f, "What answered", e->frames.build);
    fputs("<p>Archive of schema version ", f);
    at_html_text(f, e->frames.version);
    fputs(".</p>\n", f);
}

static at_status put_page(const struct at_export *e, FILE *f) {
    put_head(e, f);
    put_content(e, f);
    put_contents(e, f);
    AT_TRY(at_html_results(e, f));
    AT_TRY(at_html_bench(e, f));
    AT_TRY(at_html_studies(e, f));
    AT_TRY(at_html_distributions(e, f));
    put_provenance(e, f);
    fputs("<footer>Written by <code>attest export --to html</code>. This page needs no other file; <code>--to "
          "csv</code> gives "
          "the numbers, <code>--to ipynb</code> a notebook.</footer>\n</body>\n</html>\n",
          f);
    return AT_OK;
}

at_status at_export_html(struct at_export *e) {
    struct at_atomic_file file;
    AT_TRY(at_export_begin(e, "", "html", &file));
    const at_status status = put_page(e, file.stream);
    if (status == AT_OK)
        return at_export_end(e, &file);
    at_atomic_abandon(&file);
    return status;
}
