/* Running the cases with counters: what each variant reaches, and what of its sources stays open.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/cover_rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/coverage/by_case.h"
#include "verify/coverage/gcov.h"
#include "verify/plan/case_globs.h"

/* ---- variants ---- */

static struct at_cover_variant *variant_at(struct at_cover_report *r, const char *path) {
    for (int i = 0; i < r->n_variants; i++)
        if (strcmp(r->variants[i].path, path) == 0)
            return &r->variants[i];
    return NULL;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct at_cover_variant *)a)->path, ((const struct at_cover_variant *)b)->path);
}

/* Adds the results of a run, with the variants that are new in it. */
static at_status tally(const struct at_run_record *record, struct at_cover_report *r) {
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *x = &record->results[i];
        struct at_cover_variant *v = variant_at(r, x->path);
        if (!v) {
            struct at_cover_variant *more = realloc(r->variants, (size_t)(r->n_variants + 1) * sizeof *more);
            if (!more)
                return AT_FAIL(AT_NO_MEMORY, "no memory for the variants");
            r->variants = more;
            v = &more[r->n_variants++];
            *v = (struct at_cover_variant){ 0 };
            snprintf(v->family, sizeof v->family, "%s", x->family);
            snprintf(v->name, sizeof v->name, "%s", x->variant);
            snprintf(v->path, sizeof v->path, "%s", x->path);
        }
        v->ran += x->state == AT_STATE_SKIPPED;
        v->declined += x->state == AT_STATE_UNSUPPORTED;
        if (x->state != AT_STATE_SKIPPED && x->state != AT_STATE_UNSUPPORTED && v->broken++ == 0)
            snprintf(v->why, sizeof v->why, "%s: %.300s", at_state_name(x->state), x->cause);
    }
    qsort(r->variants, (size_t)r->n_variants, sizeof *r->variants, by_path);
    return AT_OK;
}

/* Each variant's own counts, read again where this run may have added to them, and all of them together. */
static at_status read_counts(const struct at_gcov *gcov, const struct at_run_record *record,
                             struct at_cover_report *r) {
    for (int64_t i = 0; i < record->n; i++)
        variant_at(r, record->results[i].path)->is_read = 0;
    at_cover_release(&r->cover);
    for (int i = 0; i < r->n_variants; i++) {
        struct at_cover_variant *v = &r->variants[i];
        if (!v->is_read) {
            AT_TRY(at_gcov_read(gcov, v->family, v->name, &v->cover));
            v->is_read = 1;
        }
        AT_TRY(at_cover_merge(&r->cover, &v->cover));
    }
    return AT_OK;
}

static void sum_up(struct at_cover_report *r) {
    for (int i = 0; i < r->n_variants; i++) {
        struct at_cover_variant *v = &r->variants[i];
        for (int f = 0; f < v->cover.n; f++) {
            at_cover_count(&v->cover.files[f], &v->all);
            if (strcmp(v->cover.files[f].path, v->path) == 0)
                at_cover_count(&v->cover.files[f], &v->own);
        }
    }
}

/* ---- files ---- */

/* 1 when all variants of the runner whose family is `family` (all, with "") were selected. */
static int has_all(const struct at_cover_report *r, const struct at_runner *runner, const char *family) {
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        int found = family[0] && strcmp(v->family, family) != 0;
        for (int k = 0; k < r->n_variants && !found; k++)
            found = strcmp(r->variants[k].path, v->path) == 0;
        if (!found)
            return 0;
    }
    return 1;
}

/* A variant's file is its own, the headers of a family are those of its variants, and all others are everybody's. */
static int is_whole(const struct at_cover_report *r, const struct at_runner *runner, const char *path) {
    char family[64];
    const char *name = path + strlen("kernels/");
    const size_t n = strlen(path);
    if (n > 3 && strcmp(path + n - 3, ".cu") == 0)
        return 1;
    snprintf(family, sizeof family, "%.*s", (int)strcspn(name, "/"), name);
    for (int i = 0; i < at_runner_variant_count(runner); i++)
        if (strcmp(at_runner_variant(runner, i)->family, family) == 0)
            return has_all(r, runner, family);
    return has_all(r, runner, "");
}

static void close_sources(struct at_cover_report *r) {
    for (int i = 0; r->sources && i < r->n_sources; i++)
        at_cover_source_close(&r->sources[i]);
    free(r->sources);
    free(r->is_whole);
    r->sources = NULL;
    r->is_whole = NULL;
    r->n_sources = 0;
}

static at_status read_sources(const struct at_gcov *gcov, const struct at_runner *runner, struct at_cover_report *r) {
    close_sources(r);
    r->sources = calloc((size_t)r->cover.n + 1, sizeof *r->sources);
    r->is_whole = calloc((size_t)r->cover.n + 1, 1);
    if (!r->sources || !r->is_whole)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the sources");
    for (int i = 0; i < r->cover.n; i++) {
        r->n_sources = i + 1;
        AT_TRY(at_cover_source_open(gcov->tree, r->cover.files[i].path, &r->sources[i]));
        r->is_whole[i] = (char)is_whole(r, runner, r->cover.files[i].path);
        AT_TRY(at_cover_mark(&r->sources[i], r->is_whole[i], &r->cover.files[i]));
    }
    return AT_OK;
}

/* ---- rounds ---- */

struct rounds {
    const struct at_session_options *options;
    const struct at_cover_how *how;
    struct at_gcov gcov;
    struct at_runner *runner; /* to ask what variants there are */
    struct at_run_record all; /* the results of all rounds, for the cases by themselves */
    struct at_cover_report *r;
};

/* Has the variant code of this line, or a function that begins there? */
static int has_line(const struct at_cover *cover, const char *path, int line) {
    for (int f = 0; f < cover->n; f++) {
        const struct at_cover_file *file = &cover->files[f];
        if (strcmp(file->path, path) != 0)
            continue;
        for (int i = 0; i < file->n_instances; i++)
            if (file->instances[i].line == line)
                return 1;
        return line <= file->n && file->lines[line - 1].is_code;
    }
    return 0;
}

/* A fault opens every variant whose sources have that line. */
static void open_variants(void *context, const struct at_cover_report *r, int file, int line,
                          enum at_cover_fault fault) {
    struct at_cover_report *of = context;
    (void)fault;
    for (int i = 0; i < r->n_variants; i++)
        if (has_line(&r->variants[i].cover, r->cover.files[file].path, line))
            of->variants[i].is_closed = 0;
}

/* Which variants need no more cases: those that have run and have nothing open. */
static void close_variants(struct rounds *s, const char *glob) {
    for (int i = 0; i < s->r->n_variants; i++)
        s->r->variants[i].is_closed = s->r->variants[i].ran > 0;
    const int64_t faults = at_cover_faults(s->r, open_variants, s->r);
    if (s->how->until_taken && !s->options->quiet)
        fprintf(stderr, "coverage: after %s: %" PRId64 " open\n", glob, faults);
}

/* One run: the cases of `glob`, which may be a line of the selection `line_of`, on the variants that are selected and not
 * closed. */
static at_status run_round(struct rounds *s, const char *glob, const char *line_of, int is_first, int *signal) {
    const int n = at_runner_variant_count(s->runner);
    struct at_session_options o = *s->options;
    struct at_run_record record;
    at_status status = AT_OK;
    char(*names)[192] = calloc((size_t)n + 1, sizeof *names);
    const char **globs = calloc((size_t)n + 1, sizeof *globs);
    int open = 0;
    at_run_record_init(&record);
    if (!names || !globs)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d names", n);
    for (int v = 0; v < n && !is_first; v++) {
        const struct at_variant *variant = at_runner_variant(s->runner, v);
        const struct at_cover_variant *seen = variant_at(s->r, variant->path);
        if ((seen && seen->is_closed) || !at_selects_variant(&s->options->selection, variant, NULL))
            continue;
        snprintf(names[open], sizeof names[open], "%s/%s", variant->family, variant->name);
        globs[open] = names[open];
        open++;
    }
    if (!is_first && open == 0)
        goto out;
    if (!is_first) { /* the first has the globs as they are typed, so that one that matches nothing is named */
        o.selection.globs = globs;
        o.selection.n_globs = open;
    }
    o.selection.cases_glob = glob;
    o.selection.line_of = line_of;
    AT_TRY_OUT(at_session_run(&o, &record));
    if ((*signal = record.signal) != 0)
        goto out;
    AT_TRY_OUT(tally(&record, s->r));
    for (int64_t i = 0; i < record.n; i++)
        AT_TRY_OUT(at_run_record_add(&s->all, &record.results[i]));
    AT_TRY_OUT(read_counts(&s->gcov, &record, s->r));
    AT_TRY_OUT(read_sources(&s->gcov, s->runner, s->r));
    close_variants(s, glob);
out:
    at_run_record_release(&record);
    free(names);
    free(globs);
    return status;
}

static at_status run_rounds(struct rounds *s, int *signal) {
    const struct at_selection *selection = &s->options->selection;
    struct at_case_globs globs = { 0 };
    at_status status = AT_OK;
    if (!s->how->until_taken || selection->case_line || !at_is_selection(selection->cases_glob))
        return run_round(s, selection->cases_glob, NULL, 1, signal);
    AT_TRY(at_selection_globs(selection, &globs));
    if (globs.random) /* what its cases are depends on the variants that they are drawn for */
        AT_FAIL_OUT(AT_USAGE, "%s has a line of random cases, which --until-taken cannot run by themselves",
                    globs.path);
    for (int i = 0, is_first = 1; i < globs.n && !*signal; i++)
        if (!globs.items[i].only) {
            AT_TRY_OUT(run_round(s, globs.items[i].text, selection->cases_glob, is_first, signal));
            is_first = 0;
        }
out:
    at_case_globs_close(&globs);
    return status;
}

at_status at_cover_measure(const struct at_session_options *options, const struct at_cover_how *how,
                           struct at_cover_report *r, int *signal) {
    struct rounds s = { .options = options, .how = how, .r = r };
    at_status status = AT_OK;
    *signal = 0;
    *r = (struct at_cover_report){ .globs = options->selection.globs,
                                   .n_globs = options->selection.n_globs,
                                   .cases = options->selection.case_line ? options->selection.case_line
                                                                         : options->selection.cases_glob };
    at_run_record_init(&s.all);
    AT_TRY_OUT(at_gcov_open(&s.gcov));
    AT_TRY_OUT(at_runner_open("coverage", &s.runner));
    AT_TRY_OUT(at_gcov_begin(&s.gcov));
    /* Before each launch it is made with each of its calls failing: errors must come out. */
    setenv("AT_SIMT_CALLS_FAIL", "1", 1);
    status = run_rounds(&s, signal);
    unsetenv("AT_SIMT_CALLS_FAIL");
    AT_TRY_OUT(status);
    if (*signal)
        goto out;
    sum_up(r);
    if (how->by_case)
        AT_TRY_OUT(at_cover_by_case(&s.gcov, options, &s.all, r));
    *signal = at_session_signal();
out:
    at_runner_close(s.runner);
    at_gcov_close(&s.gcov);
    at_run_record_release(&s.all);
    return status;
}

void at_cover_report_release(struct at_cover_report *r) {
    close_sources(r);
    for (int i = 0; i < r->n_variants; i++)
        at_cover_release(&r->variants[i].cover);
    free(r->variants);
    free(r->cases_alone);
    at_cover_release(&r->cover);
    *r = (struct at_cover_report){ 0 };
}
