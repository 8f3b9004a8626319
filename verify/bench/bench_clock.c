/* attest's own clock over jobs that a runner times by its own: what it says of replays must fit what they took here.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attest/env.h"
#include "verify/bench/bench.h"

/* Launches on one copy in a replay, at most (PROTOCOL.md, `timings`). */
enum { HOT_LAUNCHES = 20, TRIES = 3, TIMEOUT_SECONDS = 120 };
/* What more replays take is to stand out of how much jobs differ by themselves: seconds, and a share of the short job's. */
static const double LONGER = 0.3, LONGER_SHARE = 0.5;
static const double SHORTEST_REPLAY = 1e-4;
/* Seconds of what is added, if all that the short job took were replays. */
static const double LONGEST = 10;
/* A runner may take half as long again as it says, a millisecond a replay to clear caches, to start it and to wait for
 * it, and of the short job's time, which copies and allocations make up, as much as two equal jobs may differ. */
static const double SLACK = 1.5, SLACK_OF_REPLAY = 1e-3, SLACK_OF_JOB = 0.1, SLACK_OF_CLOCK = 0.05;

static void tell(struct at_bench_row *row, enum at_state state, const char *what, const char *why) {
    snprintf(row->verdict, sizeof row->verdict, "%s%.360s", what, why);
    snprintf(row->state, sizeof row->state, "%s", at_state_name(state));
    row->wrong = 1;
}

/* What a job takes by the clock, and what its runner says that a replay takes. seconds stays 0 where the row says why there is nothing. */
struct by_clock {
    double seconds, replay;
};

/* A hot launch is no longer than a cold one; else a cold time of half could hide behind it. */
static double replay_of(int copies, double cold, double hot) { return copies * cold + HOT_LAUNCHES * fmin(hot, cold); }

static at_status by_the_clock(struct at_runner *runner, int variant, const struct at_problem *problem, uint64_t seed,
                              int64_t replays, double timeout, struct at_bench_row *row, struct by_clock *job) {
    const struct at_run_mode mode = { .timings = (int32_t)replays };
    struct at_run_reply reply;
    struct at_outputs outputs = { 0 };
    struct at_numerics asked; /* a question is no part of the job's time */
    at_status status = at_declared_on(runner, variant, problem, &asked);
    const double start = at_seconds();
    if (status == AT_OK)
        status = at_guarded_launch(runner, variant, problem, AT_POISON_JUDGED, &mode, seed, timeout, &reply, &outputs);
    *job = (struct by_clock){ 0 };
    if (status == AT_CRASHED || status == AT_HUNG || status == AT_PROTOCOL) {
        tell(row,
             status == AT_HUNG      ? AT_STATE_HUNG
             : status == AT_CRASHED ? AT_STATE_CRASHED
                                    : AT_STATE_ERROR,
             "not timed again: ", at_error_message());
        return AT_OK;
    }
    AT_TRY(status);
    if (reply.outcome != AT_RAN || reply.timing.replays == 0)
        tell(row, AT_STATE_ERROR, "not timed again: ", reply.reason);
    else
        *job = (struct by_clock){ at_seconds() - start,
                                  replay_of(reply.timing.copies, reply.timing.cold, reply.timing.hot) };
    at_outputs_release(&outputs);
    return AT_OK;
}

at_status at_bench_check_clock(struct at_runner *runner, int variant, const struct at_problem *problem, uint64_t seed,
                               int64_t replays, struct at_bench_row *row) {
    const double of_row = replay_of(row->copies, row->cold, row->hot);
    double took = 0, said = 0;
    int unsteady = 0;
    char text[256];
    for (int i = 0; i < TRIES; i++) { /* another's load may lengthen one job, and a cheat lengthens all */
        struct by_clock few, many;
        AT_TRY(by_the_clock(runner, variant, problem, seed, replays, TIMEOUT_SECONDS, row, &few));
        if (!(few.seconds > 0))
            return AT_OK;
        const double wanted = fmin((LONGER + LONGER_SHARE * few.seconds) / fmax(of_row, SHORTEST_REPLAY),
                                   LONGEST * (double)replays / few.seconds);
        const int64_t more = wanted < 1 ? 1 : (int64_t)ceil(wanted);
        AT_TRY(by_the_clock(runner, variant, problem, seed, replays + more, TIMEOUT_SECONDS + 3 * LONGEST, row, &many));
        if (!(many.seconds > 0))
            return AT_OK;
        /* Of the rounds; and of this very job, whose times were taken under the same load. */
        said = fmin(of_row, many.replay);
        took = (many.seconds - few.seconds) / (double)more;
        const double slack = SLACK_OF_REPLAY + (SLACK_OF_JOB * few.seconds + SLACK_OF_CLOCK) / (double)more;
        if (took <= SLACK * said + slack)
            return AT_OK;
        unsteady += took <= SLACK * fmin(few.replay, many.replay) + slack;
    }
    /* Both jobs' own times are true, and longer than those of the rounds, which another's load since then explains as well as a
     * runner that counts jobs: neither has a time. */
    if (unsteady == TRIES) {
        snprintf(text, sizeof text,
                 "a replay takes %.4g ms now, and took %.4g ms in the rounds: the machine is not steady", took * 1e3,
                 of_row * 1e3);
        tell(row, AT_STATE_UNSUPPORTED, "not timed: ", text);
        row->wrong = 0;
        row->timed = 0;
        row->cold = row->hot = (double)NAN;
        return AT_OK;
    }
    snprintf(
        text, sizeof text,
        "a replay takes %.4g ms by attest's clock; launches on %d copies and %d on one, %.4g ms as its runner says",
        took * 1e3, row->copies, (int)HOT_LAUNCHES, said * 1e3);
    tell(row, AT_STATE_IMPOSSIBLE, "IMPOSSIBLE: ", text);
    return AT_OK;
}
