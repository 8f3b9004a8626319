/* Which branches each case takes by itself, and which of them no other case takes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COVER_BY_CASE_H
#define AT_COVER_BY_CASE_H

#include "verify/coverage/gcov.h"
#include "verify/coverage/report.h"
#include "verify/run/session.h"

/* Runs each case of the record again, by itself and with counters of its own, and fills r->cases. The branches that only a
 * failing launch takes are no case's. Interrupted: AT_OK, and at_session_signal() says it. */
at_status at_cover_by_case(const struct at_gcov *gcov, const struct at_session_options *options,
                           const struct at_run_record *record, struct at_cover_report *r);

#endif
