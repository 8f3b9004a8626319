/* One job: placed, asked for, launched or timed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/job.h"

#include <stdio.h>

#include "attest/way.h"

void at_device_failed(const struct at_device *device, const char *doing, int code, struct at_reply *reply) {
    reply->kind = AT_REPLY_FAILED;
    snprintf(reply->reason, sizeof reply->reason, "%s: error %d, %s", doing, code, device->error(code));
}

void at_job_place(const struct at_job *job, uint8_t *base, struct at_problem *problem) {
    *problem = job->problem;
    for (int i = 0; i < job->n_tensors; i++) {
        const struct at_job_tensor *from = &job->tensor[i];
        problem->tensors[from->index] = from->shape;
        problem->tensors[from->index].data = base + from->offset;
    }
}

const struct at_kernel *at_job_kernel(struct at_device *device, const struct at_kernel_entry *entry,
                                      const struct at_problem *problem, const char **way, const char **refusal) {
    const struct at_family *family = at_family_find(entry->family);
    const struct at_kernel *kernel = entry->kernel;
    *way = "";
    *refusal = NULL;
    if (family && family->decode && problem->sizes.max_sq > 1) { /* cases cannot say it, other clients can */
        *refusal = "decode takes at most one query a request";
    } else if (kernel->choose) {
        const struct at_kernel_entry *chosen = kernel->choose(problem, refusal);
        if (chosen) {
            kernel = chosen->kernel;
            *way = chosen->name;
        }
    } else if (kernel->supports) {
        *refusal = kernel->supports(problem);
    }
    if (!*refusal && device->declines)
        *refusal = device->declines(device, kernel, problem);
    return *refusal ? NULL : kernel;
}

/* What the variant declares on this problem; of a dispatcher what the chosen kernel does, and that another batch may have another. */
static void declare(const struct at_kernel_entry *entry, const struct at_kernel *kernel, struct at_reply *reply) {
    struct at_numerics numerics = kernel->numerics;
    if (!entry->kernel->choose)
        return;
    numerics.batch_invariant = 0;
    reply->declares = 1;
    if (at_numerics_format(&numerics, reply->numerics, sizeof reply->numerics) != AT_OK) {
        reply->kind = AT_REPLY_FAILED;
        snprintf(reply->reason, sizeof reply->reason, "its declaration: %s", at_error_message());
    }
}

void at_job_run(const struct at_serve *serve, struct at_block *block, const struct at_job *job,
                struct at_reply *reply) {
    const struct at_kernel_entry *entry = serve->kernels.at(job->variant);
    struct at_device *device = serve->device;
    const char *way;
    void *base;
    int code = device->load(device, block->base, job->used, &base);
    if (code) {
        at_device_failed(device, "copying the block to the device", code, reply);
        return;
    }
    struct at_problem problem;
    at_job_place(job, (uint8_t *)base, &problem);
    if (job->mode.graph)
        problem.sizes.max_sk = job->mode.graph_max_sk;
    const char *refusal = NULL;
    const struct at_kernel *kernel = at_job_kernel(device, entry, &problem, &way, &refusal);
    if (job->mode.timings && !device->time)
        refusal = "this runner has no clock worth reading";
    if (refusal) {
        reply->kind = AT_REPLY_UNSUPPORTED;
        snprintf(reply->reason, sizeof reply->reason, "%s", refusal);
        return;
    }
    if (job->mode.ask) {
        declare(entry, kernel, reply);
        return;
    }
    struct at_launch launch = { .problem = &problem };
    launch.workspace_bytes = kernel->workspace ? kernel->workspace(&problem) : 0;
    code = device->workspace(device, launch.workspace_bytes, &launch.workspace);
    if (code) {
        at_device_failed(device, "allocating the workspace", code, reply);
        return;
    }
    if (job->mode.timings) {
        code = device->time(device, kernel, &launch, job->used, job->mode.timings, &reply->timing);
        if (code)
            at_device_failed(device, "timing the kernel", code, reply);
        else if (device->keeps_timed)
            code = device->store(device, block->base, job->used);
        if (reply->kind == AT_REPLY_DONE && code)
            at_device_failed(device, "copying the block from the device", code, reply);
        reply->timed_outputs = reply->kind == AT_REPLY_DONE && device->keeps_timed;
        return;
    }
    at_way_forget();
    code = device->run(device, kernel, &launch, &job->mode, reply);
    snprintf(reply->way, sizeof reply->way, "%s", way[0] ? way : at_way_taken());
    if (device->found && device->found(device, &reply->kind, reply->reason, sizeof reply->reason))
        return;
    if (code) {
        at_device_failed(device, "running the kernel", code, reply);
        return;
    }
    code = device->store(device, block->base, job->used);
    if (code)
        at_device_failed(device, "copying the block from the device", code, reply);
}
