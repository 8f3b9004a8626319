/* Requests of a layer, counted by several devices at once: whichever is free takes the next.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_TURNS_H
#define AT_DIST_TURNS_H

#include "verify/record/dist_record.h"

struct at_dist_turns {
    struct at_dist_recording *on; /* [n]: copies of one recording with a device each; or the recording, n = 1 */
    int n;
    struct at_dist_workers *workers;
    void (*begin)(void *context, int64_t request); /* as a request is taken up */
    void (*step)(void *context, int64_t queries);  /* as for at_dist_recording_unit */
    void *context;                                 /* of both, which do not overlap */
};

/* Counts requests[0 .. n) of layer i, and names them in rows[0 .. n). After `until` (at_seconds) nobody takes up another, but
 * the first is counted in any case; *done: those that were, the first ones of the list. */
at_status at_dist_turns_run(struct at_dist_turns *turns, int64_t i, const int64_t *requests, int64_t n,
                            struct at_dist_layer *layer, struct at_dist_unit_row *rows, double until, int64_t *done);

#endif
