/* What the SIMT machine found wrong, in words.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_FINDING_H
#define AT_SIMT_FINDING_H

#include "kernels/simt/simt.h"

enum at_finding_kind {
    AT_FINDING_NONE,
    AT_FINDING_RACE,      /* two accesses without an order, or a synchronisation used against its rules */
    AT_FINDING_UNWRITTEN, /* a read of memory that nobody wrote */
    AT_FINDING_BOUNDS,    /* an access outside every tensor, shared variable and stack */
    AT_FINDING_DEADLOCK   /* every thread waits */
};

struct at_finding {
    enum at_finding_kind kind;
    char text[480]; /* kernel, place, block, thread, and the other party */
};

/* The job's first finding; kind NONE when there is none. */
const struct at_finding *at_simt_finding(void);

/* Records a finding at a place, or at the call before a return address (NULL: at the running thread's place), and ends
 * the launch; does not return when called from a kernel's thread. */
void at_simt_report(enum at_finding_kind kind, struct at_simt_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void at_simt_report_at(enum at_finding_kind kind, const void *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* After a launch: puts the source line to a finding that has only an address yet. */
void at_simt_locate_finding(void);
/* A job begins: there is no finding yet. */
void at_simt_no_finding(void);

#endif
