/* CUDA graphs: capturing launches, and timing replays of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CUDA_GRAPH_H
#define AT_CUDA_GRAPH_H

#include "attest/kernel.h"
#include "attest/run_mode.h"

#include <cuda_runtime_api.h>

/* Begins a capture; what is put on another stream meanwhile that has an order with it is an error. */
int at_cuda_capture_begin(cudaStream_t stream);
/* Ends it, also after a launch that failed with `code`, and instantiates the graph unless it did. 0 or an error. */
int at_cuda_capture_end(cudaStream_t stream, int code, cudaGraphExec_t *exec);

/* The median of n times, which are sorted by it; seconds. */
double at_cuda_median_seconds(float *milliseconds, int n);

/* A launch to be timed, and the block its tensors lie in. */
struct at_cuda_work {
    const struct at_kernel *kernel;
    const struct at_launch *launch; /* its workspace is not used: each copy has its own */
    uint8_t *block;
    int64_t used;
    void *stream;
    int64_t cache_bytes;
};

/* Median seconds of one launch among `replays` replays of two graphs, measured by events that are nodes of the graphs.
 * Cold: launches on copies of the block in turn, whose bytes are at least twice those of the cache. Hot: launches on
 * one copy. Before the last cold replay the copies get the bytes of the block again, outputs as the job had them, and behind it
 * the block gets those of a copy that is drawn: what is judged is of a launch whose time counts. 0 or a CUDA error;
 * cudaErrorMemoryAllocation when the copies do not fit. */
int at_cuda_time(const struct at_cuda_work *work, int replays, struct at_timing *timing);

#endif
