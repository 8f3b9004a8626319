/* Worker threads with a runner each, jobs handed out to them, one journal, one record.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/run/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attest/env.h"
#include "verify/archive/witness.h"
#include "verify/run/given_up.h"
#include "verify/run/journal.h"
#include "verify/run/last_failed.h"
#include "verify/cli/progress.h"
#include "verify/run/provenance.h"
#include "verify/runner/device_seat.h"

/* A case of which jobs are at work. */
struct open_case {
    struct at_case_context *context; /* NULL: the place is free */
    const struct at_plan_case *item;
    int next; /* variant to hand out */
    int workers;
};

struct session {
    const struct at_session_options *options;
    struct at_judge_options judge;
    struct at_sandbox *box; /* NULL: none */
    struct at_device_pool *devices;
    struct at_plan plan;
    struct at_run_record *record;
    int64_t n_done; /* results at the record's beginning that are of an earlier run, by --resume; sorted */
    struct at_journal *journal;
    char witness[4096]; /* folder for what is kept; "" without */
    struct at_progress progress;
    pthread_mutex_t lock;
    struct at_given_up given_up;
    int64_t next;           /* item of the plan to open */
    struct open_case *open; /* [n_open]; each has a worker, so one for each worker is enough */
    int n_open;
    int stop;
    at_status first_failure;
    char failure[1024];
};

struct worker {
    struct session *session;
    struct at_device_seat seat; /* the first worker takes the one that was opened to plan with */
    /* Results of a job that broke down, which another device may do: not spoken of before. */
    struct at_result *held;
    int n_held, may_hold;
    int number, broke;    /* broke: what was emitted last had broken down */
    struct open_case *at; /* NULL: none */
    pthread_t thread;
    int started;
};

static _Thread_local struct worker *at_work; /* the worker of this thread */

struct at_session_options at_session_defaults(void) {
    return (struct at_session_options){ .selection = { .cases_glob = "smoke:*", .shards = 1 },
                                        .runner = "cpu",
                                        .jobs = at_threads(),
                                        .again = 1,
                                        .limit_factor = 1 };
}

static int already_done(const struct session *s, int64_t plan_index) {
    int64_t low = 0, high = s->n_done;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (at_run_record_place(s->record, middle) < plan_index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n_done && at_run_record_place(s->record, low) == plan_index;
}

/* 1 when the results of a job that broke down wait for what another device says of it. */
static int hold(struct worker *w, const struct at_result *results, int n) {
    if (!w->may_hold || at_state_class(results[0].state) != AT_CLASS_BROKEN)
        return 0;
    w->held = malloc((size_t)n * sizeof *w->held);
    if (!w->held)
        return 0;
    memcpy(w->held, results, (size_t)n * sizeof *w->held);
    w->n_held = n;
    return 1;
}

/* Durable first, visible second: what a user has seen is in the journal. */
static at_status emit(void *context, const struct at_result *results, int n) {
    struct session *s = context;
    if (hold(at_work, results, n))
        return AT_OK;
    at_work->broke = at_state_class(results[0].state) == AT_CLASS_BROKEN;
    at_status status = AT_OK;
    int64_t failed = 0;
    if (s->journal) /* not under the lock, where all would wait for the disk one after the other */
        AT_TRY(at_journal_append(s->journal, results, n));
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < n; i++) {
        AT_TRY_OUT(at_run_record_add(s->record, &results[i]));
        failed |= at_state_fails(results[i].state, results[i].expect, s->options->strict);
        if (s->options->is_enough && s->options->is_enough(&results[i], s->options->looked_for))
            s->stop = 1;
    }
    at_given_up_note(&s->given_up, &results[0], failed != 0);
    if (s->options->see)
        AT_TRY_OUT(s->options->see(s->options->see_context, results, n));
    if (!s->options->quiet)
        at_progress_step(&s->progress, 1, failed, results[0].case_id);
    if (failed && s->options->fail_fast)
        s->stop = 1;
out:
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- handing out jobs: all of what follows under the lock ---- */

/* Passes over what an earlier run has judged and what has failed enough; 1 when there is a variant left to hand out. */
static int has_more(struct session *s, struct open_case *c) {
    for (; c->next < c->item->n_variants; c->next++) {
        const int failed = at_given_up_failed(&s->given_up, c->item->variants[c->next]);
        if (!failed && !already_done(s, c->item->first_index + c->next))
            return 1;
        s->progress.total -= failed;
    }
    return 0;
}

/* Who leaves a case last takes what its jobs shared along. */
static void leave(struct worker *w) {
    if (w->at && --w->at->workers == 0) {
        at_case_context_destroy(w->at->context);
        w->at->context = NULL;
    }
    w->at = NULL;
}

/* The next case of the plan that has a job left. */
static at_status open_next(struct session *s, struct worker *w) {
    while (!w->at && s->next < s->plan.n_items) {
        struct open_case c = { .item = &s->plan.items[s->next++], .workers = 1 };
        if (!has_more(s, &c))
            continue;
        AT_TRY(at_case_context_create(c.item, &s->judge, &c.context));
        for (int i = 0; !w->at; i++) /* a worker without a case leaves a place free */
            if (!s->open[i].context) {
                s->open[i] = c;
                w->at = &s->open[i];
            }
    }
    return AT_OK;
}

/* At the end of the plan: the case with the most jobs that nobody has begun. */
static void join_fullest(struct session *s, struct worker *w) {
    int most = 0;
    for (int i = 0; i < s->n_open; i++) {
        struct open_case *c = &s->open[i];
        if (c->context && has_more(s, c) && c->item->n_variants - c->next > most) {
            most = c->item->n_variants - c->next;
            w->at = c;
        }
    }
    if (w->at)
        w->at->workers++;
}

/* *variant = the place in item->variants of the next job, of w->at; without one w->at is NULL. */
static at_status take(struct session *s, struct worker *w, int *variant) {
    at_status status = AT_OK;
    pthread_mutex_lock(&s->lock);
    const int stop = s->stop || at_session_signal();
    if (w->at && (stop || !has_more(s, w->at)))
        leave(w);
    if (!w->at && !stop) {
        AT_TRY_OUT(open_next(s, w));
        if (!w->at)
            join_fullest(s, w);
    }
    if (w->at)
        *variant = w->at->next++;
out:
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void leave_for_good(struct session *s, struct worker *w) {
    pthread_mutex_lock(&s->lock);
    leave(w);
    pthread_mutex_unlock(&s->lock);
}

/* ---- workers ---- */

static void fail_session(struct session *s, at_status status) {
    pthread_mutex_lock(&s->lock);
    if (s->first_failure == AT_OK) {
        s->first_failure = status;
        snprintf(s->failure, sizeof s->failure, "%s", at_error_message());
    }
    s->stop = 1;
    pthread_mutex_unlock(&s->lock);
}

/* A job that broke down on one device is judged on another, where there is one: if it breaks down there too, that is its
 * result. A runner that does not start again is its device's failure, and no result. */
static at_status judge(struct worker *w, struct at_runner *predictor, int variant) {
    struct session *s = w->session;
    struct at_runner *other = NULL;
    w->may_hold = at_device_pool_left(s->devices) > 1;
    at_status status = at_judge_job(w->at->context, w->seat.runner, predictor, variant);
    const int retry = w->may_hold, cannot_serve = status == AT_ENVIRONMENT;
    w->may_hold = 0;
    if (!retry || !(w->held || cannot_serve))
        return status;
    const at_status opened = at_device_seat_other(&w->seat, &other);
    if (opened != AT_OK)
        return opened;
    if (other) {
        status = at_judge_job(w->at->context, other, predictor, variant);
        if (status == AT_OK && w->held && !w->broke) /* or the kernel fails now and then: never without a word */
            fprintf(stderr, "attest: %s/%s was %s on one device and not on another, which counts: %s; %s\n",
                    w->held->family, w->held->variant, at_state_name(w->held->state), w->held->cause, w->held->case_id);
        if (status == AT_OK && (cannot_serve || !w->broke))
            at_device_seat_blame(&w->seat, cannot_serve);
    } else if (w->held) {
        status = emit(s, w->held, w->n_held);
    }
    free(w->held);
    w->held = NULL;
    return status;
}

/* A variant that was set aside meanwhile is passed over, with its reason. */
static at_status judge_or_skip(struct worker *w, struct at_runner *predictor, int variant) {
    struct session *s = w->session;
    char why[sizeof s->given_up.broken->why];
    pthread_mutex_lock(&s->lock);
    snprintf(why, sizeof why, "%s", at_given_up_why(&s->given_up, w->at->item->variants[variant]));
    pthread_mutex_unlock(&s->lock);
    return why[0] ? at_judge_skip(w->at->context, w->seat.runner, variant, why) : judge(w, predictor, variant);
}

static void *work(void *context) {
    struct worker *w = context;
    struct session *s = w->session;
    const char *spec = s->options->runner;
    at_status status = AT_OK;
    struct at_runner *predictor = NULL;
    int variant = 0;
    const int before = at_threads_use(s->judge.threads);
    at_work = w;
    if (!w->seat.runner)
        status = at_device_seat_open(s->devices, w->number, &w->seat);
    /* Without attest-cpu beside this program nothing is predicted, and the report says so. */
    if (status == AT_OK && strcmp(spec, "cuda") == 0 && at_runner_open("cpu", &predictor) != AT_OK)
        predictor = NULL;
    while (status == AT_OK && (status = take(s, w, &variant)) == AT_OK && w->at)
        status = judge_or_skip(w, predictor, variant);
    if (status != AT_OK)
        fail_session(s, status);
    leave_for_good(s, w);
    if (predictor)
        at_runner_close(predictor);
    /* Not one after another when all have ended: a device takes a tenth of a second each. */
    at_device_seat_close(&w->seat);
    at_threads_use(before);
    return NULL;
}

static at_status run_workers(struct session *s, struct at_device_seat *first) {
    int n = s->options->jobs < 1 ? 1 : s->options->jobs;
    if (n > s->plan.n_jobs)
        n = s->plan.n_jobs > 0 ? (int)s->plan.n_jobs : 1;
    struct worker *workers = calloc((size_t)n, sizeof *workers);
    s->open = calloc((size_t)n, sizeof *s->open);
    s->n_open = n;
    if (!workers || !s->open) {
        free(workers);
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d workers", n);
    }
    for (int i = 0; i < n; i++) {
        workers[i].session = s;
        workers[i].number = i;
        if (i)
            workers[i].started = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    }
    workers[0].seat = *first;
    *first = (struct at_device_seat){ 0 };
    work(&workers[0]);
    for (int i = 0; i < n; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    free(workers);
    return s->first_failure == AT_OK ? AT_OK : AT_FAIL(s->first_failure, "%s", s->failure);
}

/* What had failed, hung or crashed before the run went on counts. */
static at_status prepare_given_up(struct session *s, const struct at_runner *runner) {
    const struct at_session_options *o = s->options;
    AT_TRY(at_given_up_open(&s->given_up, &s->plan, at_runner_variant_count(runner), o->first_failure, o->set_aside,
                            o->quiet));
    if (o->first_failure || o->is_enough)
        at_plan_small_first(&s->plan);
    for (int64_t i = 0; i < s->n_done; i++) {
        const struct at_result *r = at_run_record_at(s->record, i);
        at_given_up_note(&s->given_up, r, at_state_fails(r->state, r->expect, o->strict));
    }
    return at_run_record_readable(s->record);
}

/* The folder for what is kept. A run that starts anew forgets what the one before has left there. */
static at_status open_witness(struct session *s) {
    AT_TRY(at_witness_folder(s->options->out, s->witness, sizeof s->witness));
    if (mkdir(s->witness, 0777) != 0 && errno != EEXIST)
        return AT_FAIL(AT_IO, "cannot make %s: %s", s->witness, strerror(errno));
    AT_TRY(at_run_record_add_witness(s->record, s->witness));
    AT_TRY(at_witness_clear(s->witness, s->n_done == 0));
    return at_witness_check(s->record);
}

/* What an earlier run had finished becomes the beginning of this one's results. */
static at_status take_over(struct session *s, const char *path) {
    struct at_run_record done;
    at_status status = AT_OK;
    at_run_record_init(&done);
    if (s->options->stored)
        AT_TRY_OUT(at_run_record_store(&done, s->options->out));
    AT_TRY_OUT(at_journal_open_into(path, s->record, s->options->resume, &done, &s->journal));
    AT_TRY_OUT(at_run_record_sort(&done));
    s->n_done = done.n;
    at_run_record_take(s->record, &done);
out:
    at_run_record_release(&done);
    return status;
}

/* Opens the journal and takes over what an earlier run had finished. */
static at_status open_journal(struct session *s) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s.jsonl", s->options->out) >= (int)sizeof path)
        return AT_FAIL(AT_USAGE, "--out: the path is too long");
    AT_TRY(at_atomic_check_regular(s->options->out));
    AT_TRY(take_over(s, path));
    for (int64_t i = 0; i < s->n_done && s->options->see; i++)
        AT_TRY(s->options->see(s->options->see_context, at_run_record_at(s->record, i), 1));
    AT_TRY(at_run_record_readable(s->record));
    return s->options->keep == AT_KEEP_NEVER ? AT_OK : open_witness(s);
}

/* Of a run that a signal has cut short, nothing is written but what the journal already has. */
static at_status finish(struct session *s) {
    AT_TRY(at_run_record_sort(s->record));
    s->record->is_part = s->options->selection.shards > 1;
    if (at_session_signal() && at_run_record_jobs(s->record) < s->plan.n_jobs) {
        s->record->signal = at_session_signal();
        s->record->planned = s->plan.n_jobs;
    }
    if (!s->journal || s->record->signal)
        return AT_OK;
    struct at_journal *journal = s->journal;
    s->journal = NULL;
    AT_TRY(at_journal_finish(journal, s->options->shard_text));
    return at_archive_write(s->record, s->options->out);
}

/* For what the jobs of a case share: as many of the processors as other cases leave. */
static int threads_of_a_case(const struct session *s) {
    const int jobs = s->options->jobs;
    const int64_t threads = jobs > 1 ? jobs : at_threads(), cases = s->plan.n_items < jobs ? s->plan.n_items : jobs;
    return cases > 1 ? (int)(threads / cases) : (int)threads;
}

static struct at_judge_options judge_options(struct session *s) {
    const struct at_session_options *o = s->options;
    return (struct at_judge_options){ .seed = o->seed,
                                      .timeout = o->timeout,
                                      .threads = o->jobs > 1 ? 1 : at_threads(),
                                      .shared_threads = threads_of_a_case(s),
                                      .again = o->again,
                                      .limit_factor = o->limit_factor,
                                      .runner_spec = o->runner,
                                      .sandbox = o->sandbox,
                                      .dump = o->dump,
                                      .counters = o->counters,
                                      .launch_only = o->launch_only,
                                      .keep = o->keep,
                                      .witness = s->witness,
                                      .emit = emit,
                                      .context = s };
}

at_status at_session_run(const struct at_session_options *options, struct at_run_record *record) {
    struct session s = { .options = options, .record = record, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct at_device_seat first = { 0 };
    at_status status = AT_OK;
    at_run_record_init(record);
    if (options->sandbox)
        AT_TRY_OUT(at_sandbox_open(&s.box));
    if (s.box && !options->quiet)
        fprintf(stderr, "sandbox: %s\n", at_sandbox_text(s.box));
    AT_TRY_OUT(at_device_pool_create(options->runner, &options->devices, s.box, &s.devices));
    AT_TRY_OUT(at_device_seat_open(s.devices, 0, &first));
    AT_TRY_OUT(at_plan_make(&options->selection, first.runner, &s.plan));
    if (options->last_failed)
        AT_TRY_OUT(at_last_failed_keep(options->last_failed, options->strict, first.runner, &s.plan));
    AT_TRY_OUT(at_provenance_fill(options, &s.plan, first.runner, s.box, record));
    at_session_watch_signals();
    if (options->out)
        AT_TRY_OUT(open_journal(&s));
    if (options->stored && !record->stored)
        AT_TRY_OUT(at_run_record_store(record, options->out ? options->out : "attest"));
    s.judge = judge_options(&s);
    AT_TRY_OUT(prepare_given_up(&s, first.runner));
    at_progress_start(&s.progress, options->launch_only ? "launching" : "judging", s.plan.n_jobs);
    status = run_workers(&s, &first);
    at_progress_end(&s.progress);
    if (status == AT_OK)
        status = finish(&s);
out:
    if (s.journal)
        at_journal_abandon(s.journal);
    at_plan_release(&s.plan);
    at_device_seat_close(&first);
    at_device_pool_destroy(s.devices);
    at_sandbox_close(s.box);
    free(s.open);
    at_given_up_close(&s.given_up);
    pthread_mutex_destroy(&s.lock);
    return status;
}
