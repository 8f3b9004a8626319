/* What every launch of a job goes by: its fate, its time, its seed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/job.h"

#include <math.h>

#include "attest/buffer.h"

/* Kernels work by tiles of queries: a request of one query takes each head's block as long as one of so many. */
enum { TILE_QUERIES = 32 };

static int same_request(const struct at_problem *p, int64_t row, int64_t other) {
    return row == other || (p->op->request_of_row && p->op->request_of_row(p, row) == p->op->request_of_row(p, other));
}

/* Multiply-adds of all rows; where requests have few queries, of as many as a tile has. */
static double case_work(const struct at_problem *p) {
    const double tile = p->op->request_of_row ? (double)(TILE_QUERIES * p->sizes.h) : 1;
    double work = 0;
    for (int64_t first = 0, next, rows = p->op->rows(p); first < rows; first = next) {
        double of_request = 0;
        for (next = first; next < rows && same_request(p, first, next); next++)
            of_request += p->op->row_work(p, next);
        work += of_request * fmax(1.0, tile / (double)(next - first));
    }
    return work;
}

/* A plain loop does some 10^8 multiply-adds a second under the slowest sanitizer; a bit-exact tensor-core model 10^7. */
double at_launch_seconds(const struct at_problem *problem) { return fmax(10.0, 20.0 * case_work(problem) / 5e7); }

double at_job_time_limit(const struct at_job *j) {
    const double given = j->context->options->timeout;
    return given > 0 ? given : at_launch_seconds(&j->context->data.problem);
}

enum at_state at_job_fate(enum at_run_outcome outcome) {
    switch (outcome) {
    case AT_RUN_UNSUPPORTED:
        return AT_STATE_UNSUPPORTED;
    case AT_RUN_RACY:
        return AT_STATE_RACY;
    case AT_RUN_DIRTY:
        return AT_STATE_DIRTY;
    case AT_RUN_DEADLOCKED:
        return AT_STATE_HUNG;
    default:
        return AT_STATE_ERROR;
    }
}

uint64_t at_job_seed(const struct at_job *j, uint64_t launch) {
    uint64_t parts[3] = { j->context->options->seed, j->context->item->c->hash, launch };
    return at_hash_bytes(parts, sizeof parts, AT_HASH_START);
}
