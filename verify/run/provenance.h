/* What a run was asked for and what it ran with, as canonical JSON. Nothing in it differs between equal runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_PROVENANCE_H
#define AT_PROVENANCE_H

#include "verify/run/session.h"

/* Fills record->request and record->provenance. `box`: what the runners are kept in; NULL: nothing. */
at_status at_provenance_fill(const struct at_session_options *options, const struct at_plan *plan,
                             const struct at_runner *runner, const struct at_sandbox *box,
                             struct at_run_record *record);
/* What answered, for record->provenance: the build, and a device in words. The caller frees *text. */
at_status at_provenance_build(const char *device, char **text);

#endif
