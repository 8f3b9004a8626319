/* attest-so: the runner of a shared library's kernels, in host memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/host_device.h"
#include "kernels/runner/so_main.h"

static struct at_device *open_host(void *context, char *text, size_t size) {
    struct at_host_device *host = context;
    at_host_device_init(host);
    at_host_device_text(text, size);
    return &host->device;
}

static void close_host(void *context) { at_host_device_release(context); }

int main(int argc, char **argv) {
    struct at_host_device host;
    const struct at_runner_place place = { "this machine's processor", &host, open_host, close_host, NULL };
    return at_so_main(argc, argv, &place, 1);
}
