/* A tiny problem with a known answer, and test kernels that look at what a runner does for them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner_rig.h"

#include "attest/attention.h"
#include "kernels/runner/host_device.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the problem ---- */

enum { SIGMA = AT_ATTN_COMMON, TAPS, GAMMA, O, TENSORS };

/* Names and order of AsyncT attention, without its mathematics: a runner needs no more. */
static const struct at_tensor_spec specs[TENSORS] = {
    { .name = "q" },
    { .name = "k" },
    { .name = "v" },
    { .name = "query_start", .format = AT_FORMAT_I32 },
    { .name = "seq_lens", .format = AT_FORMAT_I32 },
    { .name = "key_start", .format = AT_FORMAT_I32 },
    { .name = "block_table", .format = AT_FORMAT_I32 },
    { .name = "sigma", .format = AT_FORMAT_F32 },
    { .name = "taps", .format = AT_FORMAT_F32 },
    { .name = "gamma", .format = AT_FORMAT_F32 },
    { .name = "o", .role = AT_OUT },
};
static const struct at_op op = { .name = "asynct_attention",
                                 .tensors = specs,
                                 .n_tensors = TENSORS,
                                 .kind = AT_KIND_ATTENTION,
                                 .uses = AT_ATTN_USES | AT_ATTN_GATE_USES };

/* NOLINTNEXTLINE(readability-non-const-parameter): the tensor keeps it to be written */
static void *place(struct at_rig *rig, uint8_t *base, int tensor, enum at_format format, int rank, const int64_t *shape,
                   const void *data) {
    struct at_tensor *t = &rig->problem.tensors[tensor];
    *t = (struct at_tensor){ .data = base + rig->used, .format = format, .rank = rank };
    memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
    if (data)
        memcpy(t->data, data, (size_t)at_tensor_bytes(t));
    else
        memset(t->data, 0xff, (size_t)at_tensor_bytes(t));
    rig->used += (at_tensor_bytes(t) + 255) / 256 * 256;
    return t->data;
}

at_status at_rig_place(struct at_runner *runner, int64_t offset, struct at_rig *rig) {
    static const float q[] = { 1, 2 }, k[] = { 1, 0, 0, 1, 1, 1 }, v[] = { 1, 10, 2, 20, 4, 40 };
    static const float sigma[] = { 0.375f }, taps[] = { 0.875f, -0.125f, -0.125f }, gamma[] = { 1 };
    static const int32_t query_start[] = { 0, 1 }, seq_lens[] = { 3 }, key_start[] = { 0, 3 };
    static const int64_t one[] = { 1 }, two[] = { 2 }, row[] = { 1, 1, 2 }, rows[] = { 3, 1, 2 }, filter[] = { 1, 3 };
    uint8_t *base;
    AT_TRY(at_runner_memory(runner, offset + (int64_t)TENSORS * 256, &base));
    *rig = (struct at_rig){ .problem = { .op = &op, .params = at_params_default(), .dtype = AT_F32 }, .used = offset };
    rig->problem.sizes = (struct at_sizes){
        .b = 1, .h = 1, .hk = 1, .d = 2, .tokens = 1, .slots = 3, .max_sq = 1, .max_sk = 3, .taps = 3
    };
    rig->problem.params.scale = 0.25f;
    place(rig, base, AT_ATTN_Q, AT_F32, 3, row, q);
    place(rig, base, AT_ATTN_K, AT_F32, 3, rows, k);
    place(rig, base, AT_ATTN_V, AT_F32, 3, rows, v);
    place(rig, base, AT_ATTN_QUERY_START, AT_I32, 1, two, query_start);
    place(rig, base, AT_ATTN_SEQ_LENS, AT_I32, 1, one, seq_lens);
    place(rig, base, AT_ATTN_KEY_START, AT_I32, 1, two, key_start);
    place(rig, base, SIGMA, AT_F32, 1, one, sigma);
    place(rig, base, TAPS, AT_F32, 2, filter, taps);
    place(rig, base, GAMMA, AT_F32, 1, one, gamma);
    rig->o = (float *)place(rig, base, O, AT_F32, 3, row, NULL);
    return AT_OK;
}

int at_rig_find(const struct at_runner *runner, const char *family, const char *name) {
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        if (strcmp(v->family, family) == 0 && strcmp(v->name, name) == 0)
            return i;
    }
    return -1;
}

/* ---- the kernels ---- */

enum { SCRATCH = 1000 };

static float *output(const struct at_launch *launch) { return (float *)launch->problem->tensors[O].data; }

static int good(const struct at_launch *launch) {
    output(launch)[0] = (float)AT_RIG_O0;
    output(launch)[1] = (float)AT_RIG_O1;
    return 0;
}

static int prints(const struct at_launch *launch) {
    printf("done id=0 seconds=0 bytes=0\n");
    fflush(stdout);
    return good(launch);
}

static const char *declines(const struct at_problem *problem) {
    return problem->sizes.d == 2 ? "head size 2 is too small" : NULL;
}

static int returns_7(const struct at_launch *launch) {
    (void)launch;
    return 7;
}

static int64_t some_scratch(const struct at_problem *problem) { return SCRATCH * problem->sizes.b; }
static int64_t too_much_scratch(const struct at_problem *problem) { return problem->sizes.b << 60; }

static int overruns(const struct at_launch *launch) {
    memset(launch->workspace, 0, (size_t)launch->workspace_bytes + 1);
    return good(launch);
}

static int sees_workspace(const struct at_launch *launch) {
    const float *scratch = (const float *)launch->workspace;
    int all = launch->workspace_bytes == SCRATCH && (uintptr_t)scratch % 256 == 0;
    for (size_t i = 0; i < SCRATCH / sizeof *scratch; i++)
        all = all && isnan(scratch[i]);
    output(launch)[0] = (float)all;
    return 0;
}

static int cuts_memory(const struct at_launch *launch) {
    output(launch)[0] = (float)(ftruncate(AT_INHERITED_FD, 0) != 0);
    return 0;
}

static int sees_alarm(const struct at_launch *launch) {
    output(launch)[0] = (float)alarm(60);
    return 0;
}

static int aborts(const struct at_launch *launch) {
    (void)launch;
    abort();
}

static int spins(const struct at_launch *launch) {
    for (volatile float *o = output(launch); *o != 7;)
        ;
    return 0;
}

static int sleeps(const struct at_launch *launch) {
    (void)launch;
    while (pause() != 0)
        ;
    return 0;
}

/* What a machine that is busy elsewhere does to a runner, to the full: for a while it gets no processor at all. */
static int starves(const struct at_launch *launch) {
    const pid_t runner = getpid(), helper = fork();
    if (helper == 0) {
        kill(runner, SIGSTOP);
        usleep(AT_RIG_STARVED_US);
        kill(runner, SIGCONT);
        _exit(0);
    }
    while (helper > 0 && waitpid(helper, NULL, 0) < 0)
        ;
    return helper > 0 ? good(launch) : 1;
}

#define DESCRIBED(text) .summary = (text), .source = "a test = 100 % ours"
#define PLAIN \
    { .qk_lanes = 1, .p = AT_F32, .pv_chunk = 1 }

static const struct at_kernel kernels[AT_RIG_KERNELS] = {
    [AT_RIG_GOOD] = { DESCRIBED("good"), .numerics = PLAIN, .launch = good },
    [AT_RIG_PRINTS] = { DESCRIBED("prints"), .numerics = PLAIN, .launch = prints },
    [AT_RIG_REFUSES] = { DESCRIBED("refuses"), .numerics = PLAIN, .supports = declines, .launch = good },
    [AT_RIG_RETURNS_7] = { DESCRIBED("returns 7"), .numerics = PLAIN, .launch = returns_7 },
    [AT_RIG_OVERRUNS] = { DESCRIBED("overruns"), .numerics = PLAIN, .workspace = some_scratch, .launch = overruns },
    [AT_RIG_WANTS_TOO_MUCH] = { DESCRIBED("greedy"), .numerics = PLAIN, .workspace = too_much_scratch, .launch = good },
    [AT_RIG_SEES_WORKSPACE] = { DESCRIBED("workspace"), .numerics = PLAIN, .workspace = some_scratch,
                                .launch = sees_workspace },
    [AT_RIG_CUTS_MEMORY] = { DESCRIBED("cuts"), .numerics = PLAIN, .launch = cuts_memory },
    [AT_RIG_SEES_ALARM] = { DESCRIBED("alarm"), .numerics = PLAIN, .launch = sees_alarm },
    [AT_RIG_ABORTS] = { DESCRIBED("aborts"), .numerics = PLAIN, .launch = aborts },
    [AT_RIG_SPINS] = { DESCRIBED("spins"), .numerics = PLAIN, .launch = spins },
    [AT_RIG_SLEEPS] = { DESCRIBED("sleeps"), .numerics = PLAIN, .launch = sleeps },
    [AT_RIG_STARVES] = { DESCRIBED("starves"), .numerics = PLAIN, .launch = starves },
};

static const struct at_kernel_entry *entry_at(int i) {
    static struct at_kernel_entry entry;
    static char name[16];
    snprintf(name, sizeof name, "%02d_test", i);
    entry = (struct at_kernel_entry){ "test", name, "tests/support/runner_rig.c", &kernels[i], "" };
    return &entry;
}

int at_rig_serve_list(const struct at_kernel_list *list) {
    struct at_host_device host;
    at_host_device_init(&host);
    struct at_serve serve = { .name = "test-runner",
                              .device_text = "a = b % c \"d\"\n\xc3\xa9",
                              .device = &host.device,
                              .kernels = *list,
                              .in = STDIN_FILENO,
                              .out = at_serve_claim_stdout() };
    at_serve_end_with(&serve.in);
    at_status status = at_serve(&serve);
    at_host_device_release(&host);
    return at_status_exit_code(status);
}

int at_rig_serve(void) { return at_rig_serve_list(&(struct at_kernel_list){ AT_RIG_KERNELS, entry_at }); }

at_status at_rig_open_self(struct at_runner **runner) {
    char path[4000], spec[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return AT_FAIL(AT_ENVIRONMENT, "/proc/self/exe cannot be read");
    path[n] = 0;
    snprintf(spec, sizeof spec, "exec '%s' --serve", path);
    return at_runner_open(spec, runner);
}
