/* What became of each job from one run to another.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/commands/compare_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Errors below this share of their limit are noise of one another. */
static const double smallest_ratio = 0.01;

/* The results of a variant on a case, neighbours in a sorted record. */
struct job {
    const struct at_result *first;
    int n;
};

/* ---- jobs ---- */

static int same_job(const struct at_result *a, const struct at_result *b) {
    return strcmp(a->case_id, b->case_id) == 0 && strcmp(a->variant, b->variant) == 0 &&
           strcmp(a->family, b->family) == 0;
}

static int by_name(const void *x, const void *y) {
    const struct at_result *a = ((const struct job *)x)->first, *b = ((const struct job *)y)->first;
    int order = strcmp(a->family, b->family);
    if (order == 0)
        order = strcmp(a->variant, b->variant);
    return order ? order : strcmp(a->case_id, b->case_id);
}

static int64_t jobs_of(const struct at_run_record *record, struct job *jobs) {
    int64_t n = 0;
    for (int64_t i = 0; i < record->n; i++) {
        const struct at_result *r = &record->results[i];
        if (n > 0 && same_job(jobs[n - 1].first, r))
            jobs[n - 1].n++;
        else
            jobs[n++] = (struct job){ r, 1 };
    }
    return n;
}

/* ---- how good a job is ---- */

enum standing { RIGHT, UNPROVEN, FAILING, DECLINED };

static enum standing standing_of(const struct at_result *r, int strict) {
    if (at_state_class(r->state) == AT_CLASS_DECLINED)
        return DECLINED;
    if (at_state_fails(r->state, r->expect, strict))
        return FAILING;
    return at_state_class(r->state) == AT_CLASS_VACUOUS ? UNPROVEN : RIGHT;
}

/* The result that speaks for the job: the first of the worst among its outputs; a declined one only where all are. */
static const struct at_result *speaker(const struct job *job, int strict) {
    const struct at_result *worst = job->first;
    for (int i = 1; i < job->n; i++) {
        const enum standing x = standing_of(&job->first[i], strict), w = standing_of(worst, strict);
        if (w == DECLINED ? x != DECLINED : x != DECLINED && x > w)
            worst = &job->first[i];
    }
    return worst;
}

static const struct at_result *output(const struct job *job, const char *tensor) {
    for (int i = 0; i < job->n; i++)
        if (strcmp(job->first[i].tensor, tensor) == 0)
            return &job->first[i];
    return NULL;
}

/* Is y's error so many times nearer to its limit than x's? */
static int is_nearer(const struct at_result *x, const struct at_result *y, double times) {
    const double from = x->ratio_max > smallest_ratio ? x->ratio_max : smallest_ratio;
    return x->ratio_max >= 0 && y->ratio_max > times * from;
}

/* Both right: the outputs one by one. */
static void compare_outputs(const struct job *a, const struct job *b, double times, struct at_changed_job *change) {
    for (int i = 0; i < b->n && change->change != AT_CHANGE_WORSE; i++) {
        const struct at_result *y = &b->first[i], *x = output(a, y->tensor);
        if (!x)
            continue;
        const int lost = x->model_exact - y->model_exact;
        const int ratio = is_nearer(x, y, times) - is_nearer(y, x, times);
        if (!lost && !ratio)
            continue;
        change->change = lost > 0 || (lost == 0 && ratio > 0) ? AT_CHANGE_WORSE : AT_CHANGE_BETTER;
        change->a = x;
        change->b = y;
        if (lost)
            snprintf(change->why, sizeof change->why, "%s %s MODEL-EXACT", y->tensor,
                     lost > 0 ? "is no longer" : "is now");
        else
            snprintf(change->why, sizeof change->why, "error over limit of %s %.2g -> %.2g", y->tensor, x->ratio_max,
                     y->ratio_max);
    }
}

static struct at_changed_job compare_jobs(const struct job *a, const struct job *b, int strict, double times) {
    struct at_changed_job change = { .a = speaker(a, strict), .b = speaker(b, strict) };
    const enum standing x = standing_of(change.a, strict), y = standing_of(change.b, strict);
    if (x == RIGHT && y == RIGHT) {
        compare_outputs(a, b, times, &change);
        return change;
    }
    if (x == y) /* it may fail in another way */
        return change;
    /* What is declined proves nothing: worse than right, better than failing. */
    const int rank[] = { [RIGHT] = 0, [UNPROVEN] = 1, [DECLINED] = 2, [FAILING] = 3 };
    change.change = rank[y] > rank[x] ? AT_CHANGE_WORSE : AT_CHANGE_BETTER;
    snprintf(change.why, sizeof change.why, "%s -> %s", at_state_name(change.a->state), at_state_name(change.b->state));
    return change;
}

/* ---- runs ---- */

static void add(struct at_run_comparison *c, const struct at_changed_job *job) {
    c->count[job->change]++;
    if (job->change != AT_CHANGE_NONE)
        c->jobs[c->n++] = *job;
}

static void add_new(struct at_run_comparison *c, const struct job *job, int strict) {
    struct at_changed_job change = { .b = speaker(job, strict) };
    const enum standing y = standing_of(change.b, strict);
    change.change = y == FAILING ? AT_CHANGE_WORSE : y == DECLINED ? AT_CHANGE_NONE : AT_CHANGE_NEW;
    snprintf(change.why, sizeof change.why, "not there -> %s", at_state_name(change.b->state));
    add(c, &change);
}

static void add_gone(struct at_run_comparison *c, const struct job *job, int strict) {
    struct at_changed_job change = { .a = speaker(job, strict) };
    change.change = standing_of(change.a, strict) == DECLINED ? AT_CHANGE_NONE : AT_CHANGE_GONE;
    snprintf(change.why, sizeof change.why, "%s -> not there", at_state_name(change.a->state));
    add(c, &change);
}

at_status at_compare_runs(const struct at_run_record *a, const struct at_run_record *b, int strict, double times,
                          struct at_run_comparison *comparison) {
    struct job *of_a = calloc((size_t)a->n + 1, sizeof *of_a), *of_b = calloc((size_t)b->n + 1, sizeof *of_b);
    struct job *sorted_a = calloc((size_t)a->n + 1, sizeof *sorted_a),
               *sorted_b = calloc((size_t)b->n + 1, sizeof *sorted_b);
    at_status status = AT_OK;
    memset(comparison, 0, sizeof *comparison);
    comparison->jobs = calloc((size_t)(a->n + b->n) + 1, sizeof *comparison->jobs);
    if (!of_a || !of_b || !sorted_a || !sorted_b || !comparison->jobs)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory to compare %lld and %lld results", (long long)a->n, (long long)b->n);
    const int64_t n_a = jobs_of(a, of_a), n_b = jobs_of(b, of_b);
    memcpy(sorted_a, of_a, (size_t)n_a * sizeof *of_a);
    memcpy(sorted_b, of_b, (size_t)n_b * sizeof *of_b);
    qsort(sorted_a, (size_t)n_a, sizeof *sorted_a, by_name);
    qsort(sorted_b, (size_t)n_b, sizeof *sorted_b, by_name);
    for (int64_t i = 0; i < n_b; i++) {
        const struct job *was = bsearch(&of_b[i], sorted_a, (size_t)n_a, sizeof *sorted_a, by_name);
        if (was) {
            const struct at_changed_job change = compare_jobs(was, &of_b[i], strict, times);
            add(comparison, &change);
            comparison->fail_in_both += change.change == AT_CHANGE_NONE && standing_of(change.b, strict) == FAILING;
        } else {
            add_new(comparison, &of_b[i], strict);
        }
    }
    for (int64_t i = 0; i < n_a; i++)
        if (!bsearch(&of_a[i], sorted_b, (size_t)n_b, sizeof *sorted_b, by_name))
            add_gone(comparison, &of_a[i], strict);
out:
    free(of_a);
    free(of_b);
    free(sorted_a);
    free(sorted_b);
    if (status != AT_OK)
        at_run_comparison_release(comparison);
    return status;
}

void at_run_comparison_release(struct at_run_comparison *comparison) {
    free(comparison->jobs);
    memset(comparison, 0, sizeof *comparison);
}
