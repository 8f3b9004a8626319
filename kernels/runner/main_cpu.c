/* attest-cpu: the runner of the host variants (and, built from other tables, of the mutants).
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/host_device.h"
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
    at_host_device_text(device_text, sizeof device_text);
    struct at_host_device host;
    at_host_device_init(&host);
    struct at_serve all = { .name = name,
                            .device_text = device_text,
                            .device = &host.device,
                            .kernels = { at_kernel_count(), at_kernel_at },
                            .in = STDIN_FILENO,
                            .out = out };
    at_status status = at_serve(&all);
    at_host_device_release(&host);
    return at_status_exit_code(status);
}

int main(int argc, char **argv) { return at_runner_main(argc, argv, "this machine's processor", serve); }
