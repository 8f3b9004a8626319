/* The verifier's side of a runner: a child process that owns a device and runs variants.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Control lines travel on a pipe, tensors in one block of shared memory (memfd) or inline. A runner
 * that dies, hangs or writes garbage costs the job it was running: the call returns AT_CRASHED,
 * AT_HUNG or AT_PROTOCOL, and the next call starts a fresh child. The wire format is documented in
 * kernels/runner/PROTOCOL.md and versioned in attest/protocol.h. */
#ifndef AT_RUNNER_H
#define AT_RUNNER_H

#include "attest/buffer.h"
#include "attest/kernel.h"
#include "attest/op.h"
#include "attest/run_mode.h"
#include "attest/way.h"
#include "verify/runner/sandbox.h"
#include "verify/runner/time_limit.h"

struct at_runner;

/* A variant as its runner describes it. */
struct at_variant {
    char family[64], name[96], path[160];
    char summary[256], source[64];
    char sha256[65];     /* of the variant's source file, "" if the runner does not say */
    char mutant_of[160]; /* family/name that it was made of, by a fault; "": it is no mutant */
    int untimed;         /* it says that it takes no timings */
    int asked;           /* what it declares depends on the problem: at_declared_on() (launch.h) */
    struct at_numerics numerics;
};

/* spec: "cpu" (attest-cpu beside this program), "cuda", one of them with arguments ("cuda --load FILE"), or any command line, run
 * by the shell. Starts the child and reads its hello; AT_ENVIRONMENT with the reason when it cannot serve. */
at_status at_runner_open(const char *spec, struct at_runner **runner);
/* The same in a sandbox, which must outlive the runner; NULL: none. */
at_status at_runner_open_in(const char *spec, const struct at_sandbox *box, struct at_runner **runner);
/* The same on one device: the child has CUDA_VISIBLE_DEVICES=device in its environment, so that the device is the first it
 * sees. NULL: its environment is this process's. */
at_status at_runner_open_on(const char *spec, const struct at_sandbox *box, const char *device,
                            struct at_runner **runner);
void at_runner_close(struct at_runner *runner);
/* As it was opened: "cpu" is all of attest-cpu. */
const char *at_runner_spec(const struct at_runner *runner);
const char *at_runner_device(const struct at_runner *runner);
/* 1 when it knows jobs that are held and replayed as one graph. */
int at_runner_has_sequences(const struct at_runner *runner);
int at_runner_variant_count(const struct at_runner *runner);
const struct at_variant *at_runner_variant(const struct at_runner *runner, int i);

/* What the last launch left in the block, for whoever looks again (launch.c); the runner only keeps it, until the block is
 * asked for. */
struct at_left {
    int variant; /* -1: nothing was left, or it has been looked at */
    struct at_buffer buffer;
    uint32_t outputs; /* bit i: payload i is an output, sealed as it was at the answer */
};
struct at_left *at_runner_left(struct at_runner *runner);

/* What variants said when they were asked for their declarations (launch.c); the runner only keeps it. Of one question the first
 * answer counts as long as the runner is open, its child started again or not. */
struct at_said {
    int variant;
    uint64_t question; /* hash of the problem as the runner is shown it */
    struct at_numerics numerics;
};
/* NULL: it has not been asked that. */
const struct at_said *at_runner_said(const struct at_runner *runner, int variant, uint64_t question);
at_status at_runner_keep_said(struct at_runner *runner, const struct at_said *said);

/* The shared block, at least `bytes` long, mapped here; earlier pointers into it become invalid. */
at_status at_runner_memory(struct at_runner *runner, int64_t bytes, uint8_t **base);

enum at_run_outcome { AT_RAN, AT_RUN_UNSUPPORTED, AT_RUN_FAILED, AT_RUN_RACY, AT_RUN_DIRTY, AT_RUN_DEADLOCKED };
struct at_run_reply {
    enum at_run_outcome outcome;
    char reason[512];      /* why unsupported or failed, in the runner's words */
    double seconds;        /* wall time of the launch as the runner saw it */
    int capturable;        /* the launch can be captured in a graph */
    int64_t path;          /* hash of what was launched; 0: not known */
    int64_t launches;      /* kernels; 0: none, or not known */
    char way[AT_WAY_SIZE]; /* which of its kernels a variant that chooses took; "": no choice, or not known */
    int has_counters;
    struct at_counters counters;
    struct at_timing timing;
    int timed_outputs; /* outputs are those of a timed launch (PROTOCOL.md, `outputs`) */
    int declares;      /* in answer to a question it says what it declares on this problem */
    char numerics[640];
};

/* A parameter that the runner does not say it takes is declined for it (PROTOCOL.md, `takes`); nothing is sent then.
 * Runs variant i on a problem whose tensors all lie inside the shared block [0, used); mode NULL: one plain launch.
 * AT_OK with the reply; AT_CRASHED (signal or exit named in the error), AT_HUNG, AT_PROTOCOL. */
at_status at_runner_run(struct at_runner *runner, int variant, const struct at_problem *problem, int64_t used,
                        const struct at_run_mode *mode, struct at_time_limit limit, struct at_run_reply *reply);
/* The same question (mode->ask) to n variants at once: replies[i] is that of variants[i]. */
at_status at_runner_ask(struct at_runner *runner, const int *variants, int n, const struct at_problem *problem,
                        int64_t used, struct at_time_limit limit, struct at_run_reply *replies);

#endif
