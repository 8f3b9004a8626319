/* Guard bands, marks, checksums: what a launch may not touch, and what it must write.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"

static int64_t bytes_of(const struct at_tensor *t) {
    int64_t bytes = t->rank ? (int64_t)at_format_info(t->format)->bytes : 0;
    for (int i = 0; i < t->rank; i++)
        bytes *= t->shape[i];
    return bytes;
}

static at_status place(struct at_runner *runner, const struct at_problem *problem, uint64_t seed,
                       struct at_problem *placed, struct at_buffer *buffer) {
    int n = problem->op->n_tensors, index;
    int64_t bytes[AT_MAX_TENSORS] = { 0 };
    uint8_t *base;
    for (int t = 0; t < n; t++)
        bytes[t] = bytes_of(&problem->tensors[t]);
    int64_t need = at_buffer_need(n, bytes);
    AT_TRY(at_runner_memory(runner, need, &base));
    at_buffer_init(buffer, base, need, seed);
    *placed = *problem;
    for (int t = 0; t < n; t++) {
        struct at_tensor *to = &placed->tensors[t];
        AT_TRY(at_buffer_place(buffer, bytes[t], &index, &to->data));
        if (problem->op->tensors[t].role == AT_OUT)
            at_mark_fill(to, seed);
        else if (bytes[t])
            memcpy(to->data, problem->tensors[t].data, (size_t)bytes[t]);
        if (bytes[t] == 0)
            to->data = NULL; /* a tensor the problem does not have */
    }
    return AT_OK;
}

/* Findings name the tensor and the place; the first one of each tensor is kept. */
static void check_hygiene(const struct at_problem *placed, const struct at_buffer *buffer, uint64_t seed,
                          struct at_outputs *out) {
    const struct at_op *op = placed->op;
    int index;
    int64_t distance, first;
    if (at_buffer_damaged(buffer, &index, &distance)) {
        int64_t size = (int64_t)at_format_info(placed->tensors[index].format)->bytes;
        snprintf(out->dirty[index], sizeof out->dirty[index], "wrote %s tensor %s: byte %lld %s its %s (element %+lld)",
                 distance < 0 ? "before" : "past", op->tensors[index].name,
                 (long long)(distance < 0 ? -distance : distance), distance < 0 ? "before" : "past",
                 distance < 0 ? "start" : "end", (long long)(distance / size));
        out->is_dirty = 1;
    }
    for (int t = 0; t < op->n_tensors; t++) {
        const struct at_tensor *tensor = &placed->tensors[t];
        if (out->dirty[t][0] || !tensor->data)
            continue;
        if (op->tensors[t].role == AT_IN && at_buffer_changed(buffer, t)) {
            snprintf(out->dirty[t], sizeof out->dirty[t], "changed its input %s", op->tensors[t].name);
            out->is_dirty = 1;
        } else if (op->tensors[t].role == AT_OUT) {
            int64_t left = at_mark_count(tensor, seed, &first);
            if (left) {
                snprintf(out->dirty[t], sizeof out->dirty[t],
                         "left %lld of %lld elements of %s unwritten, the first at index %lld", (long long)left,
                         (long long)at_tensor_count(tensor), op->tensors[t].name, (long long)first);
                out->is_dirty = 1;
            }
        }
    }
}

static at_status copy_outputs(const struct at_problem *placed, struct at_outputs *out) {
    for (int t = 0; t < placed->op->n_tensors; t++) {
        if (placed->op->tensors[t].role == AT_IN)
            continue;
        out->tensors[t] = placed->tensors[t];
        int64_t bytes = bytes_of(&placed->tensors[t]);
        out->tensors[t].data = calloc(1, (size_t)bytes + 1);
        if (!out->tensors[t].data)
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld bytes of output", (long long)bytes);
        if (placed->tensors[t].data)
            memcpy(out->tensors[t].data, placed->tensors[t].data, (size_t)bytes);
    }
    return AT_OK;
}

at_status at_guarded_launch(struct at_runner *runner, int variant, const struct at_problem *problem,
                            enum at_poison_turn turn, const struct at_run_mode *mode, uint64_t seed, double timeout,
                            struct at_run_reply *reply, struct at_outputs *outputs) {
    struct at_problem placed;
    struct at_buffer buffer;
    const enum at_tail tail = (enum at_tail)at_runner_variant(runner, variant)->numerics.tail;
    memset(outputs, 0, sizeof *outputs);
    AT_TRY(place(runner, problem, seed, &placed, &buffer));
    AT_TRY(at_poison_unowned(&placed, tail, turn, seed));
    for (int t = 0; t < problem->op->n_tensors; t++)
        if (problem->op->tensors[t].role == AT_IN)
            at_buffer_seal(&buffer, t);
    AT_TRY(at_runner_run(runner, variant, &placed, buffer.used, mode, at_time_limit(timeout), reply));
    if (reply->outcome != AT_RAN)
        return AT_OK;
    check_hygiene(&placed, &buffer, seed, outputs);
    return copy_outputs(&placed, outputs);
}

at_status at_ask(struct at_runner *runner, int variant, const struct at_problem *problem, struct at_run_reply *reply) {
    static const double SECONDS = 100;
    const struct at_run_mode mode = { .ask = 1 };
    struct at_problem placed;
    struct at_buffer buffer;
    AT_TRY(place(runner, problem, 1, &placed, &buffer));
    return at_runner_run(runner, variant, &placed, buffer.used, &mode, at_time_limit(SECONDS), reply);
}

void at_outputs_release(struct at_outputs *outputs) {
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(outputs->tensors[t].data);
    memset(outputs, 0, sizeof *outputs);
}
