/* Capturing the steps of a sequence, counting its nodes, timing replays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/cuda_sequence.h"

#include "kernels/runner/cuda_graph.h"

#include <stdlib.h>

enum { WARM_UPS = 3 };

static int launch_step(const struct at_cuda_sequence *s, int i) {
    const struct at_launch launch = { .problem = &s->steps[i].problem,
                                      .workspace = s->workspace,
                                      .workspace_bytes = s->steps[i].workspace_bytes,
                                      .stream = s->stream };
    return s->steps[i].kernel->launch(&launch);
}

/* ---- nodes ---- */

static int count_nodes(cudaGraph_t graph, struct at_step_cost *cost) {
    size_t n = 0;
    int code = (int)cudaGraphGetNodes(graph, NULL, &n);
    cudaGraphNode_t *nodes = calloc(n + 1, sizeof *nodes);
    if (!nodes)
        return cudaErrorMemoryAllocation;
    if (code == cudaSuccess && n)
        code = (int)cudaGraphGetNodes(graph, nodes, &n);
    for (size_t i = 0; i < n && code == cudaSuccess; i++) {
        enum cudaGraphNodeType type;
        code = (int)cudaGraphNodeGetType(nodes[i], &type);
        cost->kernels += type == cudaGraphNodeTypeKernel;
        cost->others += type != cudaGraphNodeTypeKernel;
    }
    free(nodes);
    return code;
}

/* Each step captured alone: what it puts into the graph. */
static int count_each(const struct at_cuda_sequence *s, struct at_step_cost *costs, int *step) {
    int code = cudaSuccess;
    for (*step = 0; *step < s->n && code == cudaSuccess; ++*step) {
        cudaGraph_t graph = NULL;
        code = at_cuda_capture_begin(s->stream);
        if (code == cudaSuccess)
            code = launch_step(s, *step);
        const int ended = (int)cudaStreamEndCapture(s->stream, &graph);
        code = code == cudaSuccess ? ended : code;
        if (code == cudaSuccess)
            code = count_nodes(graph, &costs[*step]);
        if (graph)
            cudaGraphDestroy(graph);
        if (code != cudaSuccess)
            return code;
    }
    return code;
}

/* ---- graphs ---- */

static int record(cudaEvent_t event, cudaStream_t stream) {
    return (int)cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal);
}

/* All steps between events[0] and events[1]; with `each`, an event of its own behind every step: events[1 + i]. */
static int capture_all(const struct at_cuda_sequence *s, cudaEvent_t *events, int each, cudaGraphExec_t *exec,
                       int *step) {
    int code = at_cuda_capture_begin(s->stream);
    if (code == cudaSuccess)
        code = record(events[0], s->stream);
    for (*step = 0; *step < s->n && code == cudaSuccess; ++*step) {
        code = launch_step(s, *step);
        if (code == cudaSuccess && (each || *step == s->n - 1))
            code = record(events[each ? 1 + *step : 1], s->stream);
        if (code != cudaSuccess)
            break;
    }
    return at_cuda_capture_end(s->stream, code, exec);
}

static int replay_once(const struct at_cuda_sequence *s, const uint8_t *loaded, cudaGraphExec_t exec) {
    int code = (int)cudaMemcpyAsync(s->block, loaded, (size_t)s->used, cudaMemcpyDeviceToDevice, s->stream);
    if (code == cudaSuccess)
        code = (int)cudaGraphLaunch(exec, s->stream);
    return code == cudaSuccess ? (int)cudaStreamSynchronize(s->stream) : code;
}

/* Medians of the `spans` times between neighbouring events, over replays: to out[0], out[stride], ... */
static int time_spans(const struct at_cuda_sequence *s, const uint8_t *loaded, cudaEvent_t *events, int spans,
                      double *out, int stride, int *step) {
    cudaGraphExec_t exec = NULL;
    float *times = calloc((size_t)spans * (size_t)s->replays + 1, sizeof *times);
    int code = times ? capture_all(s, events, spans > 1, &exec, step) : (int)cudaErrorMemoryAllocation;
    for (int r = -WARM_UPS; r < s->replays && code == cudaSuccess; r++) {
        code = replay_once(s, loaded, exec);
        for (int i = 0; r >= 0 && i < spans && code == cudaSuccess; i++)
            code =
                (int)cudaEventElapsedTime(&times[(size_t)i * (size_t)s->replays + (size_t)r], events[i], events[i + 1]);
    }
    for (int i = 0; i < spans && code == cudaSuccess; i++) {
        float *of = &times[(size_t)i * (size_t)s->replays];
        out[(size_t)i * (size_t)stride] = at_cuda_median_seconds(of, s->replays);
    }
    if (exec)
        cudaGraphExecDestroy(exec);
    free(times);
    return code;
}

int at_cuda_replay(const struct at_cuda_sequence *s, struct at_step_cost *costs, double *seconds, int *step) {
    uint8_t *loaded = NULL;
    cudaEvent_t *events = calloc((size_t)s->n + 1, sizeof *events);
    enum { STRIDE = sizeof *costs / sizeof(double) };
    int code = events ? count_each(s, costs, step) : (int)cudaErrorMemoryAllocation;
    for (int i = 0; i <= s->n && code == cudaSuccess; i++)
        code = (int)cudaEventCreate(&events[i]);
    if (code == cudaSuccess)
        code = (int)cudaMalloc((void **)&loaded, (size_t)s->used);
    if (code == cudaSuccess)
        code = (int)cudaMemcpyAsync(loaded, s->block, (size_t)s->used, cudaMemcpyDeviceToDevice, s->stream);
    if (code == cudaSuccess)
        code = time_spans(s, loaded, events, s->n, &costs->seconds, STRIDE, step);
    if (code == cudaSuccess) /* last: what it leaves is what is judged */
        code = time_spans(s, loaded, events, 1, seconds, 1, step);
    cudaFree(loaded);
    for (int i = 0; events && i <= s->n; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    free(events);
    return code;
}
