/* The launches after the one that is judged: the same again, requests alone, the batch backwards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/relaunch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "verify/judge/batch.h"
#include "verify/runner/poison.h"

static int64_t different_bits(const struct at_tensor *a, const struct at_tensor *b, int64_t a_first, int64_t b_first,
                              int64_t count) {
    int64_t different = 0;
    for (int64_t i = 0; i < count; i++)
        different += at_load_code(a->format, a->data, (size_t)(a_first + i)) !=
                     at_load_code(b->format, b->data, (size_t)(b_first + i));
    return different;
}

at_status at_job_check_ran(struct at_job *j, const struct at_run_reply *reply, const char *what) {
    if (reply->outcome == AT_RAN)
        return AT_OK;
    const int declined = reply->outcome == AT_RUN_UNSUPPORTED;
    j->late_fate = declined ? AT_STATE_ERROR : at_job_fate(reply->outcome);
    return AT_FAIL(AT_PROTOCOL, "launched again on %s, the variant %s: %s", what, declined ? "declined" : "failed",
                   reply->reason);
}

void at_job_keep_dirt(struct at_job *j, const struct at_outputs *later, const char *where) {
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        if (later->dirty[t][0] && !j->outputs.dirty[t][0]) {
            snprintf(j->outputs.dirty[t], sizeof j->outputs.dirty[t], "%.120s%s", later->dirty[t], where);
            j->outputs.is_dirty = 1;
        }
}

/* Elements of output o whose bits changed from the judged launch to another of the same problem. */
static int64_t changed_bits(const struct at_job *j, const struct at_outputs *again, int o) {
    const int t = j->context->answer.outputs[o];
    return different_bits(&j->outputs.tensors[t], &again->tensors[t], 0, 0, at_tensor_count(&again->tensors[t]));
}

/* The same launch again, in freshly marked memory, at other addresses and in another order of warps: one other order and
 * place for all of them, because bits that depend on these do so with either poison. `again` is the caller's to
 * release. */
static at_status launch_again(struct at_job *j, enum at_poison_turn turn, uint64_t launch, struct at_outputs *again) {
    struct at_run_reply reply;
    const struct at_run_mode mode = { .order = 1 };
    AT_TRY(at_guarded_launch_elsewhere(j->runner, j->variant, &j->context->data.problem, turn, &mode,
                                       at_job_seed(j, launch), at_job_time_limit(j), &reply, again));
    AT_TRY(at_job_check_ran(j, &reply, "the same problem"));
    at_job_keep_dirt(j, again, ", when launched again");
    return AT_OK;
}

/* Elements that differed between the judged launch and the one with the other poison, and have followed the poison in
 * every launch since. */
struct suspects {
    uint8_t *is[AT_MAX_TENSORS]; /* by output */
    int64_t n[AT_MAX_TENSORS], all;
};

static at_status suspects_open(const struct at_job *j, const struct at_outputs *again, struct suspects *s) {
    *s = (struct suspects){ 0 };
    for (int o = 0; o < j->n_results; o++) {
        const struct at_tensor *first = &j->outputs.tensors[j->context->answer.outputs[o]];
        const struct at_tensor *other = &again->tensors[j->context->answer.outputs[o]];
        const int64_t count = at_tensor_count(first);
        s->is[o] = calloc((size_t)count + 1, 1);
        if (!s->is[o])
            return AT_FAIL(AT_NO_MEMORY, "no memory for a map of %lld elements", (long long)count);
        for (int64_t i = 0; i < count; i++)
            s->n[o] += s->is[o][i] = different_bits(first, other, i, i, 1) != 0;
        s->all += s->n[o];
    }
    return AT_OK;
}

static void suspects_close(struct suspects *s) {
    for (int o = 0; o < AT_MAX_TENSORS; o++)
        free(s->is[o]);
}

/* One more launch: what is not as it was with the same poison is suspected no longer. */
static void clear_suspects(const struct at_job *j, const struct at_outputs *before, const struct at_outputs *now,
                           struct suspects *s) {
    s->all = 0;
    for (int o = 0; o < j->n_results; o++) {
        const int t = j->context->answer.outputs[o];
        for (int64_t i = 0, n = at_tensor_count(&now->tensors[t]); s->n[o] && i < n; i++)
            if (s->is[o][i] && different_bits(&before->tensors[t], &now->tensors[t], i, i, 1)) {
                s->is[o][i] = 0;
                s->n[o]--;
            }
        s->all += s->n[o];
    }
}

/* Launches in all, the first two included. A bit that changes by chance, of a variant that may, keeps in step with the
 * poison for 2^-30. */
enum { POISON_LAUNCHES = 32 };

/* The poison of launch i: the Thue-Morse sequence, which has no period that a kernel's own could be mistaken for. */
static enum at_poison_turn poison_of(int i) {
    return __builtin_parity((unsigned)i) ? AT_POISON_AGAIN : AT_POISON_JUDGED;
}

static at_status follow_poison(struct at_job *j, const struct at_outputs *again) {
    at_status status = AT_OK;
    struct suspects s;
    struct at_outputs now = { 0 };
    AT_TRY_OUT(suspects_open(j, again, &s));
    for (int i = 2; i < POISON_LAUNCHES && s.all; i++) {
        const int is_other = poison_of(i) == AT_POISON_AGAIN;
        AT_TRY_OUT(launch_again(j, poison_of(i), (uint64_t)is_other, &now)); /* the same poison, to the bit */
        clear_suspects(j, is_other ? again : &j->outputs, &now, &s);
        at_outputs_release(&now);
    }
    for (int o = 0; o < j->n_results; o++) {
        j->poison_read[o] = s.n[o];
        if (s.n[o])
            j->results[o].rerun_different = 0;
    }
out:
    at_outputs_release(&now);
    suspects_close(&s);
    return status;
}

/* Bits that change between equal launches; of those, what follows the poison is read from it. */
at_status at_job_rerun(struct at_job *j) {
    at_status status = AT_OK;
    struct at_outputs again = { 0 };
    int64_t any = 0;
    AT_TRY_OUT(launch_again(j, AT_POISON_AGAIN, 1, &again));
    for (int o = 0; o < j->n_results; o++) {
        j->results[o].rerun_compared = at_tensor_count(&again.tensors[j->context->answer.outputs[o]]);
        j->results[o].rerun_different = changed_bits(j, &again, o);
        any += j->results[o].rerun_different;
    }
    if (any && at_has_unowned(&j->context->data.problem))
        AT_TRY_OUT(follow_poison(j, &again));
out:
    at_outputs_release(&again);
    return status;
}

/* The predictor's variant made from the same source file; -1 when it has none. */
static int same_source(const struct at_runner *predictor, const struct at_variant *v) {
    for (int i = 0; i < at_runner_variant_count(predictor); i++) {
        const struct at_variant *other = at_runner_variant(predictor, i);
        if (strcmp(other->family, v->family) == 0 && strcmp(other->name, v->name) == 0 && other->sha256[0] &&
            strcmp(other->sha256, v->sha256) == 0)
            return i;
    }
    return -1;
}

/* Elements whose bits differ; the bits of a NaN are each machine's own, so NaNs are one class. */
static int64_t mispredicted_bits(const struct at_tensor *a, const struct at_tensor *b) {
    int64_t different = 0;
    for (int64_t i = 0, n = at_tensor_count(a); i < n; i++)
        different += at_load_code(a->format, a->data, (size_t)i) != at_load_code(b->format, b->data, (size_t)i) &&
                     !(isnan(at_tensor_get(a, i)) && isnan(at_tensor_get(b, i)));
    return different;
}

at_status at_job_predict(struct at_job *j) {
    struct at_runner *predictor = j->predictor;
    const int variant = predictor ? same_source(predictor, j->v) : -1;
    struct at_run_reply reply;
    struct at_outputs predicted;
    if (variant < 0 || !j->declared.repeats) /* bits that do not repeat cannot be foretold */
        return AT_OK;
    AT_TRY(at_guarded_launch(predictor, variant, &j->context->data.problem, AT_POISON_JUDGED, NULL, at_job_seed(j, 0),
                             at_job_time_limit(j), &reply, &predicted));
    /* An exponential whose bits the machine has no model of is declined there and judged by its interval alone. Any other
     * variant that the machine declines has lost a check that it should have had. */
    if (reply.outcome == AT_RUN_UNSUPPORTED && j->declared.exp != AT_EXP_LIBM)
        return AT_OK;
    AT_TRY(at_job_check_ran(j, &reply, "the SIMT machine"));
    for (int o = 0; o < j->n_results; o++) {
        const struct at_tensor *got = &j->outputs.tensors[j->context->answer.outputs[o]];
        const struct at_tensor *want = &predicted.tensors[j->context->answer.outputs[o]];
        j->results[o].predicted_compared = at_tensor_count(got);
        j->results[o].predicted_different = mispredicted_bits(got, want);
    }
    at_outputs_release(&predicted);
    return AT_OK;
}

at_status at_job_graph(struct at_job *j) {
    const struct at_problem *p = &j->context->data.problem;
    const struct at_run_mode mode = { .graph = 1, .graph_max_sk = 1 };
    struct at_run_reply reply;
    struct at_outputs replayed;
    if (!j->capturable || !j->context->item->c->family->decode || !j->declared.repeats || p->sizes.max_sk < 2)
        return AT_OK;
    AT_TRY(at_guarded_launch(j->runner, j->variant, p, AT_POISON_JUDGED, &mode, at_job_seed(j, 8), at_job_time_limit(j),
                             &reply, &replayed));
    AT_TRY(at_job_check_ran(j, &reply, "a graph captured while the longest request had one key"));
    at_job_keep_dirt(j, &replayed, ", in a graph captured while the longest request had one key");
    for (int o = 0; o < j->n_results; o++) {
        j->results[o].graph_compared = at_tensor_count(&replayed.tensors[j->context->answer.outputs[o]]);
        j->results[o].graph_different = changed_bits(j, &replayed, o);
        j->results[o].graph_other_path = j->path && reply.path && reply.path != j->path;
    }
    at_outputs_release(&replayed);
    return AT_OK;
}

static at_status compare_part(struct at_job *j, const struct at_batch_part *part, uint64_t launch) {
    struct at_run_reply reply;
    struct at_outputs got;
    const struct at_problem *whole = &j->context->data.problem;
    if (j->context->options->launch_only && whole->op->rows(&part->problem) > 0)
        return AT_OK;
    const struct at_run_mode mode = { .order = (int64_t)launch, .unchecked = j->context->options->launch_only };
    AT_TRY(at_guarded_launch(j->runner, j->variant, &part->problem, AT_POISON_AGAIN, &mode, at_job_seed(j, launch),
                             at_job_time_limit(j), &reply, &got));
    if (reply.outcome != AT_RUN_UNSUPPORTED)
        AT_TRY(at_job_check_ran(j, &reply, "a part of the batch"));
    at_job_keep_dirt(j, &got, ", when launched on a part of the batch");
    for (int o = 0; reply.outcome == AT_RAN && o < j->n_results; o++) {
        int t = j->context->answer.outputs[o];
        for (int64_t u = 0; u < part->n; u++) {
            int64_t row, rows, part_row, part_rows, from, part_from, count;
            at_batch_rows(whole, part->requests[u], &row, &rows);
            at_batch_rows(&part->problem, u, &part_row, &part_rows);
            for (int64_t k = 0; k < rows; k++) {
                whole->op->row_span(whole, t, row + k, &from, &count);
                whole->op->row_span(&part->problem, t, part_row + k, &part_from, &count);
                j->results[o].batch_compared += count;
                j->results[o].batch_different +=
                    different_bits(&j->outputs.tensors[t], &got.tensors[t], from, part_from, count);
            }
        }
    }
    at_outputs_release(&got);
    return AT_OK;
}

at_status at_job_other_batches(struct at_job *j) {
    const struct at_problem *p = &j->context->data.problem;
    int64_t n = at_batch_units(p), picks[3] = { 0, n / 2, n - 1 };
    at_status status = AT_OK;
    struct at_batch_part part = { 0 };
    if (n < 2)
        return AT_OK;
    for (int i = 0; i < 3; i++) {
        if (i && picks[i] == picks[i - 1])
            continue;
        AT_TRY(at_batch_gather(p, &picks[i], 1, &part));
        status = compare_part(j, &part, 2 + (uint64_t)i);
        at_batch_release(&part);
        if (status != AT_OK)
            return status;
    }
    int64_t *backwards = malloc((size_t)n * sizeof *backwards);
    if (!backwards)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a batch of %lld units", (long long)n);
    for (int64_t i = 0; i < n; i++)
        backwards[i] = n - 1 - i;
    status = at_batch_gather(p, backwards, n, &part);
    free(backwards);
    if (status == AT_OK)
        status = compare_part(j, &part, 5);
    at_batch_release(&part);
    return status;
}
