/* The start of jobs, and what holds for all their launches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/simt_job.h"

#include "kernels/simt/clock.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/shadow.h"

void at_simt_job(const struct at_simt_region *regions, int n, uint64_t seed) {
    struct at_simt_machine *m = &at_simt_machine;
    at_simt_no_finding();
    m->random = seed;
    m->seeded = seed != 0;
    m->stream = NULL;
    m->path = 0;
    m->unchecked = 0;
    m->dry = 0;
    m->launches = 0;
    m->calls = 0;
    at_counters_job();
    at_shadow_job();
    if (m->stop) /* a finding may have left reads in flight */
        at_memory_forget();
    if (m->now > UINT32_MAX / 2) { /* the other half is enough for any job */
        at_clock_restart();
        at_memory_forget();
    }
    m->job_began = ++m->now;
    at_memory_job(regions, n);
}

void at_simt_call_fails(int n) { at_simt_machine.failing_call = n; }

int at_simt_calls(void) { return at_simt_machine.calls; }

int at_simt_host_call(void) {
    return ++at_simt_machine.calls == at_simt_machine.failing_call ? 719 /* cudaErrorLaunchFailure */ : 0;
}

int64_t at_simt_launches(void) { return at_simt_machine.launches; }

void at_simt_dry(int on) { at_simt_machine.dry = on; }

void at_simt_unchecked(int on) { at_simt_machine.unchecked = on; }

int64_t at_simt_path(void) { return (int64_t)(at_simt_machine.path & INT64_MAX); }

void at_simt_expect_stream(const void *stream) { at_simt_machine.stream = stream; }

void at_simt_count(int on) { at_counters_on = on; }

void at_simt_counters(struct at_counters *counters) { *counters = *at_counters_get(); }
