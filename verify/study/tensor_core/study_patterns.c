/* Patterns through the model and through a runner.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "attest/env.h"
#include "verify/runner/launch.h"
#include "verify/study/tensor_core/study_tensor_core.h"

enum { TIMEOUT_SECONDS = 300 };

static uint32_t word_of(double x) {
    const float value = (float)x; /* every result is a value of f32 */
    uint32_t bits = 0x7fffffffu;
    if (!isnan(x))
        memcpy(&bits, &value, sizeof bits);
    return bits;
}

void at_tc_study_digest(const double *values, int64_t n, struct at_tc_study_row *row) {
    uint64_t hash = AT_HASH_START;
    memset(row->first, 0, sizeof row->first);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t word = word_of(values[i]);
        hash = at_hash_bytes(&word, sizeof word, hash);
        if (i < (int64_t)(sizeof row->first / sizeof *row->first))
            row->first[i] = word;
    }
    row->hash = hash;
}

struct chunks {
    struct at_tc_study_row *row;
    int neighbours;
    double *values;
    pthread_mutex_t merge;
};

static at_status model_chunk(void *context, int64_t begin, int64_t end, int worker) {
    struct chunks *w = context;
    const struct at_tc_instruction *t = w->row->instruction;
    const struct at_tc_target target = at_tc_target_of(t);
    struct at_tc_rule near[AT_TC_NEIGHBOURS];
    int64_t different[AT_TC_NEIGHBOURS] = { 0 };
    int can[AT_TC_NEIGHBOURS];
    (void)worker;
    for (int k = 0; k < AT_TC_NEIGHBOURS; k++)
        can[k] = at_tc_neighbour_of(t, (enum at_tc_neighbour)k, &near[k]) && w->neighbours;
    for (int64_t i = begin; i < end; i++) {
        uint32_t a[AT_TC_BLOCK_MAX], b[AT_TC_BLOCK_MAX];
        double x[AT_TC_BLOCK_MAX], y[AT_TC_BLOCK_MAX], c;
        at_tc_pattern(&target, w->row->stratum, w->row->seed, i, t->k, a, b, &c);
        for (int k = 0; k < t->k; k++) {
            x[k] = at_decode(t->a, a[k]);
            y[k] = at_decode(t->b, b[k]);
        }
        w->values[i] = at_tc_multiply_add(t, NULL, x, y, c);
        for (int k = 0; k < AT_TC_NEIGHBOURS; k++)
            different[k] += can[k] && word_of(at_tc_multiply_add(t, &near[k], x, y, c)) != word_of(w->values[i]);
    }
    pthread_mutex_lock(&w->merge);
    for (int k = 0; k < AT_TC_NEIGHBOURS; k++)
        w->row->neighbour[k] = can[k] ? w->row->neighbour[k] + different[k] : -1;
    pthread_mutex_unlock(&w->merge);
    return AT_OK;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the chunks write values */
at_status at_tc_study_model(struct at_tc_study_row *row, int neighbours, int threads, double *values) {
    struct chunks w = { row, neighbours, values, PTHREAD_MUTEX_INITIALIZER };
    memset(row->neighbour, 0, sizeof row->neighbour);
    at_status status = at_parallel(row->patterns, 1024, threads, model_chunk, &w);
    pthread_mutex_destroy(&w.merge);
    return status;
}

/* ---- launches ---- */

static void describe(const struct at_tc_instruction *t, int64_t patterns, struct at_problem *p) {
    at_problem_init(p, at_op_find("dot_product_add"), AT_F32);
    p->sizes.tokens = patterns;
    p->sizes.channels = t->k;
    at_scalar_set(p, at_op_scalar(p->op, "instruction"), (double)(t - at_tc_instruction_at(0)));
    at_problem_shape(p);
}

at_status at_tc_study_launch(struct at_runner *runner, int variant, const struct at_tc_instruction *t, int64_t patterns,
                             uint32_t *a, uint32_t *b, float *c, float *d) {
    struct at_problem p;
    struct at_run_reply reply;
    struct at_outputs outputs;
    at_status status = AT_OK;
    describe(t, patterns, &p);
    p.tensors[at_op_tensor_index(p.op, "a")].data = a;
    p.tensors[at_op_tensor_index(p.op, "b")].data = b;
    p.tensors[at_op_tensor_index(p.op, "c")].data = c;
    AT_TRY(p.op->check(&p));
    AT_TRY(at_guarded_launch(runner, variant, &p, AT_POISON_JUDGED, NULL, 1, TIMEOUT_SECONDS, &reply, &outputs));
    if (reply.outcome == AT_RUN_UNSUPPORTED)
        AT_FAIL_OUT(AT_UNSUPPORTED, "%s: %s", t->name, reply.reason);
    if (reply.outcome != AT_RAN)
        AT_FAIL_OUT(AT_PROTOCOL, "%s: %s", t->name, reply.reason);
    for (int i = 0; i < p.op->n_tensors; i++)
        if (outputs.dirty[i][0])
            AT_FAIL_OUT(AT_PROTOCOL, "%s: %s", t->name, outputs.dirty[i]);
    if (patterns > 0)
        memcpy(d, outputs.tensors[at_op_tensor_index(p.op, "d")].data, (size_t)patterns * sizeof *d);
out:
    at_outputs_release(&outputs);
    return status;
}

struct question {
    const struct at_tc_instruction *instruction;
    int variant;
};

static at_status ask(void *context, int64_t i, struct at_runner *runner) {
    struct question *q = context;
    uint32_t zeros[AT_TC_BLOCK_MAX] = { 0 };
    float c = 0, d;
    (void)i;
    for (int k = 0; k < at_runner_variant_count(runner); k++) {
        const struct at_variant *v = at_runner_variant(runner, k);
        if (strcmp(v->family, "tensor_core") != 0)
            continue;
        const at_status status = at_tc_study_launch(runner, k, q->instruction, 1, zeros, zeros, &c, &d);
        if (status == AT_CRASHED || status == AT_HUNG || status == AT_ENVIRONMENT)
            return status;
        if (status == AT_OK) {
            q->variant = k;
            return AT_OK;
        }
        if (status != AT_UNSUPPORTED)
            fprintf(stderr, "attest: %s/%s is left out: %s\n", v->family, v->name, at_error_message());
    }
    return AT_OK;
}

at_status at_tc_study_variant(struct at_study_devices *devices, const struct at_tc_instruction *t, int *variant) {
    struct question q = { t, -1 };
    const at_status status = at_study_devices_run(devices, 1, ask, &q);
    *variant = q.variant;
    return status;
}
