/* attest coverage as text: files, variants, what is left open.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/coverage/report.h"
#include "verify/plan/case_globs.h"
#include "verify/result/atomic_file.h"
#include "verify/result/text.h"

void at_cover_words(const struct at_cover_line *line, char *text, size_t size) {
    int missed;
    const int n = at_cover_line_branches(line, &missed);
    text[0] = 0;
    if (line->is_code && line->count == 0)
        snprintf(text, size, n ? "never run, %d branch%s" : "never run", n, n == 1 ? "" : "es");
    else if (missed)
        snprintf(text, size, "%d of %d branches never taken", missed, n);
}

static void put_share(FILE *out, int64_t part, int64_t whole) {
    if (whole)
        fprintf(out, " %6" PRId64 " %6" PRId64 " %5.1f%%", part, whole, 100.0 * (double)part / (double)whole);
    else
        fprintf(out, " %6s %6s %6s", "-", "-", "-");
}

static void put_row(FILE *out, const char *name, int width, const struct at_cover_sum *s) {
    at_text_fit(out, name, width, 0);
    put_share(out, s->lines_run, s->lines);
    put_share(out, s->taken, s->branches);
    put_share(out, s->instances_run, s->instances);
    fputc('\n', out);
}

static void put_head(FILE *out, const char *name, int width) {
    fprintf(out, "%-*s %20s %20s %20s\n", width, name, "LINES RUN     OF    ", "BRANCHES TAKEN OF   ",
            "INSTANCES RUN OF    ");
}

static int widest(const struct at_cover_report *r) {
    int width = 24;
    for (int i = 0; i < r->cover.n; i++)
        width = at_text_width(r->cover.files[i].path) > width ? at_text_width(r->cover.files[i].path) : width;
    for (int i = 0; i < r->n_variants; i++)
        width = at_text_width(r->variants[i].path) > width ? at_text_width(r->variants[i].path) : width;
    return width;
}

static void put_fault(void *context, const struct at_cover_report *r, int file, int line, enum at_cover_fault fault) {
    FILE *out = context;
    const struct at_cover_file *f = &r->cover.files[file];
    const char *source = line <= r->sources[file].n ? r->sources[file].lines[line - 1] : "";
    char words[96] = "nothing calls this function";
    if (fault == AT_COVER_REACHED)
        snprintf(words, sizeof words, "marked as not reached, and is reached");
    else if (fault == AT_COVER_UNTAKEN)
        at_cover_words(&f->lines[line - 1], words, sizeof words);
    fprintf(out, "%s:%d: %s\n    %s\n", f->path, line, words, source + strspn(source, " "));
}

static void put_broken(const struct at_cover_report *r, FILE *out) {
    for (int i = 0; i < r->n_variants; i++)
        if (r->variants[i].broken)
            fprintf(out, "%s: %" PRId64 " jobs went wrong, the first: %s\n", r->variants[i].path, r->variants[i].broken,
                    r->variants[i].why);
}

static void put_explained(const struct at_cover_report *r, FILE *out) {
    for (int i = 0; i < r->cover.n; i++)
        for (int l = 0; l < r->cover.files[i].n; l++)
            if (r->cover.files[i].lines[l].reason)
                fprintf(out, "%s:%d: %s\n", r->cover.files[i].path, l + 1, r->cover.files[i].lines[l].reason);
}

static void put_cases(const struct at_cover_report *r, FILE *out) {
    int64_t without_own = 0, without_added = 0, enough = 0;
    fprintf(out, "%8s %8s %8s  %s\n", "BRANCHES", "OWN", "ADDED", "CASE BY ITSELF");
    for (int64_t i = 0; i < r->n_cases; i++) {
        const struct at_cover_case *c = &r->cases_alone[i];
        fprintf(out, "%8" PRId64 " %8" PRId64 " %8" PRId64 "  %s:%s\n", c->taken, c->own, c->added, c->role, c->id);
        without_own += c->own == 0;
        without_added += c->added == 0;
        enough += c->is_enough;
    }
    fprintf(out,
            "%" PRId64 " of %" PRId64 " cases take no branch that no other case takes; %" PRId64
            " add none to those before them in order of ids; %" PRId64 " take together what all do\n\n",
            without_own, r->n_cases, without_added, enough);
}

static int by_name(const void *a, const void *b) {
    const struct at_cover_case *x = *(const struct at_cover_case *const *)a,
                               *y = *(const struct at_cover_case *const *)b;
    const int roles = strcmp(x->role, y->role);
    return roles ? roles : strcmp(x->id, y->id);
}

/* What the selection whose cases were run leaves to some variants, few of its cases leave to the same. */
static void put_restrictions(struct at_case_globs *globs, const struct at_cover_case *c, FILE *out) {
    char name[sizeof c->role + sizeof c->id];
    snprintf(name, sizeof name, "%s:%s", c->role, c->id);
    at_case_globs_match(globs, name);
    for (int i = 0; i < globs->n; i++)
        if (globs->items[i].only && globs->items[i].is_here)
            fprintf(out, "only %s %s\n", globs->items[i].only, name);
}

at_status at_cover_selection(const struct at_cover_report *r, const struct at_selection *selection, const char *path) {
    struct at_case_globs globs = { 0 };
    const struct at_cover_case **enough = calloc((size_t)r->n_cases + 1, sizeof *enough);
    struct at_atomic_file file;
    int64_t n = 0;
    if (!enough)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", path);
    for (int64_t i = 0; i < r->n_cases; i++)
        if (r->cases_alone[i].is_enough)
            enough[n++] = &r->cases_alone[i];
    qsort(enough, (size_t)n, sizeof *enough, by_name);
    at_status status = selection->case_line ? AT_OK : at_selection_globs(selection, &globs);
    if (status == AT_OK)
        status = at_atomic_open(path, &file);
    if (status == AT_OK) {
        fprintf(file.stream,
                "# Of the %" PRId64 " cases of %s, %" PRId64
                " that take every branch and call every function of CUDA kernels that all do:\n"
                "# attest coverage --by-case --fewest\n",
                r->n_cases, r->cases, n);
        for (int64_t i = 0; i < n; i++)
            fprintf(file.stream, "%s:%s\n", enough[i]->role, enough[i]->id);
        for (int64_t i = 0; i < n; i++)
            put_restrictions(&globs, enough[i], file.stream);
        status = at_atomic_commit(&file);
    }
    at_case_globs_close(&globs);
    free(enough);
    return status;
}

void at_cover_table(const struct at_cover_report *r, int gate, FILE *out) {
    const int width = widest(r);
    struct at_cover_sum whole, total = { 0 };
    int64_t ran = 0, declined = 0, shared = 0;
    put_head(out, "FILE", width);
    for (int i = 0; i < r->cover.n; i++) {
        struct at_cover_sum s = { 0 };
        at_cover_count(&r->cover.files[i], &s);
        at_cover_count(&r->cover.files[i], &total);
        put_row(out, r->cover.files[i].path, width, &s);
        shared += !r->is_whole[i];
    }
    put_row(out, "all files", width, &total);
    fputc('\n', out);
    put_head(out, "VARIANT, WITH ITS HEADERS", width);
    for (int i = 0; i < r->n_variants; i++) {
        put_row(out, r->variants[i].path, width, &r->variants[i].all);
        ran += r->variants[i].ran;
        declined += r->variants[i].declined;
    }
    fputc('\n', out);
    if (r->n_cases)
        put_cases(r, out);
    at_cover_whole(r, &whole);
    const int64_t faults = at_cover_faults(r, put_fault, out);
    if (faults)
        fputc('\n', out);
    put_broken(r, out);
    if (whole.explained) {
        fputs("not reached, and why:\n", out);
        put_explained(r, out);
        fputc('\n', out);
    }
    fprintf(out, "%d variants, %" PRId64 " launches, %" PRId64 " declined, cases %s\n", r->n_variants, ran, declined,
            r->cases);
    if (shared)
        fprintf(out, "%" PRId64 " files that other variants use too are not asked for their branches\n", shared);
    fprintf(out,
            "%" PRId64 " of %" PRId64 " branches taken, %" PRId64
            " explained (%.2f %%, less than 1 %% is allowed), %" PRId64 " places left open%s\n",
            whole.taken, whole.branches, whole.explained,
            whole.branches ? 100.0 * (double)whole.explained / (double)whole.branches : 0.0, faults,
            gate ? at_cover_gate(r) ? ": the gate is open" : ": the gate is shut" : "");
}
