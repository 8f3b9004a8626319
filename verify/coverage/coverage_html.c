/* attest coverage as a page: the table of files, and each source with its counts. No scripts, no other files.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "notebooks_export/plots/svg.h"
#include "notebooks_export/templates.h"
#include "verify/coverage/report.h"
#include "verify/result/atomic_file.h"

static void put_text(FILE *f, const char *text) { at_svg_escape(f, text); }

/* A path, which may go on in the next line after each '/' and '_'. */
static void put_path(FILE *f, const char *path) {
    for (const char *c = path; *c; c++) {
        const char one[2] = { *c, 0 };
        put_text(f, one);
        if (*c == '/' || *c == '_')
            fputs("<wbr>", f);
    }
}

static void put_share(FILE *f, int64_t part, int64_t whole) {
    if (!whole) {
        fputs("<td class=\"n\">-</td><td></td>", f);
        return;
    }
    const double share = 100.0 * (double)part / (double)whole;
    fprintf(f,
            "<td class=\"n\">%" PRId64 " of %" PRId64 "</td><td><span class=\"bar\"><span style=\"width:%.1f%%\">"
            "</span></span> %.1f %%</td>",
            part, whole, share, share);
}

static void put_sum(FILE *f, const struct at_cover_sum *s) {
    put_share(f, s->lines_run, s->lines);
    put_share(f, s->taken, s->branches);
    put_share(f, s->instances_run, s->instances);
}

static void put_heads(FILE *f, const char *first) {
    fprintf(f,
            "<div class=\"wide\"><table class=\"files\">\n<thead><tr><th>%s</th><th class=\"n\">lines run</th><th></th>"
            "<th class=\"n\">branches taken</th><th></th><th class=\"n\">template instances called</th><th></th></tr>"
            "</thead>\n<tbody>\n",
            first);
}

static void put_files(const struct at_cover_report *r, FILE *f) {
    fputs("<h2 id=\"files\">Files</h2>\n", f);
    put_heads(f, "file");
    for (int i = 0; i < r->cover.n; i++) {
        struct at_cover_sum s = { 0 };
        at_cover_count(&r->cover.files[i], &s);
        fprintf(f, "<tr><td><a href=\"#f%d\">", i);
        put_path(f, r->cover.files[i].path);
        fputs("</a></td>", f);
        put_sum(f, &s);
        fputs("</tr>\n", f);
    }
    fputs("</tbody></table></div>\n", f);
}

static void put_variants(const struct at_cover_report *r, FILE *f) {
    fputs("<h2 id=\"variants\">Variants, each with the headers as it uses them</h2>\n", f);
    put_heads(f, "variant");
    for (int i = 0; i < r->n_variants; i++) {
        fputs("<tr><td>", f);
        put_path(f, r->variants[i].path);
        fputs("</td>", f);
        put_sum(f, &r->variants[i].all);
        fputs("</tr>\n", f);
    }
    fputs("</tbody></table></div>\n", f);
}

/* ---- what is left open ---- */

static void put_fault(void *context, const struct at_cover_report *r, int file, int line, enum at_cover_fault fault) {
    FILE *f = context;
    const struct at_cover_source *s = &r->sources[file];
    char words[96] = "nothing calls this function";
    if (fault == AT_COVER_REACHED)
        snprintf(words, sizeof words, "marked as not reached, and is reached");
    else if (fault == AT_COVER_UNTAKEN)
        at_cover_words(&r->cover.files[file].lines[line - 1], words, sizeof words);
    fprintf(f, "<tr><td><a href=\"#f%dl%d\">", file, line);
    put_path(f, r->cover.files[file].path);
    fprintf(f, ":%d</a></td><td>%s</td><td><code>", line, words);
    put_text(f, line <= s->n ? s->lines[line - 1] + strspn(s->lines[line - 1], " ") : "");
    fputs("</code></td></tr>\n", f);
}

static void put_open(const struct at_cover_report *r, FILE *f) {
    fputs("<h2 id=\"open\">What is left open</h2>\n", f);
    if (at_cover_faults(r, NULL, NULL) == 0) {
        fputs("<p>Every branch is taken or explained, and every function is called.</p>\n", f);
        return;
    }
    fputs("<div class=\"wide\"><table>\n<thead><tr><th>place</th><th>what</th><th>source</th></tr></thead>\n<tbody>\n",
          f);
    at_cover_faults(r, put_fault, f);
    fputs("</tbody></table></div>\n", f);
}

static void put_explained(const struct at_cover_report *r, FILE *f) {
    int any = 0;
    for (int i = 0; i < r->cover.n; i++)
        for (int l = 0; l < r->cover.files[i].n; l++) {
            if (!r->cover.files[i].lines[l].reason)
                continue;
            fputs(any++ ? ""
                        : "<h2 id=\"explained\">Not reached, and why</h2>\n<div class=\"wide\"><table>\n<thead><tr>"
                          "<th>place</th><th>reason in the source</th></tr></thead>\n<tbody>\n",
                  f);
            fprintf(f, "<tr><td><a href=\"#f%dl%d\">", i, l + 1);
            put_path(f, r->cover.files[i].path);
            fprintf(f, ":%d</a></td><td>", l + 1);
            put_text(f, r->cover.files[i].lines[l].reason);
            fputs("</td></tr>\n", f);
        }
    fputs(any ? "</tbody></table></div>\n" : "", f);
}

/* ---- sources ---- */

static void put_line(FILE *f, int file, int number, const struct at_cover_line *line, const char *text) {
    char words[96] = "";
    if (line)
        at_cover_words(line, words, sizeof words);
    fprintf(f, "<tr id=\"f%dl%d\"><td class=\"n\">%d</td>", file, number, number);
    if (line && line->is_code)
        fprintf(f, "<td class=\"n\">%" PRId64 "</td><td>", line->count);
    else
        fputs("<td></td><td>", f);
    if (words[0])
        fprintf(f, "<span class=\"s %s\">%s</span>", line->reason ? "none" : "bad", words);
    fputs("</td><td><code>", f);
    put_text(f, text);
    fputs("</code></td></tr>\n", f);
}

/* Instances of templates that nothing calls; those of places that have others. */
static void put_instances(const struct at_cover_file *file, FILE *f) {
    int any = 0;
    for (int i = 0, n, called; i < file->n_instances; i += n) {
        n = at_cover_place(file, i, &called);
        for (int k = i; k < i + n; k++) {
            if (n == 1 || file->instances[k].calls)
                continue;
            fputs(any++ ? "" : "<p>Instances that nothing calls:</p>\n<ul>\n", f);
            fprintf(f, "<li>line %d: <code>", file->instances[k].line);
            put_text(f, file->instances[k].name);
            fputs("</code></li>\n", f);
        }
    }
    fputs(any ? "</ul>\n" : "", f);
}

struct looked_for {
    int file, found;
};
static void look_for(void *context, const struct at_cover_report *r, int file, int line, enum at_cover_fault fault) {
    struct looked_for *x = context;
    (void)r;
    (void)line;
    (void)fault;
    x->found |= file == x->file;
}

/* A place in the file is listed above: left open, or explained. */
static int is_listed(const struct at_cover_report *r, int file) {
    struct looked_for x = { .file = file };
    at_cover_faults(r, look_for, &x);
    for (int l = 0; l < r->cover.files[file].n; l++)
        x.found |= r->cover.files[file].lines[l].reason != NULL;
    return x.found;
}

/* One of which a place is listed is unfolded: its lines can be jumped to. */
static void put_source(const struct at_cover_report *r, int i, FILE *f) {
    const struct at_cover_file *file = &r->cover.files[i];
    const struct at_cover_source *s = &r->sources[i];
    fprintf(f, "<details id=\"f%d\"%s><summary>", i, is_listed(r, i) ? " open" : "");
    put_path(f, file->path);
    fputs(
        "</summary>\n<div class=\"wide\"><table class=\"source\">\n<thead><tr><th class=\"n\">line</th><th class=\"n\">"
        "times</th><th>missed</th><th>source</th></tr></thead>\n<tbody>\n",
        f);
    for (int l = 0; l < s->n; l++)
        put_line(f, i, l + 1, l < file->n ? &file->lines[l] : NULL, s->lines[l]);
    fputs("</tbody></table></div>\n", f);
    put_instances(file, f);
    fputs("</details>\n", f);
}

/* ---- the page ---- */

static void put_head(const struct at_cover_report *r, FILE *f) {
    struct at_cover_sum whole;
    const int64_t faults = at_cover_faults(r, NULL, NULL);
    at_cover_whole(r, &whole);
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n",
          f);
    fprintf(f, "<title>%" PRId64 " of %" PRId64 " branches of kernels taken - attest</title>\n<style>\n", whole.taken,
            whole.branches);
    at_template_put(f, "page.css");
    fputs("</style>\n</head>\n<body>\n<h1><span class=\"kind\">Coverage of kernels</span> ", f);
    for (int i = 0; i < r->n_globs; i++) {
        put_text(f, i ? " " : "");
        put_text(f, r->globs[i]);
    }
    fputs(r->n_globs ? "" : "all variants", f);
    fprintf(f, "</h1>\n<p class=\"verdict\"><span class=\"s %s\">", at_cover_gate(r) ? "fine" : "bad");
    if (faults)
        fprintf(f, "%" PRId64 " places left open", faults);
    else
        fputs(at_cover_gate(r) ? "Nothing left open" : "Too much explained, or launches lost", f);
    fprintf(f,
            "</span> %" PRId64 " of %" PRId64 " branches taken, %" PRId64
            " explained</p>\n<ul class=\"asked\"><li><span "
            "class=\"key\">cases</span> ",
            whole.taken, whole.branches, whole.explained);
    put_text(f, r->cases);
    fprintf(f, "</li><li><span class=\"key\">variants</span> %d</li></ul>\n", r->n_variants);
    fputs("<p>What the selected cases reach of the CUDA kernels, run on the SIMT machine. A line counts as run, and a "
          "branch "
          "as taken, when some instance of its template did. Compiled without optimisation: a branch is one way out of "
          "one "
          "condition.</p>\n<p class=\"paper\">Folded sources are not on paper: open them before printing.</p>\n<nav>"
          "<a href=\"#open\">left open</a>\n<a href=\"#files\">files</a>\n<a href=\"#variants\">variants</a>\n"
          "<a href=\"#sources\">sources</a>\n</nav>\n",
          f);
}

at_status at_cover_html(const struct at_cover_report *r, const char *path) {
    struct at_atomic_file file;
    AT_TRY(at_atomic_open(path, &file));
    put_head(r, file.stream);
    put_open(r, file.stream);
    put_explained(r, file.stream);
    put_files(r, file.stream);
    put_variants(r, file.stream);
    fputs("<h2 id=\"sources\">Sources</h2>\n", file.stream);
    for (int i = 0; i < r->cover.n; i++)
        put_source(r, i, file.stream);
    fputs("<footer>Written by <code>attest coverage --html</code>. This page needs no other file; <code>--json</code> "
          "gives the numbers.</footer>\n</body>\n</html>\n",
          file.stream);
    return at_atomic_commit(&file);
}
