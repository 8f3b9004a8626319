/* Coverage in rounds: no variant goes on when nothing of its sources is open.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COVER_ROUNDS_H
#define AT_COVER_ROUNDS_H

#include "verify/coverage/gcov.h"
#include "verify/coverage/report.h"
#include "verify/run/session.h"

/* The selected cases in rounds, each with its share of them (by the hash of the id, as shards), on the variants of whose files
 * something is open: a branch that nothing has taken, a function that nothing has called, and a line that says it is not
 * reached, which the last case may show to be wrong. A variant that was never launched has all of its file open. What a
 * gate finds open after the last round, no case of the selection takes. Fills r as a run on all cases would, with the
 * counts of the launches that were made. Interrupted: AT_OK, and at_session_signal() says it. */
at_status at_cover_rounds(const struct at_gcov *gcov, const struct at_session_options *options,
                          struct at_cover_report *r);

#endif
