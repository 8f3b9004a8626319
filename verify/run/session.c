/* Worker threads with a runner each, jobs handed out to them, one journal, one record.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/run/session.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attest/env.h"
#include "verify/archive/witness.h"
#include "verify/result/set_aside.h"
#include "verify/run/journal.h"
#include "verify/run/last_failed.h"
#include "verify/cli/progress.h"
#include "verify/run/provenance.h"

/* A case of which jobs are at work. */
struct open_case {
    struct at_case_context *context; /* NULL: the place is free */
    const struct at_plan_case *item;
    int next; /* variant to hand out */
    int workers;
};

/* How often a variant has hung or crashed. */
struct broken {
    int64_t n;
    char why[256]; /* once it is enough */
};

struct session {
    const struct at_session_options *options;
    struct at_judge_options judge;
    struct at_sandbox *box; /* NULL: none */
    struct at_plan plan;
    struct at_run_record *record;
    struct at_run_record done; /* from an earlier run, by --resume */
    struct at_journal *journal;
    char witness[4096]; /* folder for what is kept; "" without */
    struct at_progress progress;
    pthread_mutex_t lock;
    char *failed;           /* [variants of the runner] 1: judged no further (first_failure) */
    struct broken *broken;  /* [variants of the runner] with set_aside */
    int64_t next;           /* item of the plan to open */
    struct open_case *open; /* [n_open]; each has a worker, so one for each worker is enough */
    int n_open;
    int stop;
    at_status first_failure;
    char failure[1024];
};

struct worker {
    struct session *session;
    struct at_runner *runner; /* the first worker takes the one that was opened to plan with */
    struct open_case *at;     /* NULL: none */
    pthread_t thread;
    int started;
};

static volatile sig_atomic_t interrupted;

/* The first asks for an end after the running jobs; the second ends the process, as if nobody had asked. */
static void on_signal(int number) {
    if (interrupted) {
        signal(number, SIG_DFL);
        raise(number);
    }
    interrupted = number;
}

int at_session_signal(void) { return interrupted; }

struct at_session_options at_session_defaults(void) {
    return (struct at_session_options){ .selection = { .cases_glob = "smoke:*", .shards = 1 },
                                        .runner = "cpu",
                                        .jobs = at_threads(),
                                        .again = 1,
                                        .limit_factor = 1 };
}

static int already_done(const struct session *s, int64_t plan_index) {
    for (int64_t i = 0; i < s->done.n; i++)
        if (s->done.results[i].plan_index == plan_index)
            return 1;
    return 0;
}

/* The number, among the runner's, of the variant that a result is of; -1: the plan has no such place. */
static int variant_of(const struct session *s, const struct at_result *result) {
    for (int64_t i = 0; i < s->plan.n_items; i++) {
        const struct at_plan_case *item = &s->plan.items[i];
        const int64_t variant = result->plan_index - item->first_index;
        if (variant >= 0 && variant < item->n_variants)
            return item->variants[variant];
    }
    return -1;
}

/* first_failure: the variant of this result is judged no further. */
static void note_failed(struct session *s, const struct at_result *result) {
    const int variant = s->failed ? variant_of(s, result) : -1;
    if (variant >= 0)
        s->failed[variant] = 1;
}

/* set_aside: the variant has hung or crashed once more. Says so when it is set aside. */
static void note_broken(struct session *s, const struct at_result *result) {
    const int variant = s->broken && at_result_broke(result) ? variant_of(s, result) : -1;
    if (variant < 0 || ++s->broken[variant].n != s->options->set_aside)
        return;
    snprintf(s->broken[variant].why, sizeof s->broken[variant].why,
             AT_SET_ASIDE "CRASHED or HUNG in %lld jobs (--set-aside), last %s: %.120s",
             (long long)s->broken[variant].n, at_state_name(result->state), result->cause);
    if (!s->options->quiet)
        fprintf(stderr, "\nattest: %s/%s is %s\n", result->family, result->variant, s->broken[variant].why);
}

/* Durable first, visible second: what a user has seen is in the journal. */
static at_status emit(void *context, const struct at_result *results, int n) {
    struct session *s = context;
    at_status status = AT_OK;
    int64_t failed = 0;
    pthread_mutex_lock(&s->lock);
    if (s->journal)
        AT_TRY_OUT(at_journal_append(s->journal, results, n));
    for (int i = 0; i < n; i++) {
        AT_TRY_OUT(at_run_record_add(s->record, &results[i]));
        failed |= at_state_fails(results[i].state, results[i].expect, s->options->strict);
        if (s->options->is_enough && s->options->is_enough(&results[i], s->options->looked_for))
            s->stop = 1;
    }
    if (failed)
        note_failed(s, &results[0]);
    note_broken(s, &results[0]);
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
        const int failed = s->failed && s->failed[c->item->variants[c->next]];
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
    const int stop = s->stop || interrupted;
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

/* A variant that was set aside meanwhile is passed over, with its reason. */
static at_status judge_or_skip(struct worker *w, struct at_runner *predictor, int variant) {
    struct session *s = w->session;
    char why[sizeof s->broken->why] = "";
    pthread_mutex_lock(&s->lock);
    if (s->broken)
        snprintf(why, sizeof why, "%s", s->broken[w->at->item->variants[variant]].why);
    pthread_mutex_unlock(&s->lock);
    return why[0] ? at_judge_skip(w->at->context, w->runner, variant, why)
                  : at_judge_job(w->at->context, w->runner, predictor, variant);
}

static void *work(void *context) {
    struct worker *w = context;
    struct session *s = w->session;
    const char *spec = s->options->runner;
    at_status status = AT_OK;
    struct at_runner *predictor = NULL;
    int variant = 0;
    if (!w->runner)
        status = at_runner_open_in(spec, s->box, &w->runner);
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
    return NULL;
}

static at_status run_workers(struct session *s, struct at_runner *first) {
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
        workers[i].runner = i == 0 ? first : NULL;
        if (i)
            workers[i].started = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    }
    work(&workers[0]);
    for (int i = 1; i < n; i++) {
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
        if (workers[i].runner)
            at_runner_close(workers[i].runner);
    }
    free(workers);
    return s->first_failure == AT_OK ? AT_OK : AT_FAIL(s->first_failure, "%s", s->failure);
}

void at_session_watch_signals(void) {
    struct sigaction action = { .sa_handler = on_signal };
    interrupted = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* What had failed before the run went on is judged no further either. */
static at_status prepare_first_failure(struct session *s, const struct at_runner *runner) {
    if (!s->options->first_failure)
        return AT_OK;
    s->failed = calloc((size_t)at_runner_variant_count(runner) + 1, 1);
    if (!s->failed)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    at_plan_small_first(&s->plan);
    for (int64_t i = 0; i < s->done.n; i++)
        if (at_state_fails(s->done.results[i].state, s->done.results[i].expect, s->options->strict))
            note_failed(s, &s->done.results[i]);
    return AT_OK;
}

/* What had hung or crashed before the run went on counts. */
static at_status prepare_set_aside(struct session *s, const struct at_runner *runner) {
    if (!s->options->set_aside)
        return AT_OK;
    s->broken = calloc((size_t)at_runner_variant_count(runner) + 1, sizeof *s->broken);
    if (!s->broken)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    for (int64_t i = 0; i < s->done.n; i++)
        note_broken(s, &s->done.results[i]);
    return AT_OK;
}

/* The folder for what is kept. A run that starts anew forgets what the one before has left there. */
static at_status open_witness(struct session *s) {
    AT_TRY(at_witness_folder(s->options->out, s->witness, sizeof s->witness));
    if (mkdir(s->witness, 0777) != 0 && errno != EEXIST)
        return AT_FAIL(AT_IO, "cannot make %s: %s", s->witness, strerror(errno));
    AT_TRY(at_run_record_add_witness(s->record, s->witness));
    AT_TRY(at_witness_clear(s->witness, s->done.n == 0));
    return at_witness_check(s->record);
}

/* Opens the journal and takes over what an earlier run had finished. */
static at_status open_journal(struct session *s) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s.jsonl", s->options->out) >= (int)sizeof path)
        return AT_FAIL(AT_USAGE, "--out: the path is too long");
    AT_TRY(at_atomic_check_regular(s->options->out));
    AT_TRY(at_journal_open(path, s->record, s->options->resume, &s->done, &s->journal));
    for (int64_t i = 0; i < s->done.n; i++) {
        AT_TRY(at_run_record_add(s->record, &s->done.results[i]));
        if (s->options->see)
            AT_TRY(s->options->see(s->options->see_context, &s->done.results[i], 1));
    }
    return s->options->keep == AT_KEEP_NEVER ? AT_OK : open_witness(s);
}

/* Of a run that a signal has cut short, nothing is written but what the journal already has. */
static at_status finish(struct session *s) {
    at_run_record_sort(s->record);
    s->record->is_part = s->options->selection.shards > 1;
    if (interrupted && at_run_record_jobs(s->record) < s->plan.n_jobs) {
        s->record->signal = interrupted;
        s->record->planned = s->plan.n_jobs;
    }
    if (!s->journal || s->record->signal)
        return AT_OK;
    struct at_journal *journal = s->journal;
    s->journal = NULL;
    AT_TRY(at_journal_finish(journal, s->options->shard_text));
    return at_archive_write(s->record, s->options->out);
}

static struct at_judge_options judge_options(struct session *s) {
    const struct at_session_options *o = s->options;
    return (struct at_judge_options){ .seed = o->seed,
                                      .timeout = o->timeout,
                                      .threads = o->jobs > 1 ? 1 : at_threads(),
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
    struct at_runner *runner = NULL;
    at_status status = AT_OK;
    at_run_record_init(record);
    at_run_record_init(&s.done);
    s.judge = judge_options(&s);
    if (options->sandbox)
        AT_TRY_OUT(at_sandbox_open(&s.box));
    if (s.box && !options->quiet)
        fprintf(stderr, "sandbox: %s\n", at_sandbox_text(s.box));
    AT_TRY_OUT(at_runner_open_in(options->runner, s.box, &runner));
    AT_TRY_OUT(at_plan_make(&options->selection, runner, &s.plan));
    if (options->last_failed)
        AT_TRY_OUT(at_last_failed_keep(options->last_failed, options->strict, runner, &s.plan));
    AT_TRY_OUT(at_provenance_fill(options, &s.plan, runner, s.box, record));
    at_session_watch_signals();
    if (options->out)
        AT_TRY_OUT(open_journal(&s));
    AT_TRY_OUT(prepare_first_failure(&s, runner));
    AT_TRY_OUT(prepare_set_aside(&s, runner));
    at_progress_start(&s.progress, options->launch_only ? "launching" : "judging", s.plan.n_jobs);
    status = run_workers(&s, runner);
    at_progress_end(&s.progress);
    if (status == AT_OK)
        status = finish(&s);
out:
    if (s.journal)
        at_journal_abandon(s.journal);
    at_plan_release(&s.plan);
    at_run_record_release(&s.done);
    if (runner)
        at_runner_close(runner);
    at_sandbox_close(s.box);
    free(s.open);
    free(s.failed);
    free(s.broken);
    pthread_mutex_destroy(&s.lock);
    return status;
}
