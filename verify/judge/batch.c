/* Gathering units of a problem into a smaller or reordered one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/batch.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/fill/pool.h"

int64_t at_batch_units(const struct at_problem *p) {
    return p->op->batch == AT_DIM_NONE ? 0 : at_dim_size(p, p->op->batch);
}

void at_batch_rows(const struct at_problem *p, int64_t u, int64_t *first, int64_t *count) {
    if (p->op->unit_rows) {
        p->op->unit_rows(p, u, first, count);
        return;
    }
    *first = u;
    *count = 1;
}

/* Tensors are placed one after another in one block, each on a 64-byte boundary. */
static at_status place_inputs(const struct at_problem *p, struct at_batch_part *part) {
    int64_t total = 0, offset[AT_MAX_TENSORS];
    for (int t = 0; t < p->op->n_tensors; t++) {
        struct at_tensor *dst = &part->problem.tensors[t];
        dst->data = NULL;
        offset[t] = total;
        if (p->op->tensors[t].role == AT_OUT || dst->rank == 0 || at_pool_is_large(p, t))
            continue;
        int64_t bytes = (int64_t)at_format_info(dst->format)->bytes;
        for (int i = 0; i < dst->rank; i++)
            bytes *= dst->shape[i];
        total += (bytes + 63) / 64 * 64 + 64;
    }
    part->memory = calloc(1, (size_t)total + 64);
    if (!part->memory)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a batch of %lld units", (long long)part->n);
    for (int t = 0; t < p->op->n_tensors; t++)
        if (at_pool_is_large(p, t)) /* shared: paged keys stay where they are */
            part->problem.tensors[t].data = p->tensors[t].data;
        else if (p->op->tensors[t].role != AT_OUT && part->problem.tensors[t].rank)
            part->problem.tensors[t].data = (char *)part->memory + offset[t];
    return AT_OK;
}

/* By the rule: places along the batch's dimension, or the whole tensor. */
static void gather(const struct at_problem *p, int t, struct at_batch_part *part) {
    struct at_tensor *to = &part->problem.tensors[t];
    if (p->op->tensors[t].dims[0] != p->op->batch) {
        memcpy(to->data, p->tensors[t].data, (size_t)at_tensor_bytes(&p->tensors[t]));
        return;
    }
    for (int64_t i = 0; i < part->n; i++)
        at_tensor_copy_rows(to, i, &p->tensors[t], part->requests[i], 1);
}

at_status at_batch_gather(const struct at_problem *p, const int64_t *units, int64_t n, struct at_batch_part *part) {
    at_status status = AT_OK;
    memset(part, 0, sizeof *part);
    part->problem = *p;
    part->n = n;
    part->requests = malloc(((size_t)n + 1) * sizeof *part->requests);
    if (!part->requests)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a batch of %lld units", (long long)n);
    memcpy(part->requests, units, (size_t)n * sizeof *units);
    if (p->op->part_sizes)
        p->op->part_sizes(p, units, n, &part->problem);
    else
        at_dim_set(&part->problem, p->op->batch, n);
    at_problem_shape(&part->problem);
    AT_TRY_OUT(place_inputs(p, part));
    const unsigned filled = p->op->part_fill ? p->op->part_fill(p, units, n, &part->problem) : 0;
    for (int t = 0; t < p->op->n_tensors; t++)
        if (part->problem.tensors[t].data && !(filled >> t & 1) && !at_pool_is_large(p, t))
            gather(p, t, part);
out:
    if (status != AT_OK)
        at_batch_release(part);
    return status;
}

void at_batch_release(struct at_batch_part *part) {
    free(part->memory);
    free(part->requests);
    memset(part, 0, sizeof *part);
}
