/* A host device below launch files, and the conversation of a runner that has them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/launch_rig.h"

#include "kernels/runner/host_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct at_host_device host;

static int run_often(struct at_device *below, const struct at_kernel *kernel, const struct at_launch *launch,
                     int64_t used, int replays, struct at_timing *timing) {
    struct at_launch own = *launch;
    int code = 0;
    (void)below;
    (void)used;
    own.workspace = calloc((size_t)launch->workspace_bytes + 1, 1);
    for (int i = 0; i < replays && !code; i++)
        code = kernel->launch(&own);
    free(own.workspace);
    *timing = (struct at_timing){ .cold = 1e-3, .hot = 5e-4, .copy_rate = 4e12, .replays = replays, .copies = 1 };
    return code;
}

struct at_device *at_launch_rig_open(const char *driver) {
    at_host_device_init(&host);
    host.device.time = run_often;
    return at_launch_device_open(&host.device, driver);
}

void at_launch_rig_close(void) {
    at_launch_device_close();
    at_host_device_release(&host);
}

int at_launch_rig_serve(const char *driver, int argc, char **argv) {
    const int out = at_serve_claim_stdout();
    for (int i = 1; i + 1 < argc; i += 2)
        if (at_launch_files_add(argv[i + 1]) != AT_OK) {
            fprintf(stderr, "launch files: %s\n", at_error_message());
            return at_status_exit_code(AT_USAGE);
        }
    struct at_device *device = at_launch_rig_open(driver);
    if (out < 0 || !device) {
        fprintf(stderr, "launch files: %s\n", at_error_message());
        return at_status_exit_code(AT_ENVIRONMENT);
    }
    static struct at_serve all; /* a thread looks at its descriptor */
    all = (struct at_serve){ .name = "launch files",
                             .device_text = "a driver of the tests",
                             .device = device,
                             .kernels = at_launch_files_list(),
                             .in = STDIN_FILENO,
                             .out = out };
    at_serve_end_with(&all.in);
    const at_status status = at_serve(&all);
    at_launch_rig_close();
    return at_status_exit_code(status);
}
