/* Guard bands, marks, checksums: what a launch may not touch, and what it must write.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "datasets/fill/pool.h"

static int64_t bytes_of(const struct at_tensor *t) {
    int64_t bytes = t->rank ? (int64_t)at_format_info(t->format)->bytes : 0;
    for (int i = 0; i < t->rank; i++)
        bytes *= t->shape[i];
    return bytes;
}

/* Calls each(context, bytes, n) for the bytes of tensor t at `data` that are worth touching. */
static at_status each_part(const struct at_problem *problem, int t, const uint8_t *data,
                           void (*each)(void *context, const uint8_t *bytes, size_t n), void *context) {
    const int64_t row =
        problem->sizes.hk * problem->sizes.d * (int64_t)at_format_info(problem->tensors[t].format)->bytes;
    struct at_pool_span *spans;
    int64_t n;
    AT_TRY(at_pool_spans(problem, &spans, &n));
    for (int64_t i = 0; i < n; i++)
        each(context, data + spans[i].first * row, (size_t)((spans[i].end - spans[i].first) * row));
    free(spans);
    return AT_OK;
}

struct copy {
    const uint8_t *from;
    uint8_t *to;
};

static void copy_part(void *context, const uint8_t *bytes, size_t n) {
    const struct copy *copy = context;
    memcpy(copy->to + (bytes - copy->from), bytes, n);
}

static at_status copy_input(const struct at_problem *problem, int t, int64_t bytes, void *to) {
    struct copy copy = { problem->tensors[t].data, to };
    if (at_pool_is_large(problem, t))
        return each_part(problem, t, copy.from, copy_part, &copy);
    memcpy(to, copy.from, (size_t)bytes);
    return AT_OK;
}

static void hash_part(void *context, const uint8_t *bytes, size_t n) {
    uint64_t *hash = context;
    *hash = at_hash_bytes(bytes, n, *hash);
}

/* Of a large pool's parts, where the block's own checksum would read all of it. */
static at_status hash_pool(const struct at_problem *placed, int t, uint64_t *hash) {
    *hash = AT_HASH_START;
    return each_part(placed, t, placed->tensors[t].data, hash_part, hash);
}

/* Bytes before the tensors of a launch elsewhere, which hold NaN in every format: all that a launch of the same problem
 * used, so that what was kept of its addresses leads there, or where that is a lot so much that no tensor lies as it did.
 * No multiple of 4096, so that other bits of addresses change too. */
static int64_t gap_of(int64_t need) {
    enum { GAP_MAX = 64 << 20, MORE = 3 * AT_BUFFER_ALIGN };
    return (need < GAP_MAX ? need : GAP_MAX) / AT_BUFFER_ALIGN * AT_BUFFER_ALIGN + AT_BUFFER_ALIGN + MORE;
}
enum { LEFT_BEHIND = 0xff };
/* Guard bytes behind all tensors, which travel with the block: a kernel that takes what follows its output for a workspace
 * strays by pages, past any band. */
enum { FENCE_BYTES = 16 << 10 };

/* Keeps what must still be there when the block is needed again: outputs as they are now, and all bands. */
static void leave(struct at_runner *runner, int variant, const struct at_problem *placed,
                  const struct at_buffer *buffer) {
    struct at_left *left = at_runner_left(runner);
    *left = (struct at_left){ .variant = variant, .buffer = *buffer };
    for (int t = 0; t < placed->op->n_tensors; t++)
        if (placed->op->tensors[t].role != AT_IN && placed->tensors[t].data) {
            at_buffer_seal(&left->buffer, t);
            left->outputs |= 1u << t;
        }
}

int at_written_after_answer(struct at_runner *runner, int variant, char *text, size_t size) {
    struct at_left *left = at_runner_left(runner);
    const int whose = left->variant;
    int index;
    int64_t distance;
    left->variant = -1;
    if (whose < 0 || whose != variant)
        return 0;
    if (at_buffer_damaged(&left->buffer, &index, &distance)) {
        snprintf(text, size, "wrote outside its tensors after its answer had been given");
        return 1;
    }
    for (int i = 0; i < left->buffer.n; i++)
        if (left->outputs >> i & 1 && at_buffer_changed(&left->buffer, i)) {
            snprintf(text, size, "wrote to its outputs after its answer had been given");
            return 1;
        }
    return 0;
}

/* A finding of the launch before, which only now shows, is this one's: both are of the same job. */
static void check_left(struct at_runner *runner, int variant, const struct at_op *op, struct at_outputs *out) {
    int t = 0;
    while (op->tensors[t].role == AT_IN)
        t++;
    out->is_dirty |= at_written_after_answer(runner, variant, out->dirty[t], sizeof out->dirty[t]);
}

static at_status place(struct at_runner *runner, const struct at_problem *problem, int elsewhere, uint64_t seed,
                       struct at_problem *placed, struct at_buffer *buffer, int64_t *gap) {
    int n = problem->op->n_tensors, index;
    int64_t bytes[AT_MAX_TENSORS] = { 0 };
    uint8_t *base;
    for (int t = 0; t < n; t++)
        bytes[t] = bytes_of(&problem->tensors[t]);
    int64_t need = at_buffer_need(n, bytes) + FENCE_BYTES;
    *gap = elsewhere ? gap_of(need) : 0;
    AT_TRY(at_runner_memory(runner, gap_of(need) + need, &base)); /* now: growing it later would move the block */
    memset(base, LEFT_BEHIND, (size_t)*gap);
    at_buffer_init(buffer, base + *gap, need, seed);
    *placed = *problem;
    for (int t = 0; t < n; t++) {
        struct at_tensor *to = &placed->tensors[t];
        AT_TRY(at_buffer_place(buffer, bytes[t], &index, &to->data));
        if (problem->op->tensors[t].role == AT_OUT)
            at_mark_fill(to, seed);
        else if (bytes[t])
            AT_TRY(copy_input(problem, t, bytes[t], to->data));
        if (bytes[t] == 0)
            to->data = NULL; /* a tensor the problem does not have */
    }
    AT_TRY(at_buffer_fence(buffer, FENCE_BYTES));
    return AT_OK;
}

/* Elements that still hold the mark. Where the operator copies, an element that is due to hold it is none of them: inputs
 * of any bits may. Of another launch's mark it would be. */
static int64_t left_unwritten(const struct at_problem *placed, const struct at_tensor *tensor, int t, uint64_t seed,
                              int64_t *first) {
    const int64_t all = at_mark_count(tensor, seed, first), n = at_tensor_count(tensor);
    if (!all || !placed->op->bits)
        return all;
    const uint64_t mark = at_mark_code(tensor->format, seed);
    void *due = calloc((size_t)n + 1, at_format_info(tensor->format)->bytes);
    unsigned char *computed = calloc((size_t)n + 1, 1);
    int64_t left = due && computed ? 0 : all;
    if (due && computed)
        placed->op->bits(placed, t, due, computed);
    for (int64_t i = 0; due && computed && i < n; i++)
        if (at_load_code(tensor->format, tensor->data, (size_t)i) == mark &&
            (computed[i] || at_load_code(tensor->format, due, (size_t)i) != mark) && left++ == 0)
            *first = i;
    free(due);
    free(computed);
    return left;
}

/* Findings name the tensor and the place; the first one of each tensor is kept. */
static void check_hygiene(const struct at_problem *placed, const struct at_buffer *buffer, uint64_t seed,
                          const uint64_t *hashes, struct at_outputs *out) {
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
        uint64_t hash = 0;
        const int changed = op->tensors[t].role != AT_IN  ? 0
                            : at_pool_is_large(placed, t) ? hash_pool(placed, t, &hash) != AT_OK || hash != hashes[t]
                                                          : at_buffer_changed(buffer, t);
        if (changed) {
            snprintf(out->dirty[t], sizeof out->dirty[t], "changed its input %s", op->tensors[t].name);
            out->is_dirty = 1;
        } else if (op->tensors[t].role == AT_OUT) {
            int64_t left = left_unwritten(placed, &out->tensors[t], t, seed, &first);
            if (left) {
                snprintf(out->dirty[t], sizeof out->dirty[t],
                         "left %lld of %lld elements of %s unwritten, the first at index %lld", (long long)left,
                         (long long)at_tensor_count(tensor), op->tensors[t].name, (long long)first);
                out->is_dirty = 1;
            }
        }
    }
}

/* A write to where a launch before had its tensors. */
static void check_gap(const struct at_problem *placed, const struct at_buffer *buffer, int64_t gap,
                      struct at_outputs *out) {
    const uint8_t *base = buffer->base - gap;
    int64_t at = 0;
    int t = 0;
    while (at < gap && base[at] == LEFT_BEHIND)
        at++;
    while (placed->op->tensors[t].role == AT_IN)
        t++;
    if (at == gap || out->dirty[t][0])
        return;
    snprintf(out->dirty[t], sizeof out->dirty[t], "wrote to where a launch before had its tensors (byte %lld)",
             (long long)at);
    out->is_dirty = 1;
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

static at_status launch(struct at_runner *runner, int variant, const struct at_problem *problem, int elsewhere,
                        enum at_poison_turn turn, const struct at_run_mode *mode, uint64_t seed, double timeout,
                        struct at_run_reply *reply, struct at_outputs *outputs) {
    struct at_problem placed;
    struct at_buffer buffer;
    int64_t gap;
    uint64_t hashes[AT_MAX_TENSORS] = { 0 };
    struct at_numerics declared;
    memset(outputs, 0, sizeof *outputs);
    check_left(runner, variant, problem->op, outputs);
    AT_TRY(at_declared_on(runner, variant, problem, &declared));
    AT_TRY(place(runner, problem, elsewhere, seed, &placed, &buffer, &gap));
    AT_TRY(at_poison_unowned(&placed, (enum at_tail)declared.tail, turn, seed));
    for (int t = 0; t < problem->op->n_tensors; t++)
        if (at_pool_is_large(problem, t))
            AT_TRY(hash_pool(&placed, t, &hashes[t]));
        else if (problem->op->tensors[t].role == AT_IN)
            at_buffer_seal(&buffer, t);
    AT_TRY(at_runner_run(runner, variant, &placed, gap + buffer.used, mode, at_time_limit(timeout), reply));
    if (reply->outcome != AT_RAN)
        return AT_OK;
    /* The copy first: what is looked for below and what is judged is then one and the same, whatever is still written. */
    AT_TRY(copy_outputs(&placed, outputs));
    check_hygiene(&placed, &buffer, seed, hashes, outputs);
    check_gap(&placed, &buffer, gap, outputs);
    if (!outputs->is_dirty)
        leave(runner, variant, &placed, &buffer);
    return AT_OK;
}

at_status at_guarded_launch(struct at_runner *runner, int variant, const struct at_problem *problem,
                            enum at_poison_turn turn, const struct at_run_mode *mode, uint64_t seed, double timeout,
                            struct at_run_reply *reply, struct at_outputs *outputs) {
    return launch(runner, variant, problem, 0, turn, mode, seed, timeout, reply, outputs);
}

at_status at_guarded_launch_elsewhere(struct at_runner *runner, int variant, const struct at_problem *problem,
                                      enum at_poison_turn turn, const struct at_run_mode *mode, uint64_t seed,
                                      double timeout, struct at_run_reply *reply, struct at_outputs *outputs) {
    return launch(runner, variant, problem, 1, turn, mode, seed, timeout, reply, outputs);
}

static const double QUESTION_SECONDS = 100;

static at_status question(struct at_runner *runner, int variant, const struct at_problem *problem,
                          const struct at_run_mode *mode, struct at_run_reply *reply) {
    struct at_problem placed;
    struct at_buffer buffer;
    int64_t gap;
    AT_TRY(place(runner, problem, 0, 1, &placed, &buffer, &gap));
    return at_runner_run(runner, variant, &placed, buffer.used, mode, at_time_limit(QUESTION_SECONDS), reply);
}

at_status at_ask(struct at_runner *runner, int variant, const struct at_problem *problem, int *takes) {
    const struct at_run_mode mode = { .ask = 1 };
    struct at_run_reply reply;
    AT_TRY(question(runner, variant, problem, &mode, &reply));
    *takes = reply.outcome != AT_RUN_UNSUPPORTED;
    return AT_OK;
}

at_status at_ask_all(struct at_runner *runner, const int *variants, int n, const struct at_problem *problem,
                     uint64_t *takes) {
    struct at_problem placed;
    struct at_buffer buffer;
    struct at_run_reply *replies = calloc((size_t)n + 1, sizeof *replies);
    int64_t gap;
    at_status status = AT_OK;
    *takes = 0;
    if (!replies)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d replies", n);
    AT_TRY_OUT(place(runner, problem, 0, 1, &placed, &buffer, &gap));
    AT_TRY_OUT(at_runner_ask(runner, variants, n, &placed, buffer.used, at_time_limit(QUESTION_SECONDS * n), replies));
    for (int i = 0; i < n; i++)
        *takes |= (uint64_t)(replies[i].outcome != AT_RUN_UNSUPPORTED) << i;
out:
    free(replies);
    return status;
}

/* A problem as a question shows it: all but values that are no lengths, places or other whole numbers. */
static uint64_t question_of(const struct at_problem *problem) {
    uint64_t hash = at_hash_bytes(problem->op->name, strlen(problem->op->name), AT_HASH_START);
    hash = at_hash_bytes(&problem->dtype, sizeof problem->dtype, hash);
    hash = at_hash_bytes(&problem->sizes, sizeof problem->sizes, hash);
    hash = at_hash_bytes(&problem->params, sizeof problem->params, hash);
    hash = at_hash_bytes(problem->own, sizeof problem->own, hash);
    for (int t = 0; t < problem->op->n_tensors; t++) {
        const struct at_tensor *tensor = &problem->tensors[t];
        const int64_t is[] = { (int64_t)tensor->format, tensor->rank };
        hash = at_hash_bytes(is, sizeof is, hash);
        hash = at_hash_bytes(tensor->shape, (size_t)tensor->rank * sizeof *tensor->shape, hash);
        if (tensor->format == AT_I32 && problem->op->tensors[t].role == AT_IN && tensor->data)
            hash = at_hash_bytes(tensor->data, (size_t)bytes_of(tensor), hash);
    }
    return hash;
}

static void clear_part(void *context, const uint8_t *bytes, size_t n) {
    const struct copy *copy = context;
    memset(copy->to + (bytes - copy->from), 0, n);
}

/* Zeros for values; of a large pool's in the parts that are in use, the others were never written. */
static at_status clear_values(const struct at_problem *placed) {
    for (int t = 0; t < placed->op->n_tensors; t++) {
        const struct at_tensor *tensor = &placed->tensors[t];
        struct copy all = { tensor->data, tensor->data };
        if (!tensor->data || tensor->format == AT_I32)
            continue;
        if (at_pool_is_large(placed, t))
            AT_TRY(each_part(placed, t, tensor->data, clear_part, &all));
        else
            memset(tensor->data, 0, (size_t)bytes_of(tensor));
    }
    return AT_OK;
}

static at_status ask_declaration(struct at_runner *runner, int variant, const struct at_problem *problem,
                                 struct at_numerics *numerics) {
    const struct at_run_mode mode = { .ask = 1 };
    const struct at_variant *v = at_runner_variant(runner, variant);
    struct at_problem placed;
    struct at_buffer buffer;
    struct at_run_reply reply;
    char why[256] = "";
    int64_t gap;
    AT_TRY(place(runner, problem, 0, 1, &placed, &buffer, &gap));
    AT_TRY(clear_values(&placed));
    AT_TRY(at_runner_run(runner, variant, &placed, buffer.used, &mode, at_time_limit(QUESTION_SECONDS), &reply));
    *numerics = v->numerics;
    if (reply.outcome == AT_RUN_UNSUPPORTED)
        return AT_OK;
    if (reply.outcome != AT_RAN || !reply.declares)
        return AT_FAIL(
            AT_PROTOCOL, "variant %s/%s was asked what it declares on this problem, and %s%.300s", v->family, v->name,
            reply.outcome == AT_RAN ? "did not say it" : "failed: ", reply.outcome == AT_RAN ? "" : reply.reason);
    if (at_numerics_parse(reply.numerics, numerics) != AT_OK || at_numerics_check(numerics) != AT_OK)
        snprintf(why, sizeof why, "%s", at_error_message());
    else if (v->numerics.repeats && !numerics->repeats)
        snprintf(why, sizeof why, "repeats=0, where its line in the greeting has repeats=1");
    return why[0] ? AT_FAIL(AT_PROTOCOL, "variant %s/%s declares numerics that mean nothing on this problem: %s",
                            v->family, v->name, why)
                  : AT_OK;
}

at_status at_declared_on(struct at_runner *runner, int variant, const struct at_problem *problem,
                         struct at_numerics *numerics) {
    struct at_said said = { .variant = variant };
    *numerics = at_runner_variant(runner, variant)->numerics;
    if (!at_runner_variant(runner, variant)->asked)
        return AT_OK;
    said.question = question_of(problem);
    const struct at_said *before = at_runner_said(runner, variant, said.question);
    if (!before) {
        AT_TRY(ask_declaration(runner, variant, problem, &said.numerics));
        AT_TRY(at_runner_keep_said(runner, &said));
    }
    *numerics = before ? before->numerics : said.numerics;
    return AT_OK;
}

at_status at_dry_launch(struct at_runner *runner, int variant, const struct at_problem *problem,
                        struct at_run_reply *reply) {
    const struct at_run_mode mode = { .dry = 1 };
    return question(runner, variant, problem, &mode, reply);
}

void at_outputs_release(struct at_outputs *outputs) {
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(outputs->tensors[t].data);
    memset(outputs, 0, sizeof *outputs);
}
