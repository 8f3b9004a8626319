/* Cutting a problem into blocks, and a thread's memory for them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fast/block.h"

#include <stdlib.h>
#include <string.h>

static int64_t keys_of(const struct at_problem *problem, int64_t request) {
    return at_tensor_i32(&problem->tensors[AT_ATTN_SEQ_LENS], request);
}

static int64_t queries_of(const struct at_problem *problem, int64_t request) {
    const struct at_tensor *start = &problem->tensors[AT_ATTN_QUERY_START];
    return (int64_t)at_tensor_i32(start, request + 1) - at_tensor_i32(start, request);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t at_fast_stride(int64_t keys) { return ((keys + 7) / 8 | 1) * 8; }

struct at_fast_cut at_fast_cut(const struct at_problem *problem, int64_t request) {
    const int64_t keys = keys_of(problem, request), queries = queries_of(problem, request);
    const int64_t group = problem->sizes.h / problem->sizes.hk;
    const int64_t rows = most(1, least(AT_FAST_ROWS, AT_FAST_SCORES / most(keys, 1)));
    struct at_fast_cut cut;
    cut.heads = rows >= group ? group : 1;
    cut.queries = most(1, least(queries, rows / cut.heads));
    cut.query_blocks = (queries + cut.queries - 1) / cut.queries;
    cut.head_blocks = problem->sizes.hk * (group / cut.heads);
    cut.blocks = cut.query_blocks * cut.head_blocks;
    cut.stride = at_fast_stride(keys);
    cut.rows = cut.queries * cut.heads;
    return cut;
}

struct at_fast_block at_fast_block_at(const struct at_problem *problem, int64_t request, int64_t i) {
    const struct at_fast_cut cut = at_fast_cut(problem, request);
    const int64_t h = problem->sizes.h, group = h / problem->sizes.hk;
    const int64_t start = at_tensor_i32(&problem->tensors[AT_ATTN_QUERY_START], request);
    struct at_fast_block block = { .request = request, .heads = cut.heads };
    block.first_query = i % cut.query_blocks * cut.queries;
    block.queries = least(cut.queries, queries_of(problem, request) - block.first_query);
    block.first_head = i / cut.query_blocks * cut.heads;
    block.kv_head = block.first_head / group;
    block.rows = block.queries * block.heads;
    int64_t token = start + block.first_query;
    block.shared = at_attn_row(problem, token * h + block.first_head).visible;
    block.keys = at_attn_row(problem, (token + block.queries - 1) * h + block.first_head).visible;
    return block;
}

/* Largest products of the cuts of all requests. */
struct extent {
    int64_t rows, stride, scores;
};

static struct extent extent_of(const struct at_problem *problem) {
    struct extent e = { 0, 0, 0 };
    for (int64_t r = 0; r < problem->sizes.b; r++) {
        struct at_fast_cut cut = at_fast_cut(problem, r);
        if (cut.blocks == 0)
            continue;
        e.rows = most(e.rows, cut.rows);
        e.stride = most(e.stride, cut.stride);
        e.scores = most(e.scores, cut.rows * cut.stride);
    }
    return e;
}

/* Places every array in `base`, or only counts when base is NULL; gives the number of doubles. */
static int64_t place(struct at_fast_work *work, struct extent e, double *base) {
    const int64_t d = work->problem->sizes.d, panel = least(AT_FAST_PANEL, e.stride) * d;
    const int64_t extra = work->limits ? 1 : 0;
    struct {
        double **array;
        int64_t count;
    } parts[] = {
        { &work->q, e.rows * d },
        { &work->panel, panel },
        { &work->first, e.scores },
        { &work->s, e.stride },
        { &work->z, e.stride },
        { &work->p, e.stride },
        { &work->o, e.rows * d },
        { &work->dp, extra * e.stride },
        { &work->k_abs, extra * e.stride },
        { &work->q_abs, extra * e.rows * d },
        { &work->panel_abs, extra * panel },
        { &work->second, extra * e.scores },
        { &work->abs_sum, extra * e.rows * d },
        { &work->err_sum, extra * e.rows * d },
        { &work->v_sum, extra * d },
        { &work->v_top, extra * d },
    };
    int64_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (base)
            *parts[i].array = base + used;
        used += (parts[i].count + 7) / 8 * 8;
    }
    return used;
}

int64_t at_fast_work_bytes(const struct at_problem *problem, int limits) {
    struct at_fast_work work = { .problem = problem, .limits = limits };
    struct extent e = extent_of(problem);
    return place(&work, e, NULL) * (int64_t)sizeof(double) + e.rows * (int64_t)sizeof *work.row;
}

at_status at_fast_work_init(const struct at_problem *problem, int limits, struct at_fast_work *work) {
    struct extent e = extent_of(problem);
    *work = (struct at_fast_work){ .problem = problem, .limits = limits };
    size_t doubles = (size_t)place(work, e, NULL);
    work->memory = malloc((doubles + 1) * sizeof(double));
    work->row = malloc(((size_t)e.rows + 1) * sizeof *work->row);
    if (!work->memory || !work->row) {
        at_fast_work_release(work);
        return AT_FAIL(AT_NO_MEMORY, "no memory for a block of %lld rows and %lld keys", (long long)e.rows,
                       (long long)e.stride);
    }
    place(work, e, work->memory);
    return AT_OK;
}

void at_fast_work_release(struct at_fast_work *work) {
    free(work->memory);
    free(work->row);
    work->memory = NULL;
    work->row = NULL;
}

void at_fast_put_row(const struct at_fast_work *work, double *matrix, int64_t i, int64_t n, const double *values) {
    double *row = matrix + i * work->stride;
    if (values != row)
        memcpy(row, values, (size_t)n * sizeof *row);
    memset(row + n, 0, (size_t)(work->block.keys - n) * sizeof *row);
}
