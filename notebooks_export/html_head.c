/* The head of the page: what was run, what came of it, what was asked for, where things are.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "notebooks_export/html.h"
#include "notebooks_export/templates.h"

static int is_study(const struct at_frame *frame) { return strncmp(frame->group, "studies/", 8) == 0; }

static int n_studies(const struct at_export *e) {
    int n = 0;
    for (int i = 0; i < e->frames.n; i++)
        n += is_study(&e->frames.items[i]);
    return n;
}

/* ---- title ---- */

static const char *kind_of(const struct at_export *e) {
    return at_frame_find(&e->frames, "results") ? "Verification run"
           : at_frame_find(&e->frames, "bench") ? "Benchmark"
           : n_studies(e)                       ? "Study"
                                                : "Score distributions";
}

/* "run, Verification run: 3 of 6 results fail", so that tabs and bookmarks say it. */
static void put_title(const struct at_export *e, const struct at_html_order *order, FILE *f) {
    fputs("<title>", f);
    at_html_text(f, e->name);
    fprintf(f, ", %s", kind_of(e));
    if (order->r.results && order->r.results->n == 0)
        fputs(": no results", f);
    else if (order->r.results && order->count[AT_HTML_FAILS])
        fprintf(f, ": %lld of %lld results fail", (long long)order->count[AT_HTML_FAILS],
                (long long)order->r.results->n);
    else if (order->r.results)
        fputs(": no result fails", f);
    fputs(" - attest</title>\n", f);
}

/* ---- what came of it ---- */

static void put_verdict(const struct at_html_order *order, FILE *f) {
    static const char *const one[AT_HTML_CLASSES] = { "fails", "proves nothing", "is right", "was not judged" };
    static const char *const many[AT_HTML_CLASSES] = { "fail", "prove nothing", "are right", "were not judged" };
    const long long n = order->r.results->n, fail = order->count[AT_HTML_FAILS];
    char text[64];
    if (n == 0)
        snprintf(text, sizeof text, "No results");
    else if (fail)
        snprintf(text, sizeof text, "%lld of %lld results %s", fail, n, fail == 1 ? one[0] : many[0]);
    else if (order->count[AT_HTML_RIGHT])
        snprintf(text, sizeof text, "No result fails");
    else
        snprintf(text, sizeof text, "Nothing was proven");
    fputs("<p class=\"verdict\">", f);
    at_html_badge(f,
                  n == 0                        ? AT_HTML_UNJUDGED
                  : fail                        ? AT_HTML_FAILS
                  : order->count[AT_HTML_RIGHT] ? AT_HTML_RIGHT
                                                : AT_HTML_DOUBTFUL,
                  text);
    const char *between = " ";
    for (int c = AT_HTML_DOUBTFUL; c < AT_HTML_CLASSES; c++)
        if (order->count[c]) {
            fprintf(f, "%s%lld %s", between, (long long)order->count[c], order->count[c] == 1 ? one[c] : many[c]);
            between = ", ";
        }
    fputs("</p>\n", f);
}

static void put_content(const struct at_export *e, FILE *f) {
    static const struct {
        const char *group, *rows;
    } known[] = { { "results", "results of verification" },
                  { "ledger", "rows of the overflow ledger" },
                  { "bench", "timed kernels" },
                  { "certificates", "certificates" } };
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
        if (is_study(&e->frames.items[i])) {
            fprintf(f, "%sthe study ", between);
            at_html_text(f, e->frames.items[i].group + 8);
            fprintf(f, " (%lld rows)", (long long)e->frames.items[i].n);
            between = ", ";
        }
    if (e->frames.has_distributions)
        fprintf(f, "%sscore distributions", between);
    fputs(".</p>\n<p class=\"paper\">Folded parts are not on paper: open them before printing.</p>\n", f);
}

/* ---- what was asked for: the few words by which one run is told from another ---- */

static void put_asked(FILE *f, const char *key, const json_t *value) {
    const json_t *item;
    size_t i;
    int put = 0;
    if (json_is_integer(value))
        fprintf(f, "<li><span class=\"key\">%s</span> %lld</li>", key, (long long)json_integer_value(value));
    if (json_is_string(value) && *json_string_value(value)) {
        fprintf(f, "<li><span class=\"key\">%s</span> ", key);
        at_html_text(f, json_string_value(value));
        fputs("</li>", f);
    }
    json_array_foreach(value, i, item) {
        if (!json_is_string(item))
            continue;
        fputs(put++ ? " " : "<li><span class=\"key\">", f);
        if (put == 1)
            fprintf(f, "%s</span> ", key);
        at_html_text(f, json_string_value(item));
    }
    fputs(put ? "</li>" : "", f);
}

static void put_keys(FILE *f, const json_t *object, const char *const *keys) {
    for (; *keys; keys++)
        put_asked(f, *keys, json_object_get(object, *keys));
}

static void put_request(const struct at_export *e, FILE *f) {
    static const char *const request[] = { "study", "record", "modes", "data", "attention", "layers", "runner", NULL };
    static const char *const selection[] = { "variants", "cases", "case", NULL };
    static const char *const build[] = { "device", "tool", "commit", NULL };
    json_t *asked = json_loads(e->frames.request, 0, NULL), *answered = json_loads(e->frames.build, 0, NULL);
    const json_t *chosen = json_object_get(asked, "selection");
    fputs("<ul class=\"asked\">\n", f);
    put_keys(f, asked, request);
    put_keys(f, json_is_object(chosen) ? chosen : asked, selection);
    put_keys(f, answered, build);
    fputs("</ul>\n", f);
    json_decref(asked);
    json_decref(answered);
}

/* ---- where things are ---- */

static void put_link(FILE *f, int there, const char *id, const char *text) {
    if (there)
        fprintf(f, "<a href=\"#%s\">%s</a>\n", id, text);
}

static void put_contents(const struct at_export *e, const struct at_html_order *order, FILE *f) {
    const int results = order->r.results != NULL;
    fputs("<nav>", f);
    put_link(f, results && order->r.results->n, "matrix", "variants by role");
    put_link(f, results, "summary", "by state");
    put_link(f, results, "results", "results");
    put_link(f, results, "limits", "limits and range");
    put_link(f, at_frame_find(&e->frames, "bench") != NULL, "bench", "times");
    put_link(f, n_studies(e) > 0, "studies", "studies");
    put_link(f, e->frames.has_distributions, "distributions", "distributions");
    put_link(f, 1, "provenance", "where it comes from");
    fputs("</nav>\n", f);
}

void at_html_head(const struct at_export *e, const struct at_html_order *order, FILE *f) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n",
          f);
    put_title(e, order, f);
    fputs("<style>\n", f);
    at_template_put(f, "page.css");
    fprintf(f, "</style>\n</head>\n<body>\n<h1><span class=\"kind\">%s</span> ", kind_of(e));
    at_html_text(f, e->name);
    fputs("</h1>\n", f);
    if (order->r.results)
        put_verdict(order, f);
    put_request(e, f);
    put_content(e, f);
    put_contents(e, order, f);
}
