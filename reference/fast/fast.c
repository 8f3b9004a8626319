/* The fast tier: blocks of a whole problem spread over threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fast/fast.h"

#include <pthread.h>
#include <stdlib.h>

#include "attest/blas_alone.h"
#include "attest/env.h"
#include "fast/kind.h"

/* Below this many multiply-adds the plain operator is quick enough. */
static const double worth_it = 1 << 25;

const struct at_fast_kind *at_fast_kind_of(const struct at_op *op) {
    static const struct at_fast_kind *const kinds[] = { &at_fast_asynct, &at_fast_softmax };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i]->op == op)
            return kinds[i];
    return NULL;
}

int at_fast_supports(const struct at_problem *problem) {
    if (!at_fast_kind_of(problem->op))
        return 0;
    double work = 0;
    int64_t rows = problem->op->rows(problem);
    for (int64_t row = 0; row < rows && work < worth_it; row++)
        work += problem->op->row_work(problem, row);
    return work >= worth_it;
}

/* One evaluation while its threads run. */
struct job {
    struct at_fast_run run;
    const struct at_fast_kind *kind;
    int64_t *first_block;      /* [b+1] */
    struct at_fast_work *work; /* [threads] */
    struct at_ledger *ledgers; /* [threads] */
    pthread_mutex_t lock;      /* of what follows, and of the caller's trace */
    int64_t done;
    void (*progress)(void *context, double share);
    void *progress_context;
};

/* The caller's trace, one thread at a time. */
static void locked_trace(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values) {
    struct job *job = context;
    pthread_mutex_lock(&job->lock);
    job->run.eval->trace(job->run.eval->trace_context, row, stage, n, values);
    pthread_mutex_unlock(&job->lock);
}

static at_status evaluate_block(struct job *job, const struct at_fast_block *block, int worker) {
    struct at_fast_work *work = &job->work[worker];
    const struct at_fast_watch watch = { .ledger = job->run.eval->ledger ? &job->ledgers[worker] : NULL,
                                         .trace = job->run.eval->trace ? locked_trace : NULL,
                                         .trace_context = job };
    at_fast_scores(work, block);
    for (int64_t i = 0; i < block->rows; i++)
        job->kind->weigh(&job->run, work, i, &watch);
    at_fast_outputs(work);
    for (int64_t i = 0; i < block->rows; i++)
        AT_TRY(job->kind->finish(&job->run, work, i, &watch));
    return AT_OK;
}

/* Request of a block: the last whose first block is not beyond it. */
static int64_t request_of(const struct job *job, int64_t block) {
    int64_t low = 0, high = job->run.problem->sizes.b - 1;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (job->first_block[middle] <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static at_status run_blocks(void *context, int64_t begin, int64_t end, int worker) {
    struct job *job = context;
    const int64_t total = job->first_block[job->run.problem->sizes.b];
    for (int64_t i = begin; i < end; i++) {
        int64_t request = request_of(job, i);
        struct at_fast_block block = at_fast_block_at(job->run.problem, request, i - job->first_block[request]);
        AT_TRY(evaluate_block(job, &block, worker));
        pthread_mutex_lock(&job->lock);
        job->done++;
        if (job->progress)
            job->progress(job->progress_context, (double)job->done / (double)total);
        pthread_mutex_unlock(&job->lock);
    }
    return AT_OK;
}

/* Numbers the blocks; gives their count. */
static int64_t count_blocks(const struct at_problem *problem, int64_t *first_block) {
    first_block[0] = 0;
    for (int64_t r = 0; r < problem->sizes.b; r++)
        first_block[r + 1] = first_block[r] + at_fast_cut(problem, r).blocks;
    return first_block[problem->sizes.b];
}

static at_status run_threads(struct job *job, int threads, int64_t *peak_bytes) {
    const struct at_problem *problem = job->run.problem;
    at_status status = AT_OK;
    int started = 0;
    for (; started < threads; started++) {
        AT_TRY_OUT(at_fast_work_init(problem, job->run.limits, &job->work[started]));
        job->work[started].charge_zeros = job->kind->charges_zeros(&job->run);
        at_ledger_init(&job->ledgers[started]);
    }
    *peak_bytes += threads * at_fast_work_bytes(problem, job->run.limits);
    at_blas_alone();
    AT_TRY_OUT(at_parallel(job->first_block[problem->sizes.b], 1, threads, run_blocks, job));
    for (int i = 0; job->run.eval->ledger && i < threads; i++)
        at_ledger_merge(job->run.eval->ledger, &job->ledgers[i]);
out:
    while (started > 0)
        at_fast_work_release(&job->work[--started]);
    return status;
}

at_status at_fast_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int threads,
                           struct at_eval *eval, int64_t *peak_bytes, void (*progress)(void *context, double share),
                           void *progress_context) {
    struct job job = { .run = { .problem = problem, .eval = eval },
                       .kind = at_fast_kind_of(problem->op),
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .progress = progress,
                       .progress_context = progress_context };
    at_status status = AT_OK;
    if (!job.kind)
        return AT_FAIL(AT_UNSUPPORTED, "%s has no fast tier", problem->op->name);
    AT_TRY(job.kind->prepare(&job.run, numerics));
    const size_t requests = (size_t)problem->sizes.b + 1;
    job.first_block = malloc(requests * sizeof *job.first_block);
    if (!job.first_block)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %zu requests", requests);
    int64_t blocks = count_blocks(problem, job.first_block);
    threads = threads < blocks ? threads : (int)blocks;
    threads = threads > 0 ? threads : 1;
    job.work = calloc((size_t)threads, sizeof *job.work);
    job.ledgers = calloc((size_t)threads, sizeof *job.ledgers);
    if (!job.work || !job.ledgers)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d threads", threads);
    int64_t bytes = (int64_t)(requests * sizeof *job.first_block);
    bytes += threads * (int64_t)(sizeof *job.work + sizeof *job.ledgers);
    AT_TRY_OUT(run_threads(&job, threads, &bytes));
    if (peak_bytes)
        *peak_bytes = bytes;
out:
    free(job.work);
    free(job.ledgers);
    free(job.first_block);
    pthread_mutex_destroy(&job.lock);
    return status;
}
