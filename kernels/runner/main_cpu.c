/* attest-cpu: the runner of the host variants (and, built from other tables, of the mutants).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/blas_alone.h"
#include "attest/blas_core.h"
#include "kernels/runner/coverage.h"
#include "kernels/runner/host_device.h"
#include "kernels/runner/main_shared.h"
#include "kernels/simt/simt_job.h"

/* AT_SIMT_WITHOUT=FILE:LINE: kernels run as if that one barrier, fence, wait or commit had been deleted. */
static int leave_out(char *text, size_t size) {
    const char *place = getenv("AT_SIMT_WITHOUT"), *colon = place ? strrchr(place, ':') : NULL;
    static char file[256];
    char *end = NULL;
    if (!place)
        return 1;
    const long line = colon ? strtol(colon + 1, &end, 10) : 0;
    if (line < 1 || line > 1000000 || *end || colon == place || colon - place >= (long)sizeof file) {
        snprintf(text, size, "AT_SIMT_WITHOUT=%.100s: wanted FILE:LINE", place);
        return 0;
    }
    memcpy(file, place, (size_t)(colon - place));
    at_simt_leave_out((struct at_simt_place){ file, (int)line });
    return 1;
}

/* AT_ONLY_KERNEL=FAMILY/NAME: no other kernel is listed. A list of hundreds costs more than most jobs of a mutant. */
static const struct at_kernel_entry *only;
static const struct at_kernel_entry *only_at(int i) { return i == 0 ? only : NULL; }

static void choose_only(const char *name) {
    char path[160];
    for (int i = 0; name && !only && i < at_kernel_count(); i++) {
        const struct at_kernel_entry *entry = at_kernel_at(i);
        snprintf(path, sizeof path, "%s/%s", entry->family, entry->name);
        if (strcmp(path, name) == 0)
            only = entry;
    }
}

static struct at_device *open_host(void *context, char *text, size_t size) {
    struct at_host_device *host = context;
    const char *name = getenv("AT_ONLY_KERNEL");
    if (!leave_out(text, size))
        return NULL;
    if (name && !only) {
        snprintf(text, size, "AT_ONLY_KERNEL=%.100s: no such kernel; --list names all", name);
        return NULL;
    }
    at_host_device_init(host);
    host->fail_each = getenv("AT_SIMT_CALLS_FAIL") != NULL;
    at_host_device_text(text, size);
    return &host->device;
}

static void close_host(void *context) { at_host_device_release(context); }

int main(int argc, char **argv) {
    struct at_host_device host;
    struct at_runner_place place = { "this machine's processor", &host, open_host, close_host, at_coverage_write };
    choose_only(getenv("AT_ONLY_KERNEL"));
    if (only)
        place.kernels = (struct at_kernel_list){ 1, only_at, at_kernel_mutant_of };
    at_blas_alone();
    at_blas_core_choose();
    return at_runner_main(argc, argv, &place);
}
