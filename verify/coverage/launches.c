/* What was launched and counted: variants, calls that fail in turn, counts, sources.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/launches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

at_status at_cover_tally(const struct at_run_record *record, struct at_cover_report *r) {
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

at_status at_cover_fail_calls(const struct at_session_options *o, const struct at_run_record *record,
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
at_status at_cover_read_counts(const struct at_gcov *gcov, struct at_cover_report *r) {
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

at_status at_cover_read_sources(const struct at_gcov *gcov, struct at_cover_report *r) {
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

void at_cover_close_sources(struct at_cover_report *r) {
    for (int i = 0; r->sources && i < r->cover.n; i++)
        at_cover_source_close(&r->sources[i]);
    free(r->sources);
    free(r->is_whole);
    r->sources = NULL;
    r->is_whole = NULL;
}
