/* Worker threads with a runner each, one journal, one record.
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
#include "verify/run/journal.h"
#include "verify/cli/progress.h"
#include "verify/run/provenance.h"

struct session {
    const struct at_session_options *options;
    struct at_plan plan;
    struct at_run_record *record;
    struct at_run_record done; /* from an earlier run, by --resume */
    struct at_journal *journal;
    char witness[4096]; /* folder for what is kept; "" without */
    struct at_progress progress;
    pthread_mutex_t lock;
    int64_t next; /* next item of the plan */
    int stop;
    at_status first_failure;
    char failure[1024];
};

struct worker {
    struct session *session;
    struct at_runner *runner; /* the first worker takes the one that was opened to plan with */
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
    return (struct at_session_options){
        .selection = { .cases_glob = "smoke:*", .shards = 1 }, .runner = "cpu", .jobs = at_threads(), .limit_factor = 1
    };
}

static int is_off(void *context, int64_t plan_index) {
    const struct session *s = context;
    if (interrupted)
        return 1;
    for (int64_t i = 0; i < s->done.n; i++)
        if (s->done.results[i].plan_index == plan_index)
            return 1;
    return 0;
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
    }
    if (!s->options->quiet)
        at_progress_step(&s->progress, 1, failed, results[0].case_id);
    if (failed && s->options->fail_fast)
        s->stop = 1;
out:
    pthread_mutex_unlock(&s->lock);
    return status;
}

static const struct at_plan_case *take(struct session *s) {
    pthread_mutex_lock(&s->lock);
    const struct at_plan_case *item =
        s->stop || interrupted || s->next >= s->plan.n_items ? NULL : &s->plan.items[s->next++];
    pthread_mutex_unlock(&s->lock);
    return item;
}

static void fail_session(struct session *s, at_status status) {
    pthread_mutex_lock(&s->lock);
    if (s->first_failure == AT_OK) {
        s->first_failure = status;
        snprintf(s->failure, sizeof s->failure, "%s", at_error_message());
    }
    s->stop = 1;
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *context) {
    struct worker *w = context;
    struct session *s = w->session;
    const struct at_session_options *o = s->options;
    struct at_judge_options judge = { .seed = o->seed,
                                      .timeout = o->timeout,
                                      .threads = o->jobs > 1 ? 1 : at_threads(),
                                      .limit_factor = o->limit_factor,
                                      .runner_spec = o->runner,
                                      .dump = o->dump,
                                      .counters = o->counters,
                                      .keep = o->keep,
                                      .witness = s->witness,
                                      .emit = emit,
                                      .is_off = is_off,
                                      .context = s };
    at_status status = AT_OK;
    struct at_runner *predictor = NULL;
    if (!w->runner)
        status = at_runner_open(o->runner, &w->runner);
    /* Without attest-cpu beside this program nothing is predicted, and the report says so. */
    if (status == AT_OK && strcmp(o->runner, "cuda") == 0 && at_runner_open("cpu", &predictor) != AT_OK)
        predictor = NULL;
    judge.predictor = predictor;
    for (const struct at_plan_case *item; status == AT_OK && (item = take(s));)
        status = at_judge_case(w->runner, item, &judge);
    if (status != AT_OK)
        fail_session(s, status);
    if (predictor)
        at_runner_close(predictor);
    return NULL;
}

static at_status run_workers(struct session *s, struct at_runner *first) {
    int n = s->options->jobs < 1 ? 1 : s->options->jobs;
    if (n > s->plan.n_items)
        n = s->plan.n_items > 0 ? (int)s->plan.n_items : 1;
    struct worker *workers = calloc((size_t)n, sizeof *workers);
    if (!workers)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d workers", n);
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

static void watch_signals(void) {
    struct sigaction action = { .sa_handler = on_signal };
    interrupted = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
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
    for (int64_t i = 0; i < s->done.n; i++)
        AT_TRY(at_run_record_add(s->record, &s->done.results[i]));
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

at_status at_session_run(const struct at_session_options *options, struct at_run_record *record) {
    struct session s = { .options = options, .record = record, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct at_runner *runner = NULL;
    at_status status = AT_OK;
    at_run_record_init(record);
    at_run_record_init(&s.done);
    AT_TRY_OUT(at_runner_open(options->runner, &runner));
    AT_TRY_OUT(at_plan_make(&options->selection, runner, &s.plan));
    AT_TRY_OUT(at_provenance_fill(options, &s.plan, runner, record));
    watch_signals();
    if (options->out)
        AT_TRY_OUT(open_journal(&s));
    at_progress_start(&s.progress, "judging", s.plan.n_jobs);
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
    pthread_mutex_destroy(&s.lock);
    return status;
}
