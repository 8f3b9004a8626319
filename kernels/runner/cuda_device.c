/* Copies, workspaces and launches on a CUDA device.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An error that the device reports after a launch may stay with the whole process (an illegal address does): the runner
 * says which and ends, the job is CRASHED, and the next one gets a fresh process. */
#include "kernels/runner/cuda_device.h"

#include "kernels/runner/cuda_graph.h"
#include "kernels/runner/cuda_sequence.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WORKSPACE_OVERRUN = 100001, GUARD = 256, POISON = 0xff, GUARD_BYTE = 0xa5 };

static struct at_cuda_device *cuda_of(struct at_device *device) { return (struct at_cuda_device *)device->state; }

/* Runners of one device share its memory: what a large case takes of it is given back by the runner that had it when a
 * smaller one comes. Waits at most WAIT_MS; an allocation that fails is no lasting error. */
static int allocate(uint8_t **memory, int64_t bytes) {
    enum { STEP_MS = 20, WAIT_MS = 60000 };
    const struct timespec step = { 0, STEP_MS * 1000000 };
    for (int waited = 0;; waited += STEP_MS) {
        const int code = (int)cudaMalloc((void **)memory, (size_t)bytes);
        if (code == cudaSuccess)
            return code;
        cudaGetLastError();
        if (code != (int)cudaErrorMemoryAllocation || waited >= WAIT_MS)
            return code;
        nanosleep(&step, NULL);
    }
}

/* Enough is kept as it is, unless it is large and four times what is wanted. */
static int grow(uint8_t **memory, int64_t *have, int64_t bytes) {
    enum { LARGE = 1 << 30 };
    if (*memory && bytes <= *have && (*have < LARGE || *have / 4 < bytes))
        return cudaSuccess;
    if (*memory) /* it may be had again at the same address: nothing that was kept of it shall read right values */
        cudaMemset(*memory, POISON, (size_t)*have);
    cudaFree(*memory);
    *memory = NULL;
    *have = 0;
    const int code = allocate(memory, bytes);
    if (code == cudaSuccess)
        *have = bytes;
    return code;
}

/* Copies the block, or of one larger than 1 GiB the runs of its pages that are in memory: the rest of a large pool is
 * nobody's, has never been touched, and would take memory on the host by being read. */
static int copy_block(uint8_t *to, const uint8_t *from, const uint8_t *host, int64_t used, enum cudaMemcpyKind kind) {
    enum { WHOLE = 1 << 30 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = ((size_t)used + page - 1) / page;
    unsigned char *resident = used > WHOLE ? malloc(pages) : NULL;
    int code = cudaSuccess;
    if (!resident || mincore((void *)(uintptr_t)host, (size_t)used, resident) != 0) {
        free(resident);
        return (int)cudaMemcpy(to, from, (size_t)used, kind);
    }
    for (size_t first = 0, end; first < pages && code == cudaSuccess; first = end) {
        for (end = first + 1; end < pages && (resident[end] & 1) == (resident[first] & 1);)
            end++;
        const size_t at = first * page, bytes = (end < pages ? end * page : (size_t)used) - at;
        if (resident[first] & 1)
            code = (int)cudaMemcpy(to + at, from + at, bytes, kind);
    }
    free(resident);
    return code;
}

static int load(struct at_device *device, void *host, int64_t used, void **base) {
    struct at_cuda_device *cuda = cuda_of(device);
    /* Room for the launch that attest makes behind this one's tensors: the block would move else, and with it what a
     * variant keeps of addresses would lead out of it. */
    enum { ROOM = 64 << 20 };
    int code = grow(&cuda->block, &cuda->block_bytes, used + (used < ROOM ? used : ROOM) + 4096);
    if (code == cudaSuccess)
        code = copy_block(cuda->block, host, host, used, cudaMemcpyHostToDevice);
    *base = cuda->block;
    return code;
}

static int store(struct at_device *device, void *host, int64_t used) {
    return copy_block(host, cuda_of(device)->block, host, used, cudaMemcpyDeviceToHost);
}

static int workspace(struct at_device *device, int64_t bytes, void **memory) {
    struct at_cuda_device *cuda = cuda_of(device);
    int code = grow(&cuda->scratch, &cuda->scratch_bytes, bytes + GUARD);
    if (code == cudaSuccess)
        code = (int)cudaMemset(cuda->scratch, POISON, (size_t)bytes);
    if (code == cudaSuccess)
        code = (int)cudaMemset(cuda->scratch + bytes, GUARD_BYTE, GUARD);
    cuda->wanted = bytes;
    *memory = cuda->scratch;
    return code;
}

static void give_up(const char *doing, int code) {
    fprintf(stderr, "attest-cuda: %s: error %d, %s: %s\n", doing, code, cudaGetErrorName((cudaError_t)code),
            cudaGetErrorString((cudaError_t)code));
    fflush(stderr);
    _exit(70);
}

static int guard_damaged(const struct at_cuda_device *cuda) {
    uint8_t guard[GUARD];
    if (cudaMemcpy(guard, cuda->scratch + cuda->wanted, GUARD, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 1;
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != GUARD_BYTE)
            return 1;
    return 0;
}

/* Puts the launch on the stream, or the replay of a graph that it was captured in. */
static int put(struct at_cuda_device *cuda, const struct at_kernel *kernel, const struct at_launch *launch, int graph) {
    cudaStream_t stream = (cudaStream_t)cuda->stream;
    cudaGraphExec_t exec = NULL;
    if (!graph)
        return kernel->launch(launch);
    int code = at_cuda_capture_begin(stream);
    if (code == cudaSuccess)
        code = kernel->launch(launch);
    code = at_cuda_capture_end(stream, code, &exec);
    if (code == cudaSuccess)
        code = (int)cudaGraphLaunch(exec, stream);
    if (exec)
        cudaGraphExecDestroy(exec); /* a running one lives on until it has ended */
    return code;
}

static int run(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *launch,
               const struct at_run_mode *mode, struct at_reply *reply) {
    struct at_cuda_device *cuda = cuda_of(device);
    struct at_launch on_stream = *launch;
    float milliseconds = 0;
    on_stream.stream = cuda->stream;
    cudaDeviceSynchronize();
    cudaEventRecord((cudaEvent_t)cuda->start, (cudaStream_t)cuda->stream);
    int code = put(cuda, kernel, &on_stream, mode->graph);
    if (code == cudaSuccess)
        code = (int)cudaEventRecord((cudaEvent_t)cuda->stop, (cudaStream_t)cuda->stream);
    const int done = (int)cudaDeviceSynchronize();
    if (done != cudaSuccess)
        give_up("after the launch", done);
    if (code != cudaSuccess) {
        cudaGetLastError();
        return code;
    }
    if (cudaEventElapsedTime(&milliseconds, (cudaEvent_t)cuda->start, (cudaEvent_t)cuda->stop) != cudaSuccess)
        milliseconds = 0;
    reply->seconds = milliseconds / 1000.0;
    reply->capturable = 1;
    return guard_damaged(cuda) ? WORKSPACE_OVERRUN : 0;
}

static int time_launch(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *launch,
                       int64_t used, int replays, struct at_timing *timing) {
    struct at_cuda_device *cuda = cuda_of(device);
    const struct at_cuda_work work = { .kernel = kernel,
                                       .launch = launch,
                                       .block = cuda->block,
                                       .used = used,
                                       .stream = cuda->stream,
                                       .cache_bytes = cuda->cache_bytes };
    const int code = at_cuda_time(&work, replays, timing);
    const int done = (int)cudaDeviceSynchronize();
    if (done != cudaSuccess)
        give_up("while timing", done);
    cudaGetLastError();
    return code;
}

static int sequence(struct at_device *device, const struct at_device_step *steps, int n, int64_t used, int replays,
                    struct at_step_cost *costs, struct at_reply *reply, int *step) {
    struct at_cuda_device *cuda = cuda_of(device);
    struct at_cuda_sequence all = { .steps = steps,
                                    .n = n,
                                    .replays = replays,
                                    .block = cuda->block,
                                    .used = used,
                                    .stream = (cudaStream_t)cuda->stream };
    int64_t most = 0;
    for (int i = 0; i < n; i++)
        most = steps[i].workspace_bytes > most ? steps[i].workspace_bytes : most;
    int code = workspace(device, most, &all.workspace);
    if (code == cudaSuccess)
        code = at_cuda_replay(&all, costs, &reply->seconds, step);
    const int done = (int)cudaDeviceSynchronize();
    if (done != cudaSuccess)
        give_up("while replaying a sequence", done);
    cudaGetLastError();
    for (int i = 0; i < n; i++)
        reply->launches += (int64_t)costs[i].kernels;
    return code == cudaSuccess && guard_damaged(cuda) ? WORKSPACE_OVERRUN : code;
}

static const char *error_text(int code) {
    return code == WORKSPACE_OVERRUN ? "the kernel wrote past the workspace it asked for"
                                     : cudaGetErrorString((cudaError_t)code);
}

int at_cuda_device_init(struct at_cuda_device *cuda, char *text, size_t size) {
    int n = 0;
    *cuda = (struct at_cuda_device){ .device = { .load = load,
                                                 .workspace = workspace,
                                                 .run = run,
                                                 .time = time_launch,
                                                 .keeps_timed = 1,
                                                 .sequence = sequence,
                                                 .store = store,
                                                 .error = error_text } };
    cuda->device.state = cuda;
    const cudaError_t code = cudaGetDeviceCount(&n);
    if (code == cudaErrorInsufficientDriver) {
        int driver = 0;
        cudaDriverGetVersion(&driver); /* 0: there is no driver at all */
        snprintf(text, size,
                 driver ? "the NVIDIA driver is for CUDA %d.%d, this program wants %d.%d; update the driver, or use "
                          "--runner cpu"
                        : "no NVIDIA driver; use --runner cpu, or a machine with an NVIDIA GPU and its driver",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
        return -1;
    }
    if (code != cudaSuccess || n == 0) {
        snprintf(text, size, "no CUDA device: %s; use --runner cpu, or a machine with an NVIDIA GPU and its driver",
                 code == cudaSuccess ? "none is there" : cudaGetErrorString(code));
        return -1;
    }
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess || cudaSetDevice(0) != cudaSuccess ||
        cudaEventCreate((cudaEvent_t *)&cuda->start) != cudaSuccess ||
        cudaEventCreate((cudaEvent_t *)&cuda->stop) != cudaSuccess ||
        cudaStreamCreateWithFlags((cudaStream_t *)&cuda->stream, cudaStreamNonBlocking) != cudaSuccess) {
        snprintf(text, size, "the CUDA device cannot be used: %s", cudaGetErrorString(cudaGetLastError()));
        return -1;
    }
    if (properties.major < 8) {
        snprintf(text, size, "%s has compute capability %d.%d; these kernels want 8.0 or more", properties.name,
                 properties.major, properties.minor);
        return -1;
    }
    cuda->cache_bytes = properties.l2CacheSize;
    return 0;
}

void at_cuda_device_release(struct at_cuda_device *cuda) {
    cudaFree(cuda->block);
    cudaFree(cuda->scratch);
    cuda->block = cuda->scratch = NULL;
}

void at_cuda_device_text(char *text, size_t size) {
    struct cudaDeviceProp properties;
    int driver = 0, runtime = 0;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
        snprintf(text, size, "CUDA device");
        return;
    }
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    snprintf(text, size, "%s, sm_%d%d, driver %d.%d, runtime %d.%d", properties.name, properties.major,
             properties.minor, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}
