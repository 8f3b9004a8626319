/* A plan of what failed in an earlier run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LAST_FAILED_H
#define AT_LAST_FAILED_H

#include "verify/plan/plan.h"

/* Leaves of the plan the jobs that failed in the run of the archive RUN.h5, by the journal that lies beside it: the same family,
 * variant and case; strict: VACUOUS counts, too. A run that was cut short has what it judged. AT_USAGE or AT_IO when the journal
 * cannot be read. Says on stderr when nothing is left, and why. */
at_status at_last_failed_keep(const char *archive, int strict, const struct at_runner *runner, struct at_plan *plan);

#endif
