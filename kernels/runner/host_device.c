/* The host as a device: workspaces are poisoned and guarded, launches timed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/host_device.h"

#include "attest/op.h"
#include "kernels/simt/simt_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The device's own error numbers. What a host kernel's launch returns is passed on as it is. */
enum { NO_MEMORY = 1001, WORKSPACE_OVERRUN, ERROR_LOST, NO_CALL };
enum { ALIGN = 256, GUARD = 256 };
/* Every format reads these bytes as NaN: a kernel that uses scratch it did not write is seen. */
enum { POISON = 0xff, GUARD_BYTE = 0xa5 };

static struct at_host_device *host_of(struct at_device *device) { return (struct at_host_device *)device->state; }

static int host_load(struct at_device *device, void *host, int64_t used, void **base) {
    (void)device;
    (void)used;
    *base = host;
    return 0;
}

static int host_store(struct at_device *device, void *host, int64_t used) {
    (void)device;
    (void)host;
    (void)used;
    return 0;
}

/* The guard starts at the first byte beyond what was asked for. */
static int host_workspace(struct at_device *device, int64_t bytes, void **workspace) {
    struct at_host_device *host = host_of(device);
    if (bytes < 0 || bytes > AT_PROTOCOL_MAX_BYTES)
        return NO_MEMORY;
    if (!host->scratch || bytes > host->capacity) {
        int64_t capacity = (bytes + ALIGN - 1) / ALIGN * ALIGN;
        free(host->scratch);
        host->capacity = 0;
        host->scratch = (uint8_t *)aligned_alloc(ALIGN, (size_t)(capacity + GUARD));
        if (!host->scratch)
            return NO_MEMORY;
        host->capacity = capacity;
    }
    memset(host->scratch, POISON, (size_t)bytes);
    memset(host->scratch + bytes, GUARD_BYTE, GUARD);
    host->wanted = bytes;
    *workspace = host->scratch;
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* AT_SIMT_SEED: the order of warps and lanes of every launch, or `own`: each problem has one by its shapes, so that a run of
 * many cases meets as many orders, and a case by itself meets its own again. */
static uint64_t order_of(const struct at_problem *p) {
    const char *seed = getenv("AT_SIMT_SEED");
    if (!seed || strcmp(seed, "own") != 0)
        return seed ? strtoull(seed, NULL, 0) : 0;
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, by whole numbers */
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        for (int i = 0; i < p->tensors[t].rank; i++)
            hash = (hash ^ (uint64_t)p->tensors[t].shape[i]) * 0x100000001b3u;
    return hash;
}

/* Tells the SIMT machine what the variant may touch. A host variant does not enter it: no hook is called. */
static void describe(const struct at_launch *launch, const struct at_run_mode *mode) {
    struct at_simt_region regions[AT_MAX_TENSORS + 1];
    const struct at_problem *p = launch->problem;
    int n = 0;
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        const struct at_tensor *x = &p->tensors[t];
        if (!x->data)
            continue;
        const enum at_role role = p->op ? p->op->tensors[t].role : AT_INOUT;
        regions[n++] = (struct at_simt_region){ .name = p->op ? p->op->tensors[t].name : "a tensor",
                                                .base = (uint8_t *)x->data,
                                                .bytes = at_tensor_count(x) * (int64_t)at_format_info(x->format)->bytes,
                                                .read_only = role == AT_IN,
                                                .unwritten = role == AT_OUT };
    }
    regions[n++] = (struct at_simt_region){
        .name = "the workspace", .base = (uint8_t *)launch->workspace, .bytes = launch->workspace_bytes, .unwritten = 1
    };
    at_simt_job(regions, n, order_of(p) + (uint64_t)mode->order);
    at_simt_expect_stream(launch->stream);
    at_simt_count(mode->counters);
    at_simt_unchecked(mode->unchecked);
    at_simt_dry(mode->dry);
}

static int host_found(struct at_device *device, enum at_reply_kind *kind, char *reason, size_t size) {
    static const enum at_reply_kind kinds[] = { [AT_FINDING_RACE] = AT_REPLY_RACY,
                                                [AT_FINDING_UNWRITTEN] = AT_REPLY_RACY,
                                                [AT_FINDING_BOUNDS] = AT_REPLY_DIRTY,
                                                [AT_FINDING_DEADLOCK] = AT_REPLY_DEADLOCKED };
    const struct at_finding *finding = at_simt_finding();
    (void)device;
    if (finding->kind == AT_FINDING_NONE)
        return 0;
    *kind = kinds[finding->kind];
    snprintf(reason, size, "%s", finding->text);
    return 1;
}

/* Does a launch have something to write? */
static int has_outputs(const struct at_problem *p) {
    for (int t = 0; p->op && t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_IN && at_tensor_count(&p->tensors[t]) > 0)
            return 1;
    return 0;
}

/* Launches with the first call of the variant to the device failing, then with the second, until all have; 0: each error
 * came out. A launch that has something to write makes a call. */
static int fail_each(const struct at_kernel *kernel, const struct at_launch *launch, const struct at_run_mode *mode) {
    struct at_run_mode dry = *mode;
    dry.dry = 1; /* counts the calls, and no kernel runs */
    describe(launch, &dry);
    const int code = kernel->launch(launch), calls = (int)at_simt_calls();
    if (code)
        return code;
    if (calls == 0 && has_outputs(launch->problem))
        return NO_CALL;
    for (int n = 1; n <= calls; n++) {
        describe(launch, mode);
        at_simt_call_fails(n);
        const int said = kernel->launch(launch);
        at_simt_call_fails(0);
        if (!said)
            return ERROR_LOST;
    }
    return 0;
}

static int host_run(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *launch,
                    const struct at_run_mode *mode, struct at_reply *reply) {
    const struct at_host_device *host = host_of(device);
    struct at_launch on_stream = *launch;
    on_stream.stream = device; /* any address will do: work put on another stream has no order with ours */
    const int lost = host->fail_each ? fail_each(kernel, &on_stream, mode) : 0;
    if (lost)
        return lost;
    describe(&on_stream, mode);
    double start = now();
    int code = kernel->launch(&on_stream);
    reply->seconds = now() - start;
    reply->path = at_simt_path();
    reply->launches = at_simt_launches();
    reply->capturable = reply->path != 0;
    reply->has_counters = mode->counters;
    at_simt_counters(&reply->counters);
    for (int64_t i = 0; code == 0 && i < GUARD; i++)
        if (host->scratch[host->wanted + i] != GUARD_BYTE)
            code = WORKSPACE_OVERRUN;
    return code;
}

static const char *host_error(int code) {
    switch (code) {
    case NO_MEMORY:
        return "the memory could not be had";
    case WORKSPACE_OVERRUN:
        return "the kernel wrote past the workspace it asked for";
    case ERROR_LOST:
        return "a launch or a tensor map of it failed, and it did not say so";
    case NO_CALL:
        return "it launches nothing that could fail";
    default:
        return "the launch returned this number";
    }
}

void at_host_device_init(struct at_host_device *host) {
    *host = (struct at_host_device){ .device = { .load = host_load,
                                                 .workspace = host_workspace,
                                                 .run = host_run,
                                                 .found = host_found,
                                                 .store = host_store,
                                                 .error = host_error } };
    host->device.state = host;
}

void at_host_device_release(struct at_host_device *host) {
    free(host->scratch);
    host->scratch = NULL;
    host->capacity = 0;
}

void at_host_device_text(char *text, size_t size) {
    snprintf(text, size, "host processor");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        snprintf(text, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    fclose(file);
}
