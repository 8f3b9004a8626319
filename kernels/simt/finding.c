/* The first finding of a job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/simt/machine.h"
#include "kernels/simt/source_place.h"

static struct at_finding finding;
static char words[360];           /* of the finding, without its place */
static const void *finding_where; /* its return address, until the place is known */

const struct at_finding *at_simt_finding(void) { return &finding; }

void at_simt_no_finding(void) {
    finding = (struct at_finding){ .kind = AT_FINDING_NONE };
    finding_where = NULL;
}

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
