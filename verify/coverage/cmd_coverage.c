/* attest coverage: what of the kernels the selected cases reach, on the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/cli/commands.h"
#include "verify/coverage/by_case.h"
#include "verify/coverage/gcov.h"
#include "verify/coverage/report.h"
#include "verify/result/atomic_file.h"
#include "verify/run/session.h"

static const struct at_option options[] = {
    { "--cases", "GLOB", "which cases, as role:id, or a selection of cases as @NAME (default @check)" },
    { "--case", "LINE", "one case given as text instead of the case files" },
    { "--gate", NULL,
      "exit code 1 unless every branch of every kernel is taken and every function called, or the source says why not "
      "in a comment on "
      "the line or alone above it: /* not reached: REASON */; explained branches are less than 1 % of all" },
    { "--by-case", NULL,
      "then runs each case by itself, which takes minutes for a family of many variants: how many branches it takes, "
      "how "
      "many of them no other case takes (of two that take the same, neither has any), and how many no case before it "
      "in "
      "order of ids takes: without those that add none, all branches are still taken" },
    { "--html", "FILE", "a page: the table, and each source with its counts" },
    { "--json", "FILE", "the same as JSON" },
    { "--jobs", "N", "runners at the same time (default: processors)" },
    { "--quiet", NULL, "no progress" },
    { NULL, NULL, NULL },
};

static at_status read_options(const struct at_args *args, struct at_session_options *o) {
    int64_t jobs;
    const char *files[] = { at_args_get(args, "--html"), at_args_get(args, "--json") };
    *o = at_session_defaults();
    o->selection.globs = args->words;
    o->selection.n_globs = args->n_words;
    o->selection.cases_glob = at_args_get(args, "--cases") ? at_args_get(args, "--cases") : "@check";
    o->selection.case_line = at_args_get(args, "--case");
    o->runner = "coverage";
    o->launch_only = 1;
    o->quiet = at_args_has(args, "--quiet");
    AT_TRY(at_args_int(args, "--jobs", 1, 256, o->jobs, &jobs));
    o->jobs = (int)jobs;
    if (o->selection.case_line && at_args_has(args, "--cases"))
        return AT_FAIL(AT_USAGE, "--case and --cases exclude each other");
    return at_atomic_check_files(files, 2, NULL, 0);
}

/* ---- variants ---- */

static struct at_cover_variant *variant_of(struct at_cover_report *r, const struct at_result *result) {
    for (int i = 0; i < r->n_variants; i++)
        if (strcmp(r->variants[i].path, result->path) == 0)
            return &r->variants[i];
    return NULL;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct at_cover_variant *)a)->path, ((const struct at_cover_variant *)b)->path);
}

static at_status tally(const struct at_run_record *record, struct at_cover_report *r) {
    r->variants = calloc((size_t)record->n + 1, sizeof *r->variants);
    if (!r->variants)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the variants");
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *x = &record->results[i];
        struct at_cover_variant *v = variant_of(r, x);
        if (!v) {
            v = &r->variants[r->n_variants++];
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

/* Runs a variant while its first call to the device fails, then its second, and so on: each error must come out, and what
 * then runs is counted. */
static at_status fail_calls(const struct at_session_options *of_run, const char *case_id, struct at_cover_variant *v) {
    char glob[192];
    const char *globs[] = { glob };
    struct at_session_options o = *of_run;
    struct at_run_record record;
    snprintf(glob, sizeof glob, "%s/%s", v->family, v->name);
    o.selection.globs = globs;
    o.selection.n_globs = 1;
    o.selection.case_line = case_id;
    o.jobs = o.quiet = 1;
    const at_status status = at_session_run(&o, &record);
    for (int64_t i = 0; status == AT_OK && i < record.n; i++)
        if (record.results[i].state != AT_STATE_SKIPPED && v->broken++ == 0)
            snprintf(v->why, sizeof v->why, "%s: %.300s", at_state_name(record.results[i].state),
                     record.results[i].cause);
    at_run_record_release(&record);
    return status;
}

/* The last case that the variant was launched on: the first ones may have no keys, and launch nothing. */
static const char *last_case(const struct at_run_record *record, const char *path) {
    for (int64_t i = record->n - 1; i >= 0; i--)
        if (record->results[i].state == AT_STATE_SKIPPED && strcmp(record->results[i].path, path) == 0)
            return record->results[i].case_id;
    return NULL;
}

static at_status fail_all_calls(const struct at_session_options *o, const struct at_run_record *record,
                                struct at_cover_report *r) {
    at_status status = AT_OK;
    const char *case_id;
    setenv("AT_SIMT_CALLS_FAIL", "1", 1);
    for (int k = 0; k < r->n_variants && status == AT_OK && !at_session_signal(); k++)
        if ((case_id = last_case(record, r->variants[k].path)) != NULL)
            status = fail_calls(o, case_id, &r->variants[k]);
    unsetenv("AT_SIMT_CALLS_FAIL");
    return status;
}

/* Each variant's own counts, and all of them together. */
static at_status read_counts(const struct at_gcov *gcov, struct at_cover_report *r) {
    at_status status = AT_OK;
    struct at_cover one = { 0 };
    for (int i = 0; i < r->n_variants; i++) {
        struct at_cover_variant *v = &r->variants[i];
        AT_TRY_OUT(at_gcov_read(gcov, v->family, v->name, &one));
        for (int f = 0; f < one.n; f++) {
            at_cover_count(&one.files[f], &v->all);
            if (strcmp(one.files[f].path, v->path) == 0)
                at_cover_count(&one.files[f], &v->own);
        }
        AT_TRY_OUT(at_cover_merge(&r->cover, &one));
        at_cover_release(&one);
    }
out:
    at_cover_release(&one);
    return status;
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

static at_status read_sources(const struct at_gcov *gcov, struct at_cover_report *r) {
    at_status status = AT_OK;
    struct at_runner *runner = NULL;
    r->sources = calloc((size_t)r->cover.n + 1, sizeof *r->sources);
    r->is_whole = calloc((size_t)r->cover.n + 1, 1);
    if (!r->sources || !r->is_whole)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the sources");
    AT_TRY(at_runner_open("coverage", &runner));
    for (int i = 0; i < r->cover.n; i++) {
        AT_TRY_OUT(at_cover_source_open(gcov->tree, r->cover.files[i].path, &r->sources[i]));
        r->is_whole[i] = (char)is_whole(r, runner, r->cover.files[i].path);
        AT_TRY_OUT(at_cover_mark(&r->sources[i], r->is_whole[i], &r->cover.files[i]));
    }
out:
    at_runner_close(runner);
    return status;
}

static void release(struct at_cover_report *r) {
    for (int i = 0; r->sources && i < r->cover.n; i++)
        at_cover_source_close(&r->sources[i]);
    free(r->sources);
    free(r->is_whole);
    free(r->variants);
    free(r->cases_alone);
    at_cover_release(&r->cover);
}

/* ---- the command ---- */

static at_status measure(const struct at_args *args, struct at_cover_report *r, int *signal) {
    struct at_session_options o;
    struct at_run_record record;
    struct at_gcov gcov = { .folder = "" };
    at_status status = AT_OK;
    at_run_record_init(&record);
    AT_TRY_OUT(read_options(args, &o));
    *r = (struct at_cover_report){ .globs = args->words,
                                   .n_globs = args->n_words,
                                   .cases = o.selection.case_line ? o.selection.case_line : o.selection.cases_glob };
    AT_TRY_OUT(at_gcov_open(&gcov));
    AT_TRY_OUT(at_gcov_begin(&gcov));
    AT_TRY_OUT(at_session_run(&o, &record));
    *signal = record.signal;
    if (record.signal)
        goto out;
    AT_TRY_OUT(tally(&record, r));
    AT_TRY_OUT(fail_all_calls(&o, &record, r));
    if ((*signal = at_session_signal()) != 0)
        goto out;
    AT_TRY_OUT(read_counts(&gcov, r));
    AT_TRY_OUT(read_sources(&gcov, r));
    if (at_args_has(args, "--by-case"))
        AT_TRY_OUT(at_cover_by_case(&gcov, &o, &record, r));
    *signal = at_session_signal();
out:
    at_gcov_close(&gcov);
    at_run_record_release(&record);
    return status;
}

static at_status write_reports(const struct at_args *args, const struct at_cover_report *r) {
    at_cover_table(r, at_args_has(args, "--gate"), stdout);
    if (at_args_get(args, "--html"))
        AT_TRY(at_cover_html(r, at_args_get(args, "--html")));
    return at_args_get(args, "--json") ? at_cover_json(r, at_args_get(args, "--json")) : AT_OK;
}

static int run(const struct at_args *args) {
    struct at_cover_report r = { 0 };
    int signal = 0, code = 0;
    at_status status = measure(args, &r, &signal);
    if (status != AT_OK) {
        code = at_report_failure(status);
    } else if (signal) {
        code = 128 + signal;
    } else if (r.n_variants == 0) {
        fprintf(stderr, "attest: nothing was launched: no selected case met a variant that runs on the SIMT machine\n");
        code = 4;
    } else {
        status = write_reports(args, &r);
        code = status != AT_OK ? at_report_failure(status) : at_args_has(args, "--gate") && !at_cover_gate(&r);
    }
    release(&r);
    return code;
}

const struct at_command at_command_coverage = {
    .name = "coverage",
    .synopsis = "coverage [GLOB...] [options]",
    .summary = "lines, branches and template instances of the CUDA kernels that the cases reach, without a GPU",
    .example = "attest coverage 'asynct_decode/*' --cases 'smoke:*' --html coverage.html",
    .options = options,
    .max_words = AT_MAX_WORDS,
    .run = run,
};
