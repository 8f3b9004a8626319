/* Copies of a problem, graphs of launches on them, and events inside the graphs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/cuda_graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ALIGN = 512, FEWEST_COPIES = 4, MAX_COPIES = 256, LAUNCHES = 20, WARM_UPS = 3 };
#define BYTES_OF_LAUNCHES ((int64_t)2 << 30) /* the most for copies beyond those that the cache asks for */

int at_cuda_capture_begin(cudaStream_t stream) {
    return (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
}

int at_cuda_capture_end(cudaStream_t stream, int code, cudaGraphExec_t *exec) {
    cudaGraph_t graph = NULL;
    const int ended = (int)cudaStreamEndCapture(stream, &graph);
    *exec = NULL;
    if (code == cudaSuccess)
        code = ended;
    if (code == cudaSuccess)
        code = (int)cudaGraphInstantiate(exec, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return code;
}

/* Copies of the block and of the workspace, contiguous. */
struct copies {
    uint8_t *memory;
    int64_t stride, block_bytes;
    int n;
};

static int fill_copies(const struct at_cuda_work *work, const struct copies *c) {
    int code = cudaSuccess;
    for (int i = 0; i < c->n && code == cudaSuccess; i++)
        code = (int)cudaMemcpyAsync(c->memory + i * c->stride, work->block, (size_t)work->used,
                                    cudaMemcpyDeviceToDevice, (cudaStream_t)work->stream);
    return code;
}

/* As many as outgrow the cache twice, whatever one of them takes; and one for each of 20 launches where 2 GiB hold them: what
 * the events and the start of a graph take, about a microsecond, is shared by its launches. On the stream of the launches:
 * it waits for no other, and a copy within the device returns before it is made. */
static int make_copies(const struct at_cuda_work *work, struct copies *c) {
    c->block_bytes = (work->used + ALIGN - 1) / ALIGN * ALIGN;
    c->stride = c->block_bytes + (work->launch->workspace_bytes + ALIGN - 1) / ALIGN * ALIGN;
    const int64_t fit = c->stride > 0 ? BYTES_OF_LAUNCHES / c->stride : 0, fewest = fit < LAUNCHES ? fit : LAUNCHES;
    int64_t wanted = c->block_bytes > 0 ? 2 * work->cache_bytes / c->block_bytes + 1 : 0;
    wanted = wanted < fewest ? fewest : wanted;
    c->n = (int)(wanted < FEWEST_COPIES ? FEWEST_COPIES : wanted > MAX_COPIES ? MAX_COPIES : wanted);
    const int code = (int)cudaMalloc((void **)&c->memory, (size_t)(c->stride * c->n + ALIGN));
    return code == cudaSuccess ? fill_copies(work, c) : code;
}

/* Which one, nobody knows before: a launch that is right on one of them alone is not right. */
static int bring_one_back(const struct at_cuda_work *work, const struct copies *c) {
    uint32_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        drawn = 0;
    return (int)cudaMemcpyAsync(work->block, c->memory + (int64_t)(drawn % (uint32_t)c->n) * c->stride,
                                (size_t)work->used, cudaMemcpyDeviceToDevice, (cudaStream_t)work->stream);
}

/* The launch on copy i: every tensor where it lies in the copy. */
static int launch_on(const struct at_cuda_work *work, const struct copies *c, int i) {
    struct at_problem problem = *work->launch->problem;
    struct at_launch launch = *work->launch;
    uint8_t *copy = c->memory + i * c->stride;
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        if (problem.tensors[t].data)
            problem.tensors[t].data = copy + ((const uint8_t *)problem.tensors[t].data - work->block);
    launch.problem = &problem;
    launch.workspace = copy + c->block_bytes;
    launch.stream = work->stream;
    return work->kernel->launch(&launch);
}

/* A graph of n launches on copies 0, step, 2 step, ... between two events. */
static int capture(const struct at_cuda_work *work, const struct copies *c, int n, int step, cudaEvent_t events[2],
                   cudaGraphExec_t *exec) {
    cudaStream_t stream = (cudaStream_t)work->stream;
    int code = at_cuda_capture_begin(stream);
    if (code == cudaSuccess)
        code = (int)cudaEventRecordWithFlags(events[0], stream, cudaEventRecordExternal);
    for (int i = 0; i < n && code == cudaSuccess; i++)
        code = launch_on(work, c, i * step % c->n);
    if (code == cudaSuccess)
        code = (int)cudaEventRecordWithFlags(events[1], stream, cudaEventRecordExternal);
    return at_cuda_capture_end(stream, code, exec);
}

static int by_value(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double at_cuda_median_seconds(float *milliseconds, int n) {
    qsort(milliseconds, (size_t)n, sizeof *milliseconds, by_value);
    return milliseconds[n / 2] / 1000.0;
}

/* Median over replays, in seconds a launch. `fresh`: copies that are filled again before the last replay; NULL: none. */
static int replay(cudaGraphExec_t exec, const struct at_cuda_work *work, const struct copies *fresh, int replays,
                  int launches, cudaEvent_t events[2], double *seconds) {
    cudaStream_t stream = (cudaStream_t)work->stream;
    int code = cudaSuccess;
    float *milliseconds = calloc((size_t)replays, sizeof *milliseconds);
    if (!milliseconds)
        return cudaErrorMemoryAllocation;
    for (int i = -WARM_UPS; i < replays && code == cudaSuccess; i++) {
        float once = 0;
        if (fresh && i == replays - 1)
            code = fill_copies(work, fresh);
        if (code == cudaSuccess)
            code = (int)cudaGraphLaunch(exec, stream);
        if (code == cudaSuccess)
            code = (int)cudaStreamSynchronize(stream);
        if (code == cudaSuccess)
            code = (int)cudaEventElapsedTime(&once, events[0], events[1]);
        if (i >= 0)
            milliseconds[i] = once;
    }
    *seconds = at_cuda_median_seconds(milliseconds, replays) / launches;
    free(milliseconds);
    return code;
}

static int time_graph(const struct at_cuda_work *work, const struct copies *c, int launches, int step, int replays,
                      cudaEvent_t events[2], double *seconds) {
    cudaGraphExec_t exec = NULL;
    int code = capture(work, c, launches, step, events, &exec);
    if (code == cudaSuccess)
        code = replay(exec, work, step ? c : NULL, replays, launches, events, seconds);
    if (code == cudaSuccess && step)
        code = bring_one_back(work, c);
    if (exec)
        cudaGraphExecDestroy(exec);
    return code;
}

/* What a large copy within the device reads and writes in a second: the best of a few. */
static int measure_copy(cudaStream_t stream, cudaEvent_t events[2], double *rate) {
    const size_t bytes = (size_t)1 << 30;
    uint8_t *memory = NULL;
    int code = (int)cudaMalloc((void **)&memory, 2 * bytes);
    *rate = 0;
    for (int i = -WARM_UPS; i < 10 && code == cudaSuccess; i++) {
        float milliseconds = 0;
        cudaEventRecord(events[0], stream);
        cudaMemcpyAsync(memory, memory + bytes, bytes, cudaMemcpyDeviceToDevice, stream);
        cudaEventRecord(events[1], stream);
        code = (int)cudaStreamSynchronize(stream);
        if (code == cudaSuccess)
            code = (int)cudaEventElapsedTime(&milliseconds, events[0], events[1]);
        const double now = 2.0 * (double)bytes / (milliseconds / 1000.0);
        if (i >= 0 && milliseconds > 0 && now > *rate)
            *rate = now;
    }
    cudaFree(memory);
    return code;
}

int at_cuda_time(const struct at_cuda_work *work, int replays, struct at_timing *timing) {
    struct copies c = { 0 };
    cudaEvent_t events[2] = { NULL, NULL };
    int code = make_copies(work, &c);
    for (int i = 0; i < 2 && code == cudaSuccess; i++)
        code = (int)cudaEventCreate(&events[i]);
    if (code == cudaSuccess)
        code = time_graph(work, &c, c.n, 1, replays, events, &timing->cold);
    if (code == cudaSuccess)
        code = time_graph(work, &c, LAUNCHES, 0, replays, events, &timing->hot);
    if (code == cudaSuccess)
        code = measure_copy((cudaStream_t)work->stream, events, &timing->copy_rate);
    timing->replays = replays;
    timing->copies = c.n;
    for (int i = 0; i < 2; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    cudaFree(c.memory);
    return code;
}
