/* attest-cuda: the runner of the CUDA variants, or of launch files, on the first device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/launch_device.h"
#include "kernels/runner/cuda_device.h"
#include "kernels/runner/main_shared.h"

#include <stdio.h>
#include <string.h>

static struct at_device *open_cuda(void *context, char *text, size_t size) {
    struct at_cuda_device *cuda = context;
    if (at_cuda_device_init(cuda, text, size) != 0)
        return NULL;
    struct at_device *device = &cuda->device;
    if (at_launch_files_list().n) /* the runtime's context is this thread's now */
        device = at_launch_device_open(device, "libcuda.so.1");
    if (device)
        at_cuda_device_text(text, size);
    else
        snprintf(text, size, "%s", at_error_message());
    return device;
}

static void close_cuda(void *context) {
    at_launch_device_close();
    at_cuda_device_release(context);
}

/* Takes `--load FILE` out of the arguments, which may come more than once. -1: said why not. */
static int take_files(int *argc, char **argv) {
    int n = 0;
    for (int i = 0; i < *argc; i++) {
        if (i == 0 || strcmp(argv[i], "--load") != 0) {
            argv[n++] = argv[i];
            continue;
        }
        if (i + 1 == *argc) {
            fprintf(stderr, "attest-cuda: --load wants a launch file\n");
            return -1;
        }
        if (at_launch_files_add(argv[++i]) != AT_OK) {
            fprintf(stderr, "attest-cuda: %s\n", at_error_message());
            return -1;
        }
    }
    *argc = n;
    return 0;
}

int main(int argc, char **argv) {
    struct at_cuda_device cuda;
    struct at_runner_place place = { .words = "the first CUDA device",
                                     .context = &cuda,
                                     .open = open_cuda,
                                     .close = close_cuda,
                                     .more_help =
                                         "       --load FILE, once or more, before these: the variants of launch files "
                                         "instead (kernels/launch/README.md)\n" };
    if (take_files(&argc, argv) != 0)
        return at_status_exit_code(AT_USAGE);
    place.kernels = at_launch_files_list();
    return at_runner_main(argc, argv, &place);
}
