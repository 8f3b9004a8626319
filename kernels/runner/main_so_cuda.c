/* attest-so-cuda: the runner of a shared library's kernels, in the memory of the first CUDA device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/cuda_device.h"
#include "kernels/runner/so_main.h"

static struct at_device *open_cuda(void *context, char *text, size_t size) {
    struct at_cuda_device *cuda = context;
    if (at_cuda_device_init(cuda, text, size) != 0)
        return NULL;
    at_cuda_device_text(text, size);
    return &cuda->device;
}

static void close_cuda(void *context) { at_cuda_device_release(context); }

int main(int argc, char **argv) {
    struct at_cuda_device cuda;
    const struct at_runner_place place = { "the first CUDA device", &cuda, open_cuda, close_cuda, NULL };
    return at_so_main(argc, argv, &place, 2);
}
