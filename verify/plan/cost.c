/* Estimates of what judging costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"

/* Kernels work by tiles: a request of one query takes each head's block as long as one of so many, however few its keys are. */
enum { TILE_QUERIES = 32, TILE_KEYS = 16 };

static int same_request(const struct at_problem *p, int64_t row, int64_t other) {
    return row == other || (p->op->request_of_row && p->op->request_of_row(p, row) == p->op->request_of_row(p, other));
}

/* Multiply-adds of all rows; where requests have few queries or keys, of as many as a tile has. */
double at_problem_work(const struct at_problem *p) {
    const double tile = p->op->request_of_row ? (double)(TILE_QUERIES * p->sizes.h) : 1;
    const double least = p->op->request_of_row ? tile * 2 * TILE_KEYS * (double)p->sizes.d : 0;
    double work = 0;
    for (int64_t first = 0, next, rows = p->op->rows(p); first < rows; first = next) {
        double of_request = 0;
        for (next = first; next < rows && same_request(p, first, next); next++)
            of_request += p->op->row_work(p, next);
        work += fmax(of_request * fmax(1.0, tile / (double)(next - first)), least);
    }
    return work;
}

/* Fitted, by least squares of seconds, to the processor time of the 9,434 jobs of the cases smoke, exact and reach on the SIMT
 * machine with --again 6. Seconds a case, a job, a multiply-add and an element of an output; of a launch too. */
static const double A_CASE = 1e-2, CASE_WORK = 7e-8, A_JOB = 1e-2, A_DECLINED = 4e-3, OUTPUT = 1.3e-7,
                    HOST_WORK = 2.5e-8, LAUNCH_OUTPUT = 1.2e-7, LAUNCH_WORK = 8e-8;
/* A block a row of a decode kernel. A tensor core's kernel takes whole tiles: small problems take more for their work. */
static const double DECODE_ROW = 4e-4, TILES_ROOT = 1.2e-4;
/* Launches of a job that is launched again. */
static const double LAUNCHES = 5;

int at_is_launched_again(const struct at_case *c, const struct at_variant *v, int64_t again) {
    uint64_t hash = at_hash_bytes(v->family, strlen(v->family), c->hash);
    hash = at_hash_bytes(v->name, strlen(v->name), hash);
    return again < 2 || hash % (uint64_t)again == 0;
}

static int is_host(const struct at_variant *v) {
    const size_t n = strlen(v->path);
    return n > 2 && strcmp(v->path + n - 2, ".c") == 0 && !v->asked; /* a dispatcher's kernels are device code */
}

static int is_of_8_bits(enum at_format f) { return f == AT_E4M3 || f == AT_E5M2; }

/* What the unit wants of the type of q and k; 1 for units that are no tensor core's. */
static int takes_type(enum at_unit unit, enum at_format dtype) {
    switch (unit) {
    case AT_UNIT_TC_F32:
        return dtype == AT_F16 || dtype == AT_BF16;
    case AT_UNIT_TC_F16:
        return dtype == AT_F16;
    case AT_UNIT_TC_FP8:
    case AT_UNIT_TC_FP8_ADA:
    case AT_UNIT_TC_FP8_BY_F16:
    case AT_UNIT_TC_FP8_BY_F16_F16:
        return is_of_8_bits(dtype);
    case AT_UNIT_TC_TF32:
    case AT_UNIT_TC_TF32_RNA:
        return dtype == AT_F32;
    default:
        return 1;
    }
}

static int is_tensor_core(enum at_unit unit) { return !takes_type(unit, AT_F64); }

/* Both operands of a tensor core have one type, but for tf32, which P may be beside f32: a kernel that declares others declines the
 * case. */
static int declines(const struct at_numerics *declared, enum at_format dtype) {
    const struct at_numerics n = at_numerics_on(declared, dtype);
    const int is_tf32 = n.pv_unit == AT_UNIT_TC_TF32 || n.pv_unit == AT_UNIT_TC_TF32_RNA;
    return !takes_type(n.qk_unit, dtype) || !takes_type(n.pv_unit, dtype) ||
           (is_tensor_core(n.pv_unit) && !is_tf32 && n.p != (int)dtype);
}

/* What costs follow from. */
struct amount {
    double work, rows, outputs; /* multiply-adds, rows, elements of outputs */
    enum at_format dtype;
    int decode;
};

static struct amount amount_of(const struct at_problem *p, int decode) {
    struct amount a = { .rows = (double)p->op->rows(p), .dtype = p->dtype, .decode = decode };
    for (int64_t row = 0; row < p->op->rows(p); row++)
        a.work += p->op->row_work(p, row);
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_IN)
            a.outputs += (double)at_tensor_count(&p->tensors[t]);
    return a;
}

static double launch_cost(const struct amount *a, const struct at_variant *v) {
    const double outputs = LAUNCH_OUTPUT * a->outputs;
    if (a->decode)
        return outputs + LAUNCH_WORK * a->work + DECODE_ROW * a->rows;
    return outputs + (is_tensor_core(v->numerics.qk_unit) ? TILES_ROOT * sqrt(a->work) : LAUNCH_WORK * a->work);
}

static double job_cost(const struct amount *a, const struct at_variant *v, int again) {
    if (is_host(v))
        return A_JOB + OUTPUT * a->outputs + HOST_WORK * a->work;
    if (declines(&v->numerics, a->dtype))
        return A_DECLINED;
    return A_JOB + OUTPUT * a->outputs + launch_cost(a, v) * (again ? LAUNCHES : 1);
}

at_status at_plan_cost_make(const struct at_plan_case *item, const struct at_runner *runner, int64_t again,
                            struct at_plan_cost *cost) {
    struct at_case_data data = { 0 };
    const double bytes = (double)at_case_bytes(item->c);
    struct amount a = { .work = bytes, .rows = 1, .outputs = bytes, .dtype = AT_F16 };
    if (at_case_outline(item->c, &data) == AT_OK)
        a = amount_of(&data.problem, item->c->family->decode);
    at_case_data_release(&data);
    *cost = (struct at_plan_cost){ .shared = A_CASE + OUTPUT * a.outputs + CASE_WORK * a.work };
    cost->variant = calloc((size_t)item->n_variants + 1, sizeof *cost->variant);
    if (!cost->variant)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the costs of a plan");
    for (int i = 0; i < item->n_variants; i++) {
        const struct at_variant *v = at_runner_variant(runner, item->variants[i]);
        cost->variant[i] = job_cost(&a, v, at_is_launched_again(item->c, v, again));
    }
    return AT_OK;
}

void at_plan_cost_release(struct at_plan_cost *cost) {
    free(cost->variant);
    cost->variant = NULL;
}
