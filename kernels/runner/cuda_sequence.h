/* The steps of a sequence as one CUDA graph: its nodes, and the time of a replay and of each step in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CUDA_SEQUENCE_H
#define AT_CUDA_SEQUENCE_H

#include "kernels/runner/serve.h"

#include <cuda_runtime_api.h>

struct at_cuda_sequence {
    const struct at_device_step *steps;
    int n, replays;
    uint8_t *block; /* as it was loaded; what the last replay left, afterwards */
    int64_t used;
    void *workspace; /* of all steps in turn */
    cudaStream_t stream;
};

/* Median seconds of a replay from its first node's start to its last one's end; costs of each step, their seconds from a second
 * graph with an event behind each. Before each replay the block is as it was loaded, by a copy that leaves little else in L2. 0 or
 * a CUDA error, of step *step. */
int at_cuda_replay(const struct at_cuda_sequence *sequence, struct at_step_cost *costs, double *seconds, int *step);

#endif
