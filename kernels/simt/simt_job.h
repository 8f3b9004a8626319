/* The SIMT machine as the runner sees it: jobs, and what was found in them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_JOB_H
#define AT_SIMT_JOB_H

#include "attest/run_mode.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"
#include "kernels/simt/region.h"

/* Starts a job: forgets findings and what was written, takes the regions (copied) and the seed of warp orders. */
void at_simt_job(const struct at_simt_region *regions, int n, uint64_t seed);
/* The stream that the job's launches must be put on. */
void at_simt_expect_stream(const void *stream);
/* Hash of the job's launches: kernels, grids, blocks, dynamic shared memory; 0: there were none. */
int64_t at_simt_path(void);
/* Which of a job's calls from the host, launches and the encoding of tensor maps, fails, with a number that the variant has
 * to pass on: from now on the n-th; 0: none. */
void at_simt_call_fails(int n);
/* Calls of the job so far, the one that failed among them. */
int at_simt_calls(void);
/* Launches of the job so far. */
int64_t at_simt_launches(void);
/* Launches of the job are counted, and no thread runs. */
void at_simt_dry(int on);
/* Turns every check of accesses off for the job: nothing is found, and nothing can be trusted but the time. */
void at_simt_unchecked(int on);
/* Whether the job's accesses are counted, and the counts since it began. */
void at_simt_count(int on);
void at_simt_counters(struct at_counters *counters);

#endif
