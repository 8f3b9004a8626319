/* Launches of a shared library's functions on the device that a runner has anyway.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A device calls kernel->launch(), which is not told whose launch it is: here it is one function for all variants, and the
 * variant is noted before the device is asked to run it. */
#include "kernels/runner/so_device.h"

#include <stdio.h>
#include <string.h>

#include "kernels/runner/so_plain.h"

/* The launch that is being made, by the one thread that serves. */
static struct {
    const struct at_so_device *so;
    const struct at_so_variant *v;
    int failed;
    char why[256], text[448];
} now;

static struct at_so_device *so_of(struct at_device *device) { return (struct at_so_device *)device->state; }

static const struct at_so_variant *variant_of(const struct at_kernel *kernel) {
    return (const struct at_so_variant *)(const void *)kernel; /* its first member */
}

static void begin(const struct at_so_device *so, const struct at_kernel *kernel) {
    now.so = so;
    now.v = variant_of(kernel);
    now.failed = 0;
    now.why[0] = 0;
}

static int launch_variant(const struct at_launch *launch) {
    const struct at_so_place place = { now.so->device_type, now.so->device_type == 1 ? NULL : launch->stream };
    const int code = now.v->tvm_ffi[0] ? at_so_call_tvm_ffi(now.v, now.so->library->handle, launch->problem, &place,
                                                            now.why, sizeof now.why)
                                       : at_so_call_plain(now.v, launch->problem, &place, now.why, sizeof now.why);
    now.why[sizeof now.why - 1] = 0;
    now.failed = code != 0;
    return code;
}

static int so_load(struct at_device *device, void *host, int64_t used, void **base) {
    struct at_device *inner = so_of(device)->inner;
    return inner->load(inner, host, used, base);
}

static int so_store(struct at_device *device, void *host, int64_t used) {
    struct at_device *inner = so_of(device)->inner;
    return inner->store(inner, host, used);
}

static int so_workspace(struct at_device *device, int64_t bytes, void **workspace) {
    struct at_device *inner = so_of(device)->inner;
    now.failed = 0;
    return inner->workspace(inner, bytes, workspace);
}

static int so_run(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *launch,
                  const struct at_run_mode *mode, struct at_reply *reply) {
    struct at_device *inner = so_of(device)->inner;
    begin(so_of(device), kernel);
    const int code = inner->run(inner, kernel, launch, mode, reply);
    reply->capturable = variant_of(kernel)->graph && so_of(device)->device_type == 2;
    return code;
}

static int so_time(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *launch,
                   int64_t used, int replays, struct at_timing *timing) {
    struct at_device *inner = so_of(device)->inner;
    begin(so_of(device), kernel);
    return inner->time(inner, kernel, launch, used, replays, timing);
}

static int so_found(struct at_device *device, enum at_reply_kind *kind, char *reason, size_t size) {
    struct at_device *inner = so_of(device)->inner;
    return inner->found && inner->found(inner, kind, reason, size);
}

static const char *so_error(int code) {
    if (!now.failed)
        return now.so->inner->error(code);
    snprintf(now.text, sizeof now.text, "%s returned it%s%s", now.v->tvm_ffi[0] ? now.v->tvm_ffi : now.v->launch,
             now.why[0] ? ": " : "", now.why);
    return now.text;
}

static const char *so_declines(struct at_device *device, const struct at_kernel *kernel,
                               const struct at_problem *problem) {
    const struct at_so_variant *v = variant_of(kernel);
    const struct at_so_place place = { so_of(device)->device_type, NULL };
    const struct at_scalar *lacks = at_takes_lacks(v->takes, problem);
    if (v->dtypes && !(v->dtypes >> problem->dtype & 1)) {
        snprintf(now.text, sizeof now.text, "its declaration's dtypes do not have %s",
                 at_format_info(problem->dtype)->name);
        return now.text;
    }
    if (lacks) {
        snprintf(now.text, sizeof now.text, "its declaration does not say that it takes %s", lacks->name);
        return now.text;
    }
    return at_so_ask_plain(v, problem, &place);
}

void at_so_device_init(struct at_so_device *so, struct at_device *inner, int device_type,
                       struct at_so_library *library) {
    *so = (struct at_so_device){ .device = { .load = so_load,
                                             .workspace = so_workspace,
                                             .declines = so_declines,
                                             .run = so_run,
                                             .time = inner->time ? so_time : NULL,
                                             .keeps_timed = inner->keeps_timed,
                                             .store = so_store,
                                             .found = so_found,
                                             .error = so_error },
                                 .inner = inner,
                                 .library = library,
                                 .device_type = device_type };
    so->device.state = so;
    now.so = so;
    for (int i = 0; i < library->declaration.n; i++)
        library->declaration.variants[i].kernel.launch = launch_variant;
}
