/* Loads, guards and launches the device code of launch files, job by job.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel's functions get a problem and no word of which kernel they are of, so each file has a set of its own (VARIANT). */
#include "kernels/launch/launch_device.h"

#include "kernels/launch/device_code.h"
#include "kernels/launch/guarded_arena.h"
#include "kernels/launch/kept_results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 100101 }; /* no number of CUDA's: `said` has the words */

/* A launch file that was read. */
struct file {
    struct at_plan *plan;
    struct at_device_code code;
    struct at_kernel kernel;
    struct at_kernel_entry entry;
    char why[256]; /* it declined last */
    int64_t launches;
};

static struct {
    int n;
    struct file files[AT_LAUNCH_FILES];
    struct at_driver driver;
    struct at_arena arena;
    struct at_device device, *below;
    char said[512];          /* of what failed last */
    int has_found;           /* the last run ended with `kind` and `said` */
    enum at_reply_kind kind; /* FAILED or DIRTY */
} all;

static int failed(at_status status) {
    if (status == AT_OK)
        return 0;
    snprintf(all.said, sizeof all.said, "%s", at_error_message());
    at_error_clear();
    return FAILED;
}

/* ---- the functions of a variant ---- */

static const char *supports(struct file *f, const struct at_problem *problem) {
    int declines;
    if (failed(at_device_code_declines(&f->code, problem, &declines, f->why, sizeof f->why)))
        return NULL; /* no reason to decline: the launch fails with the words */
    return declines ? f->why : NULL;
}

static int64_t workspace(const struct file *f, const struct at_problem *problem) {
    int64_t bytes = 0;
    return failed(at_device_code_workspace(&f->code, problem, &bytes)) ? 0 : bytes;
}

static int launch(struct file *f, const struct at_launch *at) {
    return failed(at_device_code_launch(&f->code, at, &f->launches));
}

#define VARIANT(i) \
    static const char *supports_##i(const struct at_problem *p) { return supports(&all.files[i], p); } \
    static int64_t workspace_##i(const struct at_problem *p) { return workspace(&all.files[i], p); } \
    static int launch_##i(const struct at_launch *l) { return launch(&all.files[i], l); }
VARIANT(0)
VARIANT(1)
VARIANT(2)
VARIANT(3)
VARIANT(4)
VARIANT(5)
VARIANT(6)
VARIANT(7)
VARIANT(8)
VARIANT(9)
VARIANT(10)
VARIANT(11)
VARIANT(12)
VARIANT(13)
VARIANT(14)
VARIANT(15)
#define FUNCTIONS(i) \
    { .supports = supports_##i, .workspace = workspace_##i, .launch = launch_##i }
static const struct at_kernel functions[AT_LAUNCH_FILES] = {
    FUNCTIONS(0),  FUNCTIONS(1),  FUNCTIONS(2),  FUNCTIONS(3),  FUNCTIONS(4),  FUNCTIONS(5),
    FUNCTIONS(6),  FUNCTIONS(7),  FUNCTIONS(8),  FUNCTIONS(9),  FUNCTIONS(10), FUNCTIONS(11),
    FUNCTIONS(12), FUNCTIONS(13), FUNCTIONS(14), FUNCTIONS(15),
};

/* ---- the list ---- */

at_status at_launch_files_add(const char *path) {
    if (all.n == AT_LAUNCH_FILES)
        return AT_FAIL(AT_USAGE, "%s: one launch file too many, wanted at most %d", path, (int)AT_LAUNCH_FILES);
    struct at_plan *plan;
    at_status status = at_plan_read(path, &plan);
    for (int i = 0; i < all.n && status == AT_OK; i++)
        if (strcmp(all.files[i].plan->family, plan->family) == 0 && strcmp(all.files[i].plan->name, plan->name) == 0)
            status = AT_FAIL(AT_USAGE, "%s: name: %s/%s is that of %s, too; wanted another", path, plan->family,
                             plan->name, all.files[i].plan->path);
    if (status != AT_OK) {
        at_plan_free(plan);
        return status;
    }
    struct file *f = &all.files[all.n];
    f->plan = plan;
    f->code = (struct at_device_code){ .plan = plan, .driver = &all.driver };
    f->kernel = functions[all.n];
    f->kernel.summary = plan->summary;
    f->kernel.source = plan->source;
    f->kernel.numerics = plan->numerics;
    f->entry = (struct at_kernel_entry){
        .family = plan->family, .name = plan->name, .path = plan->path, .kernel = &f->kernel, .sha256 = plan->sha256
    };
    all.n++;
    return AT_OK;
}

static const struct at_kernel_entry *entry_at(int i) { return &all.files[i].entry; }
struct at_kernel_list at_launch_files_list(void) {
    return (struct at_kernel_list){ all.n, entry_at };
}

static struct file *file_of(const struct at_kernel *kernel) {
    for (int i = 0; i < all.n; i++)
        if (&all.files[i].kernel == kernel)
            return &all.files[i];
    return NULL;
}

/* ---- modules ---- */

static int load_module(const struct at_kernel *kernel) {
    struct file *f = file_of(kernel);
    if (!f)
        return failed(AT_FAIL(AT_BUG, "a kernel of no launch file"));
    return f->code.module ? 0 : failed(at_device_code_load(&f->code));
}

/* All of them; the first that cannot be unloaded says so, unless something had failed before. */
static int unload_modules(int code) {
    for (int i = 0; i < all.n; i++) {
        const at_status status = at_device_code_unload(&all.files[i].code);
        if (code == 0)
            code = failed(status);
    }
    at_error_clear();
    return code;
}

/* ---- the device ---- */

static int device_load(struct at_device *device, void *host, int64_t used, void **base) {
    (void)device;
    all.has_found = 0;
    return all.below->load(all.below, host, used, base);
}

/* A judged launch has its workspace in the arena, a timed one in each copy; the device below is not to guard one. */
static int device_workspace(struct at_device *device, int64_t bytes, void **memory) {
    (void)device;
    (void)bytes;
    return all.below->workspace(all.below, 0, memory);
}

static int end_with(enum at_reply_kind kind) {
    all.has_found = 1;
    all.kind = kind;
    return FAILED;
}

/* The launch in the arena, and what it did there. */
static int run_guarded(const struct at_kernel *kernel, const struct at_launch *at, const struct at_run_mode *mode,
                       struct at_reply *reply) {
    struct at_problem problem;
    struct at_launch guarded = *at;
    int64_t bytes = 0;
    int damaged = 0;
    guarded.problem = &problem;
    if (failed(at_device_code_workspace(&file_of(kernel)->code, at->problem, &bytes)) ||
        failed(at_arena_fill(&all.arena, at->problem, bytes, &problem, &guarded.workspace)))
        return end_with(AT_REPLY_FAILED);
    guarded.workspace_bytes = bytes;
    const int code = all.below->run(all.below, kernel, &guarded, mode, reply);
    if (code == FAILED)
        return end_with(AT_REPLY_FAILED);
    if (code)
        return code;
    reply->launches = file_of(kernel)->launches;
    if (failed(at_arena_check(&all.arena, &damaged, all.said, sizeof all.said)))
        return end_with(AT_REPLY_FAILED);
    if (damaged)
        return end_with(AT_REPLY_DIRTY);
    return failed(at_arena_store(&all.arena, at->problem)) ? end_with(AT_REPLY_FAILED) : 0;
}

static int device_run(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *at,
                      const struct at_run_mode *mode, struct at_reply *reply) {
    (void)device;
    all.has_found = 0;
    int code = load_module(kernel) ? end_with(AT_REPLY_FAILED) : run_guarded(kernel, at, mode, reply);
    if (unload_modules(code) && !code)
        code = end_with(AT_REPLY_FAILED);
    return code;
}

/* The launch as a job has it, its outputs kept when `kept` is empty, else compared with those. */
static int launch_untimed(const struct at_kernel *kernel, const struct at_launch *at, struct at_kept *kept) {
    const struct at_run_mode mode = { 0 };
    static struct at_reply reply; /* the launch's own time is no matter */
    static struct at_problem problem;
    static struct at_launch guarded;
    at_status status = AT_OK;
    if (!kept->bytes) {
        guarded = *at;
        guarded.problem = &problem;
        status = at_arena_fill(&all.arena, at->problem, at->workspace_bytes, &problem, &guarded.workspace);
    } else {
        status = at_kept_clear(&all.arena, at->problem);
    }
    if (status != AT_OK)
        return failed(status);
    const int code = all.below->run(all.below, kernel, &guarded, &mode, &reply);
    if (code)
        return code;
    return failed(kept->bytes ? at_kept_compare(kept, &all.arena, at->problem)
                              : at_kept_take(kept, &all.arena, at->problem));
}

static int device_time(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *at,
                       int64_t used, int replays, struct at_timing *timing) {
    (void)device;
    const int repeats = kernel->numerics.repeats;
    struct at_kept kept = { 0 };
    int code = load_module(kernel);
    if (!code && repeats)
        code = launch_untimed(kernel, at, &kept);
    if (!code)
        code = all.below->time(all.below, kernel, at, used, replays, timing);
    if (!code && repeats)
        code = launch_untimed(kernel, at, &kept);
    at_kept_release(&kept);
    return unload_modules(code);
}

static int device_sequence(struct at_device *device, const struct at_device_step *steps, int n, int64_t used,
                           int replays, struct at_step_cost *costs, struct at_reply *reply, int *step) {
    (void)device;
    int code = 0;
    for (*step = 0; *step < n && !code; ++*step)
        code = load_module(steps[*step].kernel);
    *step = code ? *step - 1 : 0;
    if (!code)
        code = all.below->sequence(all.below, steps, n, used, replays, costs, reply, step);
    return unload_modules(code);
}

static int device_store(struct at_device *device, void *host, int64_t used) {
    (void)device;
    return all.below->store(all.below, host, used);
}

static int device_found(struct at_device *device, enum at_reply_kind *kind, char *reason, size_t size) {
    (void)device;
    if (!all.has_found)
        return all.below->found ? all.below->found(all.below, kind, reason, size) : 0;
    *kind = all.kind;
    snprintf(reason, size, "%s", all.said);
    return 1;
}

static const char *device_error(int code) { return code == FAILED ? all.said : all.below->error(code); }

struct at_device *at_launch_device_open(struct at_device *below, const char *driver) {
    if (at_driver_open(driver, &all.driver) != AT_OK || at_driver_ask(&all.driver) != AT_OK)
        return NULL;
    all.below = below;
    all.device = (struct at_device){ .load = device_load,
                                     .workspace = device_workspace,
                                     .run = device_run,
                                     .time = below->time ? device_time : NULL,
                                     .keeps_timed = below->keeps_timed,
                                     .sequence = below->sequence ? device_sequence : NULL,
                                     .store = device_store,
                                     .found = device_found,
                                     .error = device_error };
    at_arena_init(&all.arena, &all.driver);
    return &all.device;
}

void at_launch_device_close(void) {
    at_arena_release(&all.arena);
    at_driver_close(&all.driver);
    for (int i = 0; i < all.n; i++)
        at_plan_free(all.files[i].plan);
    all.n = 0;
}
