/* What was launched and counted: variants, calls that fail in turn, counts, sources.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COVER_LAUNCHES_H
#define AT_COVER_LAUNCHES_H

#include "verify/coverage/gcov.h"
#include "verify/coverage/report.h"
#include "verify/run/session.h"

/* r->variants = those of a record that ran launches alone, by path, with the numbers of their jobs. */
at_status at_cover_tally(const struct at_run_record *record, struct at_cover_report *r);
/* Runs each variant of r->variants, on the last case of the record that it was launched on, while its first call to the device
 * fails, then its second, and so on: an error that does not come out makes it broken. What then runs is counted. */
at_status at_cover_fail_calls(const struct at_session_options *o, const struct at_run_record *record,
                              struct at_cover_report *r);
/* Each variant's own counts, and all of them together in r->cover. */
at_status at_cover_read_counts(const struct at_gcov *gcov, struct at_cover_report *r);
/* The sources of r->cover with their marks, and which of them all selected variants answer for. */
at_status at_cover_read_sources(const struct at_gcov *gcov, struct at_cover_report *r);
void at_cover_close_sources(struct at_cover_report *r);

#endif
