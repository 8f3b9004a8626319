/* A runner's conversation: greeting, choice of transport, one job.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RUNNER_WIRE_H
#define AT_RUNNER_WIRE_H

#include "verify/runner/runner.h"
#include "verify/runner/runner_process.h"

/* The shared block of a runner, owned by attest and kept when a child is replaced. */
struct at_shared {
    int fd;
    uint8_t *base;
    int64_t capacity;
};

/* What a child said of itself. `variants` is owned. */
struct at_greeting {
    char name[64], device[256];
    struct at_variant *variants;
    int n;
    enum at_transport transport;
    int sequences;   /* it takes jobs that are held and replayed as one graph */
    char takes[512]; /* parameters that it says it takes */
};
void at_greeting_release(struct at_greeting *greeting);

/* Reads hello and variants and agrees on a transport: memfd where the runner takes it, else inline. */
at_status at_wire_greet(struct at_child *child, const struct at_shared *shared, struct at_greeting *greeting,
                        struct at_countdown *countdown);
/* Sends the job and waits for its reply; inline: block there and back. */
at_status at_wire_run(struct at_child *child, const struct at_job *job, enum at_transport transport, uint8_t *block,
                      struct at_reply *reply, struct at_countdown *countdown);
/* Sends job->id, +1, ... with the job's question to each of variants[0 .. n), a few ahead of the replies; memfd alone.
 * replies[i]: of variants[i]. */
at_status at_wire_ask(struct at_child *child, const struct at_job *job, const int *variants, int n,
                      struct at_reply *replies, struct at_countdown *countdown);
/* Fills a job from a problem whose tensors lie in [base, base + used). AT_BUG when one does not. */
at_status at_wire_job(const struct at_problem *problem, const uint8_t *base, int64_t used, struct at_job *job);

#endif
