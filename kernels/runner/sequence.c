/* Jobs held, and run as one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/sequence.h"

#include "kernels/runner/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Far more than the steps of any model's pass. */
enum { STEPS_MAX = 1 << 16 };

static int append(struct at_sequence *sequence, const struct at_job *job) {
    if (sequence->n == STEPS_MAX)
        return 0;
    struct at_job *grown = realloc(sequence->jobs, ((size_t)sequence->n + 1) * sizeof *grown);
    if (!grown)
        return 0;
    sequence->jobs = grown;
    grown[sequence->n++] = *job;
    return 1;
}

static void fail(struct at_reply *reply, enum at_reply_kind kind, int step, const char *reason) {
    char why[sizeof reply->reason];
    snprintf(why, sizeof why, "%s", reason); /* it may be the reply's own */
    reply->kind = kind;
    snprintf(reply->reason, sizeof reply->reason, "step %d of the sequence: %.450s", step, why);
}

void at_sequence_hold(struct at_sequence *sequence, const struct at_job *job, struct at_reply *reply) {
    if (!append(sequence, job))
        fail(reply, AT_REPLY_FAILED, sequence->n, "no room for it");
}

void at_sequence_release(struct at_sequence *sequence) {
    free(sequence->jobs);
    *sequence = (struct at_sequence){ 0 };
}

/* Problems on the device's copy of the block. 0 when a variant declines its step. */
static int place(const struct at_sequence *sequence, const struct at_serve *serve, uint8_t *base,
                 struct at_device_step *steps, struct at_reply *reply) {
    for (int i = 0; i < sequence->n; i++) {
        const struct at_kernel_entry *entry = serve->kernels.at(sequence->jobs[i].variant);
        struct at_device_step *step = &steps[i];
        const char *way, *refusal;
        at_job_place(&sequence->jobs[i], base, &step->problem);
        step->kernel = at_job_kernel(serve->device, entry, &step->problem, &way, &refusal);
        if (!step->kernel) {
            fail(reply, AT_REPLY_UNSUPPORTED, i, refusal);
            return 0;
        }
        step->workspace_bytes = step->kernel->workspace ? step->kernel->workspace(&step->problem) : 0;
    }
    return 1;
}

/* Without graphs: launched one by one, once. 0 when one of them did not do what it should. */
static int run_each(struct at_device *device, struct at_device_step *steps, int n, const struct at_run_mode *mode,
                    struct at_step_cost *costs, struct at_reply *reply) {
    struct at_run_mode plain = *mode;
    double seconds = 0;
    int64_t launches = 0;
    plain.replays = 0;
    for (int i = 0; i < n; i++) {
        struct at_launch launch = { .problem = &steps[i].problem, .workspace_bytes = steps[i].workspace_bytes };
        int code = device->workspace(device, launch.workspace_bytes, &launch.workspace);
        if (!code)
            code = device->run(device, steps[i].kernel, &launch, &plain, reply);
        if (device->found && device->found(device, &reply->kind, reply->reason, sizeof reply->reason)) {
            fail(reply, reply->kind, i, reply->reason);
            return 0;
        }
        if (code) {
            fail(reply, AT_REPLY_FAILED, i, device->error(code));
            return 0;
        }
        costs[i].kernels = (double)reply->launches;
        seconds += reply->seconds;
        launches += reply->launches;
    }
    reply->seconds = seconds;
    reply->launches = launches;
    reply->path = 0;
    reply->capturable = 0;
    return 1;
}

/* The costs go where the last job says, if that is inside the block. */
static void write_costs(const struct at_job *last, int n, const struct at_step_cost *costs, uint8_t *base,
                        struct at_reply *reply) {
    const int64_t bytes = n * (int64_t)sizeof *costs;
    if (!last->mode.steps)
        return;
    if (last->mode.steps > last->used || bytes > last->used - last->mode.steps) {
        fail(reply, AT_REPLY_FAILED, n - 1, "the block has no room for what the steps took");
        return;
    }
    memcpy(base + last->mode.steps, costs, (size_t)bytes);
}

static void run_placed(const struct at_sequence *sequence, const struct at_serve *serve, struct at_block *block,
                       struct at_device_step *steps, struct at_step_cost *costs, struct at_reply *reply) {
    const struct at_job *last = &sequence->jobs[sequence->n - 1];
    struct at_device *device = serve->device;
    void *base;
    int code = device->load(device, block->base, last->used, &base);
    if (code) {
        at_device_failed(device, "copying the block to the device", code, reply);
        return;
    }
    if (!place(sequence, serve, base, steps, reply))
        return;
    if (device->sequence) {
        int step = 0;
        code = device->sequence(device, steps, sequence->n, last->used, last->mode.replays, costs, reply, &step);
        if (code) {
            fail(reply, AT_REPLY_FAILED, step, device->error(code));
            return;
        }
    } else if (!run_each(device, steps, sequence->n, &last->mode, costs, reply)) {
        return;
    }
    code = device->store(device, block->base, last->used);
    if (code)
        at_device_failed(device, "copying the block from the device", code, reply);
    else
        write_costs(last, sequence->n, costs, block->base, reply);
}

void at_sequence_run(struct at_sequence *sequence, const struct at_serve *serve, struct at_block *block,
                     const struct at_job *last, struct at_reply *reply) {
    struct at_device_step *steps = NULL;
    struct at_step_cost *costs = NULL;
    if (append(sequence, last)) {
        steps = calloc((size_t)sequence->n, sizeof *steps);
        costs = calloc((size_t)sequence->n, sizeof *costs);
    }
    if (steps && costs)
        run_placed(sequence, serve, block, steps, costs, reply);
    else
        fail(reply, AT_REPLY_FAILED, sequence->n, "no memory for the sequence");
    free(steps);
    free(costs);
}
