/* Measuring what claims are held against: the benchmark rows that their terms name, and no others.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_MEASURE_H
#define AT_MEASURE_H

#include "verify/bench/bench.h"
#include "verify/reproduce/claim.h"

/* Opens the runner and times the rows that the chosen claims need. `run` is to be released after a failure too. AT_USAGE: no chosen
 * claim needs a benchmark; AT_UNSUPPORTED: this runner has no clock worth reading; AT_NOT_FOUND: it has none of the kernels. */
at_status at_claims_measure(const struct at_claims *claims, const char *chosen, const char *runner, int64_t replays,
                            struct at_bench_run *run);

#endif
