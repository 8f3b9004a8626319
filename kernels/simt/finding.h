/* What the SIMT machine found wrong, in words, and what the runner must tell it beforehand.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_FINDING_H
#define AT_SIMT_FINDING_H

#include <stdint.h>

#include "attest/run_mode.h"
#include "kernels/simt/simt.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Memory a kernel may touch. Unwritten: its first bytes hold nothing yet (outputs, workspace). */
struct at_simt_region {
    const char *name;
    uint8_t *base;
    int64_t bytes;
    int read_only, unwritten;
};

/* Starts a job: forgets findings and what was written, takes the regions (copied) and the seed of warp orders. */
void at_simt_job(const struct at_simt_region *regions, int n, uint64_t seed);
/* The stream that the job's launches must be put on. */
void at_simt_expect_stream(const void *stream);
/* Hash of the job's launches: kernels, grids, blocks, dynamic shared memory; 0: there were none. */
int64_t at_simt_path(void);
/* Turns every check of accesses off for the job: nothing is found, and nothing can be trusted but the time. */
void at_simt_unchecked(int on);
/* From now on the synchronisation call at this place of a kernel's source does nothing, as if it had been deleted; line
 * 0: every call counts. The text of the file is not copied. A place without such a call changes nothing. */
void at_simt_leave_out(struct at_simt_place place);
/* Whether the job's accesses are counted, and the counts since it began. */
void at_simt_count(int on);
void at_simt_counters(struct at_counters *counters);
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

#ifdef __cplusplus
}
#endif
#endif
