/* What `attest replay --dump` keeps of one job: every output and every intermediate, as plain arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DUMP_H
#define AT_DUMP_H

#include "verify/judge/answer.h"
#include "verify/runner/launch.h"

/* Writes inputs, outputs, exact values, limits, modelled values and intervals, and for attention the scores, FIR
 * results and P of every row, to an HDF5 file. */
at_status at_dump_job(const char *path, const struct at_answer *answer, const struct at_judgement *judgement,
                      const struct at_outputs *outputs, const struct at_numerics *numerics);

#endif
