/* A CUDA device behind the runner's struct at_device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CUDA_DEVICE_H
#define AT_CUDA_DEVICE_H

#include "kernels/runner/serve.h"

/* Device memory that grows and is kept: the block's copy, and the workspace with a guard band behind it. */
struct at_cuda_device {
    struct at_device device;
    uint8_t *block, *scratch;
    int64_t block_bytes, scratch_bytes, wanted;
    void *start, *stop;  /* cudaEvent_t */
    void *stream;        /* cudaStream_t, one that does not wait for the default stream */
    int64_t cache_bytes; /* of L2 */
};

/* Takes the first device. 0, or -1 with one line of why not and what to do in `text`. */
int at_cuda_device_init(struct at_cuda_device *cuda, char *text, size_t size);
void at_cuda_device_release(struct at_cuda_device *cuda);
/* Name, architecture, and the driver's and runtime's versions. */
void at_cuda_device_text(char *text, size_t size);

#endif
