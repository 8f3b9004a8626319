/* Which branches each case takes by itself, and which of them no other case takes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/by_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/cli/progress.h"
#include "verify/coverage/fewest.h"

/* How many cases take each branch, and the sum of their places, counted from 1: where only one takes it, that one's. */
struct takers {
    struct at_cover times, places;
};

/* The count of each branch becomes f(context, count), in the order of files, lines and lists. */
static void each_branch(const struct at_cover *cover, int64_t (*f)(void *context, int64_t count), void *context) {
    for (int i = 0; i < cover->n; i++)
        for (int l = 0; l < cover->files[i].n; l++)
            for (int b = 0; b < cover->files[i].lines[l].n_lists; b++) {
                const struct at_cover_branches *list = &cover->files[i].lines[l].lists[b];
                for (int k = 0; k < list->n; k++)
                    list->taken[k] = f(context, list->taken[k]);
            }
}

static int64_t set_taken(void *to, int64_t count) { return count ? *(const int64_t *)to : 0; }
static int64_t add_taken(void *sum, int64_t count) {
    *(int64_t *)sum += count > 0;
    return count;
}

static at_status add_case(struct takers *all, struct at_cover *one, int64_t place, struct at_cover_case *of) {
    int64_t once = 1, before = 0, after = 0;
    each_branch(one, add_taken, &of->taken);
    each_branch(one, set_taken, &once);
    each_branch(&all->times, add_taken, &before);
    AT_TRY(at_cover_merge(&all->times, one));
    each_branch(&all->times, add_taken, &after);
    of->added = after - before;
    each_branch(one, set_taken, &place);
    return at_cover_merge(&all->places, one);
}

/* The variants that met the case in the run, as globs: lines `only` of a selection leave some out. */
static at_status variants_of(const struct at_run_record *run, const char *id, char (**names)[192], const char ***globs,
                             int *n) {
    *n = 0;
    for (int64_t i = 0; i < run->n; i++)
        *n += strcmp(run->results[i].case_id, id) == 0;
    *names = calloc((size_t)*n + 1, sizeof **names);
    *globs = calloc((size_t)*n + 1, sizeof **globs);
    if (!*names || !*globs)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d names", *n);
    *n = 0;
    for (int64_t i = 0; i < run->n; i++) {
        const struct at_result *x = &run->results[i];
        if (strcmp(x->case_id, id) != 0)
            continue;
        snprintf((*names)[*n], sizeof **names, "%s/%s", x->family, x->variant);
        (*globs)[*n] = (*names)[*n];
        ++*n;
    }
    return AT_OK;
}

/* Runs a case of `run` by itself: `cover` = what it reaches, *seconds: what its launches take. */
static at_status run_case(const struct at_gcov *of_run, const struct at_session_options *of_all,
                          const struct at_run_record *run, const char *id, struct at_cover *cover, double *seconds) {
    struct at_session_options o = *of_all;
    char(*names)[192] = NULL;
    const char **globs = NULL;
    struct at_run_record record;
    struct at_gcov gcov = *of_run;
    at_status status = AT_OK;
    o.selection.case_line = id;
    o.quiet = 1;
    at_run_record_init(&record);
    AT_TRY_OUT(at_gcov_begin(&gcov));
    AT_TRY_OUT(variants_of(run, id, &names, &globs, &o.selection.n_globs));
    o.selection.globs = globs;
    const double from = at_seconds();
    AT_TRY_OUT(at_session_run(&o, &record));
    *seconds = at_seconds() - from;
    for (int64_t i = 0; i < record.n; i++)
        if (i == 0 || strcmp(record.results[i].path, record.results[i - 1].path) != 0)
            AT_TRY_OUT(at_gcov_read(&gcov, record.results[i].family, record.results[i].variant, cover));
out:
    at_gcov_close(&gcov);
    at_run_record_release(&record);
    free(names);
    free(globs);
    return status;
}

/* ---- the cases of a run ---- */

static int by_id(const void *a, const void *b) {
    return strcmp(((const struct at_cover_case *)a)->id, ((const struct at_cover_case *)b)->id);
}

/* Those of the record, each once, by id. */
static at_status list_cases(const struct at_run_record *record, struct at_cover_report *r) {
    r->cases_alone = calloc((size_t)record->n + 1, sizeof *r->cases_alone);
    if (!r->cases_alone)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the cases");
    for (int64_t i = 0; i < record->n; i++) {
        snprintf(r->cases_alone[i].id, sizeof r->cases_alone[i].id, "%s", record->results[i].case_id);
        snprintf(r->cases_alone[i].role, sizeof r->cases_alone[i].role, "%s", record->results[i].role);
    }
    qsort(r->cases_alone, (size_t)record->n, sizeof *r->cases_alone, by_id);
    for (int64_t i = 0; i < record->n; i++)
        if (i == 0 || strcmp(r->cases_alone[i].id, r->cases_alone[r->n_cases - 1].id) != 0)
            r->cases_alone[r->n_cases++] = r->cases_alone[i];
    return AT_OK;
}

/* ---- which are of one case alone ---- */

struct owner {
    struct at_cover_report *r;
    int64_t *places; /* of the branches, in the order of each_branch */
    int64_t n;
};

static int64_t note_place(void *context, int64_t count) {
    struct owner *o = context;
    o->places[o->n++] = count;
    return count;
}

static int64_t count_own(void *context, int64_t times) {
    struct owner *o = context;
    const int64_t place = o->places[o->n++];
    if (times == 1)
        o->r->cases_alone[place - 1].own++;
    return times;
}

static int64_t add_one(void *sum, int64_t count) {
    ++*(int64_t *)sum;
    return count;
}

/* Both covers have the same files, lines and lists: they are sums of the same. */
static at_status find_own(const struct takers *all, struct at_cover_report *r) {
    struct owner o = { .r = r };
    int64_t n = 0;
    each_branch(&all->places, add_one, &n);
    if (!(o.places = calloc((size_t)n + 1, sizeof *o.places)))
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld branches", (long long)n);
    each_branch(&all->places, note_place, &o);
    o.n = 0;
    each_branch(&all->times, count_own, &o);
    free(o.places);
    return AT_OK;
}

/* By own branches, the fewest first. */
static int by_own(const void *a, const void *b) {
    const struct at_cover_case *x = a, *y = b;
    return x->own != y->own ? (x->own > y->own) - (x->own < y->own) : strcmp(x->id, y->id);
}

/* The cases as they were run: what each reaches, in what time. */
struct alone {
    struct at_cover *each;
    double *seconds;
    char *chosen;
};

static at_status run_each(const struct at_gcov *gcov, const struct at_session_options *options, struct alone *alone,
                          const struct at_run_record *run, struct takers *all, struct at_cover_report *r) {
    struct at_progress progress;
    struct at_cover one = { 0 };
    at_status status = AT_OK;
    if (!options->quiet)
        at_progress_start(&progress, "each case by itself", r->n_cases);
    for (int64_t i = 0; i < r->n_cases && status == AT_OK && !at_session_signal(); i++) {
        struct at_cover_case *c = &r->cases_alone[i];
        if ((status = run_case(gcov, options, run, c->id, &one, &alone->seconds[i])) == AT_OK &&
            (status = at_cover_merge(&alone->each[i], &one)) == AT_OK)
            status = add_case(all, &one, i + 1, c);
        at_cover_release(&one);
        if (!options->quiet)
            at_progress_step(&progress, i + 1, 0, c->id);
    }
    if (!options->quiet)
        at_progress_end(&progress);
    return status;
}

at_status at_cover_by_case(const struct at_gcov *gcov, const struct at_session_options *options,
                           const struct at_run_record *record, struct at_cover_report *r) {
    struct takers all = { 0 };
    struct alone alone = { 0 };
    at_status status = list_cases(record, r);
    const size_t n = (size_t)r->n_cases + 1;
    AT_TRY_OUT(status);
    alone = (struct alone){ calloc(n, sizeof *alone.each), calloc(n, sizeof *alone.seconds), calloc(n, 1) };
    if (!alone.each || !alone.seconds || !alone.chosen)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for what %lld cases reach", (long long)r->n_cases);
    AT_TRY_OUT(run_each(gcov, options, &alone, record, &all, r));
    if (at_session_signal())
        goto out;
    AT_TRY_OUT(find_own(&all, r));
    AT_TRY_OUT(at_cover_fewest(alone.each, alone.seconds, r->n_cases, alone.chosen));
    for (int64_t i = 0; i < r->n_cases; i++)
        r->cases_alone[i].is_enough = alone.chosen[i] != 0;
out:
    if (r->cases_alone)
        qsort(r->cases_alone, (size_t)r->n_cases, sizeof *r->cases_alone, by_own);
    for (int64_t i = 0; alone.each && i < r->n_cases; i++)
        at_cover_release(&alone.each[i]);
    free(alone.each);
    free(alone.seconds);
    free(alone.chosen);
    at_cover_release(&all.times);
    at_cover_release(&all.places);
    return status;
}
