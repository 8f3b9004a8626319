/* Estimates of what judging costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"

/* Kernels work by tiles of queries: a request of one query takes each head's block as long as one of so many. */
enum { TILE_QUERIES = 32 };

static int same_request(const struct at_problem *p, int64_t row, int64_t other) {
    return row == other || (p->op->request_of_row && p->op->request_of_row(p, row) == p->op->request_of_row(p, other));
}

/* Multiply-adds of all rows; where requests have few queries, of as many as a tile has. */
double at_problem_work(const struct at_problem *p) {
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

/* Fitted to the processor time of 3,600 jobs of the cases smoke, exact and reach, which is spread by a factor of three around
 * it: some variants take ten times what others take for the same work, and some decline. So cases are cut between variants
 * (shards.c) rather than estimated better. Seconds a case, a job, a byte and a multiply-add. A CUDA kernel on the SIMT
 * machine takes whole tiles: small cases take more for their work, hence the root; tiles of many queries more than one query. */
static const double A_CASE = 4e-3, A_JOB = 4e-3, CASE_BYTE = 3e-8, CASE_WORK = 1e-9, HOST_BYTE = 2e-8,
                    HOST_WORK = 1e-10, DECODE_ROOT = 2e-5, DEVICE_ROOT = 1e-4, DEVICE_WORK = 1e-9;
/* Launches of a job that is launched again. */
static const double LAUNCHES = 5;
/* Bytes that a multiply-add may touch: of a large pool of pages most are nobody's and never looked at. */
static const double TOUCHED = 4;

int at_is_launched_again(const struct at_case *c, const struct at_variant *v, int64_t again) {
    uint64_t hash = at_hash_bytes(v->family, strlen(v->family), c->hash);
    hash = at_hash_bytes(v->name, strlen(v->name), hash);
    return again < 2 || hash % (uint64_t)again == 0;
}

static int is_host(const struct at_variant *v) {
    const size_t n = strlen(v->path);
    return n > 2 && strcmp(v->path + n - 2, ".c") == 0;
}

at_status at_plan_cost_make(const struct at_plan_case *item, const struct at_runner *runner, int64_t again,
                            struct at_plan_cost *cost) {
    struct at_case_data data = { 0 };
    double bytes = (double)at_case_bytes(item->c), work = bytes;
    if (at_case_outline(item->c, &data) == AT_OK) {
        work = at_problem_work(&data.problem);
        bytes = fmin((double)data.bytes, TOUCHED * work);
    }
    at_case_data_release(&data);
    const double root = item->c->family->decode ? DECODE_ROOT : DEVICE_ROOT;
    *cost = (struct at_plan_cost){ .shared = A_CASE + CASE_BYTE * bytes + CASE_WORK * work };
    cost->variant = calloc((size_t)item->n_variants + 1, sizeof *cost->variant);
    if (!cost->variant)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the costs of a plan");
    for (int i = 0; i < item->n_variants; i++) {
        const struct at_variant *v = at_runner_variant(runner, item->variants[i]);
        const double launch =
            is_host(v) ? HOST_BYTE * bytes + HOST_WORK * work : root * sqrt(work) + DEVICE_WORK * work;
        cost->variant[i] = A_JOB + launch * (at_is_launched_again(item->c, v, again) ? LAUNCHES : 1);
    }
    return AT_OK;
}

void at_plan_cost_release(struct at_plan_cost *cost) {
    free(cost->variant);
    cost->variant = NULL;
}
