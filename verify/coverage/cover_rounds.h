/* Running the cases with counters: what each variant reaches, and what of its sources stays open.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COVER_ROUNDS_H
#define AT_COVER_ROUNDS_H

#include "verify/coverage/report.h"
#include "verify/run/session.h"

struct at_cover_how {
    /* The lines of a selection in turn, and a variant is launched no further once nothing of its sources is open: no
     * branch untaken, no function uncalled, without a reason stated. The same is open in the end as after all cases; counts are
     * lower, and of a reason that a case left out would belie nothing is seen. */
    int until_taken;
    int by_case; /* then each case by itself */
};

/* Runs what `options` select under the coverage runner and fills *r, which is zeroed here; at_cover_report_release() in any
 * case. *signal: that which interrupted it, 0: none; then the report is not complete. */
at_status at_cover_measure(const struct at_session_options *options, const struct at_cover_how *how,
                           struct at_cover_report *r, int *signal);
void at_cover_report_release(struct at_cover_report *r);

#endif
