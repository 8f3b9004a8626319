/* The first finding of a job, and the start of jobs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "kernels/simt/machine.h"
#include "kernels/simt/shadow.h"

static struct at_finding finding;

const struct at_finding *at_simt_finding(void) { return &finding; }

void at_simt_job(const struct at_simt_region *regions, int n, uint64_t seed) {
    finding = (struct at_finding){ .kind = AT_FINDING_NONE };
    at_simt_machine.random = seed;
    at_simt_machine.job_began = ++at_simt_machine.now;
    at_shadow_job(regions, n);
}

void at_simt_report(enum at_finding_kind kind, struct at_simt_place place, const char *format, ...) {
    char text[360];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (finding.kind == AT_FINDING_NONE) {
        finding.kind = kind;
        snprintf(finding.text, sizeof finding.text, "%s:%d: %s", place.file ? place.file : "an unknown place",
                 place.line, text);
    }
    at_simt_machine.stop = 1;
    while (at_simt_current) /* a kernel's thread: the scheduler does not come back */
        at_simt_wait();
}
