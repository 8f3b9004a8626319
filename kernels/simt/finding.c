/* The first finding of a job, and the start of jobs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/simt/counters.h"
#include "kernels/simt/machine.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/source_place.h"

static struct at_finding finding;
static char words[360];           /* of the finding, without its place */
static const void *finding_where; /* its return address, until the place is known */

const struct at_finding *at_simt_finding(void) { return &finding; }

void at_simt_job(const struct at_simt_region *regions, int n, uint64_t seed) {
    struct at_simt_machine *m = &at_simt_machine;
    finding = (struct at_finding){ .kind = AT_FINDING_NONE };
    finding_where = NULL;
    m->random = seed;
    m->seeded = seed != 0;
    m->stream = NULL;
    m->path = 0;
    m->unchecked = 0;
    at_counters_job();
    at_shadow_job();
    if (m->stop) /* a finding may have left reads in flight */
        at_memory_forget();
    if (m->now > UINT32_MAX / 2) /* the other half is enough for any job */
        at_simt_begin_time();
    m->job_began = ++m->now;
    at_memory_job(regions, n);
}

void at_simt_unchecked(int on) { at_simt_machine.unchecked = on; }

int64_t at_simt_path(void) { return (int64_t)(at_simt_machine.path & INT64_MAX); }

void at_simt_expect_stream(const void *stream) { at_simt_machine.stream = stream; }

static void put_place(struct at_simt_place place) {
    if (place.file && strncmp(place.file, "./", 2) == 0)
        place.file += 2;
    snprintf(finding.text, sizeof finding.text, "%s:%d: %s", place.file ? place.file : "an unknown place", place.line,
             words);
}

/* Only the first finding of a job counts: later ones may follow from it. */
static int begin_finding(enum at_finding_kind kind, const char *format, va_list args) {
    if (finding.kind != AT_FINDING_NONE)
        return 0;
    finding.kind = kind;
    vsnprintf(words, sizeof words, format, args);
    return 1;
}

static void end_launch(void) {
    at_simt_machine.stop = 1;
    while (at_simt_current) /* a kernel's thread: the scheduler does not come back */
        at_simt_wait();
}

void at_simt_report(enum at_finding_kind kind, struct at_simt_place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (begin_finding(kind, format, args))
        put_place(place);
    va_end(args);
    end_launch();
}

void at_simt_report_at(enum at_finding_kind kind, const void *where, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (begin_finding(kind, format, args)) {
        if (where)
            finding_where = where; /* looking it up takes more stack than a kernel's thread has */
        else
            put_place(at_simt_thread()->place);
    }
    va_end(args);
    end_launch();
}

void at_simt_locate_finding(void) {
    if (finding_where)
        put_place(at_source_place(finding_where));
    finding_where = NULL;
}
