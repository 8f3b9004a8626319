/* Whose tensors are kept in a file beside the archive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_KEEP_H
#define AT_KEEP_H

#include "attest/status.h"

/* Nobody's, those of results that fail the run or are VACUOUS, or every judged job's (verify/archive/witness.h). */
enum at_keep { AT_KEEP_NEVER, AT_KEEP_WRONG, AT_KEEP_ALL, AT_KEEP_COUNT };
const char *at_keep_name(enum at_keep keep);
at_status at_keep_parse(const char *name, enum at_keep *keep);

struct at_job;
/* Writes the job's tensors and references to its file where the options ask for it, and marks its results. */
at_status at_job_keep(struct at_job *job);

#endif
