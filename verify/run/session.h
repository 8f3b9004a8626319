/* A run: the jobs of a plan over several runners at once, journaled as they finish, gathered into one record.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SESSION_H
#define AT_SESSION_H

#include "verify/judge/judge.h"
#include "verify/result/record.h"
#include "verify/runner/devices.h"

struct at_session_options {
    struct at_selection selection;
    const char *runner; /* spec */
    const char *out;    /* RUN.h5; NULL: no archive, no journal */
    int stored;         /* results are not all in memory, and the record is one with `stored` */
    int resume, fail_fast, first_failure, strict, jobs, quiet, counters;
    /* first_failure: a variant is judged no further once a result of it fails, small cases first; no shards */
    /* Ends the run once a result is what was looked for, small cases first; no shards. NULL: it ends with its plan. */
    int (*is_enough)(const struct at_result *result, const void *looked_for);
    const void *looked_for;
    struct at_device_list devices; /* runners are spread over them; empty: one, whichever the runner takes */
    int sandbox;                   /* runners, but for predictors, are kept in one (verify/runner/sandbox.h) */
    int launch_only;               /* as in struct at_judge_options */
    uint64_t seed;
    int64_t again; /* as in struct at_judge_options */
    double timeout, limit_factor;
    const char *dump;
    enum at_keep keep;       /* wants `out` */
    const char *last_failed; /* RUN.h5: of the selection, only the jobs that failed there; NULL: all of it */
    int64_t set_aside; /* a variant is judged no further once so many of its jobs have CRASHED or HUNG; 0: always */
    /* NULL, or called with each job's results once they are in the journal, one job after the other; with `resume` first with
     * those that were there. */
    at_status (*see)(void *context, const struct at_result *results, int n);
    void *see_context;
    char shard_text[32]; /* "i/N" or "" */
};

/* Defaults: all variants, runner cpu, cases of role smoke, as many jobs as processors. */
struct at_session_options at_session_defaults(void);

/* Opens the runners, plans, runs, and leaves the sorted results in `record` (initialised here; release it). With
 * `out`: the journal is written as results come, and the archive at the end. Interrupted (SIGINT, SIGTERM): ends after the
 * running jobs with AT_OK and record->signal; no archive is written, the journal stays and --resume goes on. */
at_status at_session_run(const struct at_session_options *options, struct at_run_record *record);

/* The signal that came since the last run began; 0: none. */
int at_session_signal(void);
/* From here on SIGINT and SIGTERM are noted, the first of them: what runs for long asks at_session_signal() between its jobs. Another, a
 * second later or more, ends the process. */
void at_session_watch_signals(void);

#endif
