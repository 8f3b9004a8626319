/* Estimates of what judging costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Seconds of an H200's host for what judging does, fitted to the processor time of the cases of @check: a multiply-add by the
 * references and decoys of a case, by a C baseline, by a CUDA kernel on the SIMT machine with its launches again; and what
 * a case and a job cost without any. */
static const double REFERENCE = 1e-7, HOST = 2e-8, DEVICE = 4e-7, A_CASE = 1e-3, A_JOB = 2e-3;

static int is_host(const struct at_variant *v) {
    const size_t n = strlen(v->path);
    return n > 2 && strcmp(v->path + n - 2, ".c") == 0;
}

/* Rows that are copied, compared and read again are work too. */
static double work_of(const struct at_case *c) {
    struct at_case_data data = { 0 };
    double work = (double)at_case_bytes(c);
    if (at_case_outline(c, &data) == AT_OK)
        work = at_problem_work(&data.problem) + (double)data.bytes;
    at_case_data_release(&data);
    return work;
}

at_status at_plan_cost_make(const struct at_plan_case *item, const struct at_runner *runner,
                            struct at_plan_cost *cost) {
    const double work = work_of(item->c);
    *cost = (struct at_plan_cost){ .shared = A_CASE + REFERENCE * work };
    cost->variant = calloc((size_t)item->n_variants + 1, sizeof *cost->variant);
    if (!cost->variant)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the costs of a plan");
    for (int v = 0; v < item->n_variants; v++)
        cost->variant[v] = A_JOB + work * (is_host(at_runner_variant(runner, item->variants[v])) ? HOST : DEVICE);
    return AT_OK;
}

void at_plan_cost_release(struct at_plan_cost *cost) {
    free(cost->variant);
    cost->variant = NULL;
}
