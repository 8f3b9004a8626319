/* attest-cuda: the runner of the CUDA variants, on the first device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/cuda_device.h"
#include "kernels/runner/main_shared.h"
#include "kernels/runner/serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int serve(const char *name) {
    int out = at_serve_claim_stdout();
    if (out < 0) {
        fprintf(stderr, "%s: cannot set standard output aside: %s\n", name, strerror(errno));
        return at_status_exit_code(AT_ENVIRONMENT);
    }
    char device_text[256];
    struct at_cuda_device cuda;
    if (at_cuda_device_init(&cuda, device_text, sizeof device_text) != 0) {
        fprintf(stderr, "%s: %s\n", name, device_text);
        return at_status_exit_code(AT_ENVIRONMENT);
    }
    at_cuda_device_text(device_text, sizeof device_text);
    struct at_serve all = { .name = name,
                            .device_text = device_text,
                            .device = &cuda.device,
                            .kernels = { at_kernel_count(), at_kernel_at },
                            .in = STDIN_FILENO,
                            .out = out };
    at_status status = at_serve(&all);
    at_cuda_device_release(&cuda);
    return at_status_exit_code(status);
}

int main(int argc, char **argv) { return at_runner_main(argc, argv, "the first CUDA device", serve); }
