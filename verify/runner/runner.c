/* Runners: opened once, restarted after every crash, hang or breach of the protocol.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/runner.h"

#include "attest/buffer.h"
#include "attest/env.h"
#include "attest/family_advice.h"
#include "attest/program_dir.h"
#include "verify/runner/runner_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST_BYTES = 1 << 16, SPEC_BYTES = 4096 };
/* Seconds by the clock: to go when told to; to end after it closed its output, which a dump of its memory delays. */
static const double close_grace = 2, crash_grace = 5;

struct at_runner {
    char spec[SPEC_BYTES];        /* as given, for messages */
    char program[SPEC_BYTES];     /* path of the program; "" for a shell command */
    char command[2 * SPEC_BYTES]; /* that the shell is given */
    struct at_child child;
    struct at_greeting greeting; /* of the first child; later ones must say the same */
    enum at_transport transport; /* of the present child */
    struct at_shared shared;
    int64_t next_id;
    struct at_left left;
    struct at_said *said; /* n_said, room for a power of two */
    size_t n_said;
    const struct at_sandbox *box; /* NULL: none */
    char *device;                 /* "CUDA_VISIBLE_DEVICES=..."; NULL: as this process has it */
    char **environment;           /* with it; its other texts are not owned. NULL without */
};

extern char **environ;

/* ---- what to start ---- */

/* `name` in the folder of the running program. */
static at_status beside(const char *name, char *path, size_t size) {
    const int n = snprintf(path, size, "%s/%s", at_program_dir(), name);
    return n < (int)size ? AT_OK : AT_FAIL(AT_ENVIRONMENT, "this program's path is too long");
}

/* Runners that are called by a word and live beside attest. */
static const struct {
    const char *spec, *program, *remedy;
} known[] = {
    { "cpu", "attest-cpu", "build it with `make`" },
    { "mutants", "attest-mutants", "`make` builds it; `make install MUTANTS=1` installs it" },
    { "demo", "attest-demo", "`make demo` builds it" },
    { "coverage", "attest-cpu-coverage", "`make coverage-runner` builds it, in a tree with sources" },
    { "cuda", "attest-cuda", "`make cuda` builds it; a GPU elsewhere: --runner 'ssh HOST attest-cuda'" },
};

/* A word with arguments behind it is a command whose program is that word's. */
static at_status make_command(struct at_runner *runner, const char *arguments) {
    const int n = snprintf(runner->command, sizeof runner->command, "exec '%s'%s", runner->program, arguments);
    if (strchr(runner->program, '\'') || n >= (int)sizeof runner->command)
        return AT_FAIL(AT_ENVIRONMENT, "runner %.80s: %s is too long a path, or has a quote in it", runner->spec,
                       runner->program);
    runner->program[0] = 0;
    return AT_OK;
}

/* A simple command takes the shell's place, where the shell would start it as a child: signals then meet the runner itself, and
 * what the sandbox allows a process about its own threads is allowed it. "" where the command is more than that. */
static const char *in_place_of_shell(const char *command) {
    const size_t name = strspn(command, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    if (strpbrk(command, ";&|<>(){}$`\n") || strstr(command, "exec ") || strncmp(command, ". ", 2) == 0)
        return "";
    return command[name] == '=' ? "exec env " : "exec ";
}

static at_status find_program(struct at_runner *runner) {
    snprintf(runner->command, sizeof runner->command, "%s%s", in_place_of_shell(runner->spec), runner->spec);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t n = strlen(known[i].spec);
        if (strncmp(runner->spec, known[i].spec, n) != 0 ||
            (runner->spec[n] && strncmp(runner->spec + n, " --", 3) != 0))
            continue;
        AT_TRY(beside(known[i].program, runner->program, sizeof runner->program));
        if (access(runner->program, X_OK) != 0)
            return AT_FAIL(AT_ENVIRONMENT, "runner %s: there is no %s; %s", known[i].spec, runner->program,
                           known[i].remedy);
        return runner->spec[n] ? make_command(runner, runner->spec + n) : AT_OK;
    }
    const size_t bytes = strlen(runner->spec);
    if (bytes > 3 && strcmp(runner->spec + bytes - 3, ".py") == 0 && access(runner->spec, R_OK) == 0 &&
        access(runner->spec, X_OK) != 0)
        return AT_FAIL(AT_USAGE, "runner %s: a file of Python that is no program, wanted --runner 'python3 %s'",
                       runner->spec, runner->spec);
    return AT_OK;
}

/* ---- shared memory ---- */

static at_status map_shared(struct at_shared *shared, int64_t bytes) {
    if (ftruncate(shared->fd, bytes) != 0)
        return AT_FAIL(AT_NO_MEMORY, "cannot grow the runner's memory to %lld bytes: %s", (long long)bytes,
                       strerror(errno));
    void *base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
    if (base == MAP_FAILED)
        return AT_FAIL(AT_NO_MEMORY, "cannot map %lld bytes of the runner's memory: %s", (long long)bytes,
                       strerror(errno));
    if (shared->base)
        munmap(shared->base, (size_t)shared->capacity);
    shared->base = (uint8_t *)base;
    shared->capacity = bytes;
    return AT_OK;
}

/* Sealed against shrinking: a runner that cut the file short would kill attest at its next access. */
static at_status create_shared(struct at_shared *shared) {
    shared->fd = memfd_create("attest-block", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (shared->fd < 0 || fcntl(shared->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        return AT_FAIL(AT_ENVIRONMENT, "cannot make sealed shared memory: %s", strerror(errno));
    return map_shared(shared, FIRST_BYTES);
}

at_status at_runner_memory(struct at_runner *runner, int64_t bytes, uint8_t **base) {
    if (bytes < 0 || bytes > AT_PROTOCOL_MAX_BYTES)
        return AT_FAIL(AT_NO_MEMORY, "%lld bytes asked for; at most %lld fit a runner's block", (long long)bytes,
                       (long long)AT_PROTOCOL_MAX_BYTES);
    if (bytes > runner->shared.capacity)
        AT_TRY(map_shared(&runner->shared, (bytes + FIRST_BYTES - 1) / FIRST_BYTES * FIRST_BYTES));
    *base = runner->shared.base;
    runner->left.variant = -1;
    return AT_OK;
}

/* ---- starting and restarting ---- */

static char *const *inherited(const struct at_runner *runner) {
    return runner->box ? at_sandbox_environment(runner->box) : environ;
}

/* What is inherited, with the one variable in the place of any of its name. */
static at_status set_device(struct at_runner *runner, const char *device) {
    static const char name[] = "CUDA_VISIBLE_DEVICES=";
    char *const *from = inherited(runner);
    size_t n = 0, kept = 0;
    while (from[n])
        n++;
    runner->environment = calloc(n + 2, sizeof *runner->environment);
    const size_t bytes = sizeof name + strlen(device);
    runner->device = malloc(bytes);
    if (!runner->environment || !runner->device)
        return AT_FAIL(AT_NO_MEMORY, "no memory for an environment");
    snprintf(runner->device, bytes, "%s%s", name, device);
    for (size_t i = 0; i < n; i++)
        if (strncmp(from[i], name, sizeof name - 1) != 0)
            runner->environment[kept++] = from[i];
    runner->environment[kept] = runner->device;
    return AT_OK;
}

/* What a runner may take to greet: ssh and a GPU's start-up are slow. By the clock not ten times as long, as for a job:
 * what is no runner at all (`cat`) sleeps that long before its user hears of it. */
static struct at_time_limit start_limit(void) {
    const char *text = getenv("AT_RUNNER_START_SECONDS");
    const double given = text ? strtod(text, NULL) : 0, seconds = given > 0 ? given : 60;
    return (struct at_time_limit){ seconds, 3 * seconds };
}

/* Ends the child after `status` and starts the trail anew, with its fate in the message. */
static at_status end_badly(struct at_runner *runner, at_status status, at_status as, const char *doing) {
    char why[512], fate[640];
    snprintf(why, sizeof why, "%s", at_error_message());
    at_child_end(&runner->child, status == AT_CRASHED ? crash_grace : 0, fate, sizeof fate);
    if (status == AT_CRASHED)
        return AT_FAIL(as, "runner %.80s ended with %s, %s%s", runner->spec, fate, doing,
                       strcmp(fate, "exit code 0") == 0 && !runner->greeting.variants
                           ? "; one in Python calls attest_runner.serve() at its end"
                           : "");
    return AT_FAIL(as, "%s, %s", why, doing);
}

/* A restarted runner must be the one we know: variant numbers are held by callers. */
static at_status check_same(const struct at_greeting *before, const struct at_greeting *now) {
    int same = before->n == now->n;
    for (int i = 0; same && i < now->n; i++)
        same =
            memcmp(&before->variants[i].numerics, &now->variants[i].numerics, sizeof now->variants[i].numerics) == 0 &&
            strcmp(before->variants[i].family, now->variants[i].family) == 0 &&
            strcmp(before->variants[i].name, now->variants[i].name) == 0 &&
            strcmp(before->variants[i].sha256, now->variants[i].sha256) == 0;
    if (!same)
        return AT_FAIL(AT_PROTOCOL, "the runner announces other variants after its restart");
    return AT_OK;
}

/* Said when it is opened: no case ever meets them, and nothing else would say why. */
static void say_strangers(const struct at_runner *runner) {
    static _Atomic uint64_t said_of; /* jobs side by side each have a runner of one command */
    const uint64_t hash = at_hash_bytes(runner->spec, strlen(runner->spec), AT_HASH_START);
    if (atomic_exchange(&said_of, hash) == hash)
        return;
    for (int i = 0; i < runner->greeting.n; i++) {
        const struct at_variant *v = &runner->greeting.variants[i];
        char advice[256];
        if (at_family_find(v->family))
            continue;
        at_family_advice(v->family, advice, sizeof advice);
        fprintf(stderr, "attest: runner %.80s has %s/%s, and there is no family %s%s\n", runner->spec, v->family,
                v->name, v->family, advice);
    }
}

static at_status start(struct at_runner *runner) {
    const char *const shell[] = { "/bin/sh", "-c", runner->command, NULL };
    const char *const program[] = { runner->program, NULL };
    AT_TRY(at_child_start(&runner->child, runner->spec, runner->program[0] ? program : shell, runner->shared.fd,
                          runner->environment ? runner->environment : inherited(runner), runner->box));
    struct at_greeting greeting;
    struct at_countdown countdown;
    at_countdown_start(&countdown, start_limit());
    at_status status = at_wire_greet(&runner->child, &runner->shared, &greeting, &countdown);
    if (status != AT_OK)
        return end_badly(runner, status, AT_ENVIRONMENT, "before it was ready to serve");
    runner->transport = greeting.transport;
    if (!runner->greeting.variants) {
        runner->greeting = greeting;
        say_strangers(runner);
        return AT_OK;
    }
    status = check_same(&runner->greeting, &greeting);
    at_greeting_release(&greeting);
    return status == AT_OK ? AT_OK : end_badly(runner, status, AT_ENVIRONMENT, "so it cannot go on");
}

at_status at_runner_open(const char *spec, struct at_runner **out) { return at_runner_open_in(spec, NULL, out); }

at_status at_runner_open_in(const char *spec, const struct at_sandbox *box, struct at_runner **out) {
    return at_runner_open_on(spec, box, NULL, out);
}

at_status at_runner_open_on(const char *spec, const struct at_sandbox *box, const char *device,
                            struct at_runner **out) {
    at_status status = AT_OK;
    *out = NULL;
    struct at_runner *runner = calloc(1, sizeof *runner);
    if (!runner)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a runner");
    runner->shared.fd = -1;
    runner->left.variant = -1;
    runner->box = box;
    if (strlen(spec) >= sizeof runner->spec || strspn(spec, " \t") == strlen(spec))
        AT_FAIL_OUT(AT_USAGE, "runner \"%.40s\"; wanted cpu, cuda or a command line of at most %d bytes", spec,
                    SPEC_BYTES - 1);
    memcpy(runner->spec, spec, strlen(spec) + 1);
    AT_TRY_OUT(find_program(runner));
    AT_TRY_OUT(create_shared(&runner->shared));
    if (device)
        AT_TRY_OUT(set_device(runner, device));
    AT_TRY_OUT(start(runner));
    *out = runner;
    return AT_OK;
out:
    at_runner_close(runner);
    return status;
}

void at_runner_close(struct at_runner *runner) {
    if (!runner)
        return;
    struct at_countdown countdown;
    at_countdown_start(&countdown, (struct at_time_limit){ close_grace, close_grace });
    if (runner->child.pid) /* a failure here changes nothing: the child is ended either way */
        (void)at_child_write(&runner->child, "quit\n", 5, &countdown);
    at_child_end(&runner->child, close_grace, NULL, 0);
    at_greeting_release(&runner->greeting);
    if (runner->shared.base)
        munmap(runner->shared.base, (size_t)runner->shared.capacity);
    if (runner->shared.fd >= 0)
        close(runner->shared.fd);
    free(runner->environment);
    free(runner->device);
    free(runner->said);
    free(runner);
}

/* ---- looking and running ---- */

const struct at_said *at_runner_said(const struct at_runner *runner, int variant, uint64_t question) {
    for (size_t i = runner->n_said; i-- > 0;) /* the last first: launches of one job ask the same */
        if (runner->said[i].variant == variant && runner->said[i].question == question)
            return &runner->said[i];
    return NULL;
}

at_status at_runner_keep_said(struct at_runner *runner, const struct at_said *said) {
    const size_t n = runner->n_said;
    if ((n & (n - 1)) == 0) { /* full: 0, 1, 2, 4, ... */
        struct at_said *grown = realloc(runner->said, (n ? 2 * n : 1) * sizeof *grown);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "no memory for declarations");
        runner->said = grown;
    }
    runner->said[runner->n_said++] = *said;
    return AT_OK;
}

struct at_left *at_runner_left(struct at_runner *runner) {
    return &runner->left;
}
const char *at_runner_spec(const struct at_runner *runner) { return runner->spec; }

const char *at_runner_device(const struct at_runner *runner) { return runner->greeting.device; }
int at_runner_has_sequences(const struct at_runner *runner) { return runner->greeting.sequences; }
int at_runner_variant_count(const struct at_runner *runner) { return runner->greeting.n; }

const struct at_variant *at_runner_variant(const struct at_runner *runner, int i) {
    return &runner->greeting.variants[i];
}

static void fill_reply(const struct at_reply *from, struct at_run_reply *to) {
    static const enum at_run_outcome outcomes[AT_REPLY_COUNT] = { AT_RAN,      AT_RUN_UNSUPPORTED, AT_RUN_FAILED,
                                                                  AT_RUN_RACY, AT_RUN_DIRTY,       AT_RUN_DEADLOCKED };
    *to = (struct at_run_reply){ .outcome = outcomes[from->kind],
                                 .seconds = from->seconds,
                                 .capturable = from->capturable,
                                 .path = from->path,
                                 .launches = from->launches,
                                 .has_counters = from->has_counters,
                                 .counters = from->counters,
                                 .timing = from->timing,
                                 .timed_outputs = from->timed_outputs,
                                 .declares = from->declares };
    snprintf(to->reason, sizeof to->reason, "%s", from->reason);
    snprintf(to->way, sizeof to->way, "%s", from->way);
    snprintf(to->numerics, sizeof to->numerics, "%s", from->numerics);
}

/* A child that died or spoke between jobs is replaced before it can spoil the next one. */
static at_status make_ready(struct at_runner *runner) {
    if (!at_child_is_disturbed(&runner->child))
        return AT_OK;
    at_child_end(&runner->child, 0, NULL, 0);
    return start(runner);
}

/* Whether the problem has a parameter that is younger than the runner, which would pass over it and compute something else. */
static int lacks_parameter(const struct at_runner *runner, const struct at_problem *problem,
                           struct at_run_reply *reply) {
    const struct at_scalar *unknown = at_takes_lacks(runner->greeting.takes, problem);
    if (!unknown)
        return 0;
    *reply = (struct at_run_reply){ .outcome = AT_RUN_UNSUPPORTED };
    snprintf(reply->reason, sizeof reply->reason, "the runner does not say that it takes %s=%g", unknown->name,
             at_scalar_get(problem, unknown));
    return 1;
}

at_status at_runner_run(struct at_runner *runner, int variant, const struct at_problem *problem, int64_t used,
                        const struct at_run_mode *mode, struct at_time_limit limit, struct at_run_reply *reply) {
    struct at_job job;
    struct at_reply answer;
    struct at_countdown countdown;
    if (variant < 0 || variant >= runner->greeting.n || used < 0 || used > runner->shared.capacity ||
        !(limit.processor > 0 && limit.wall > 0))
        return AT_FAIL(AT_BUG, "variant %d of %d, %lld bytes of %lld, %g and %g seconds", variant, runner->greeting.n,
                       (long long)used, (long long)runner->shared.capacity, limit.processor, limit.wall);
    runner->left.variant = -1;
    if (lacks_parameter(runner, problem, reply))
        return AT_OK;
    AT_TRY(at_wire_job(problem, runner->shared.base, used, &job));
    AT_TRY(make_ready(runner));
    job.id = runner->next_id++;
    job.variant = variant;
    if (mode)
        job.mode = *mode;
    job.memory = runner->transport == AT_TRANSPORT_MEMFD ? runner->shared.capacity : 0;
    job.timeout = limit.wall < 1e9 ? limit.wall : 1e9;
    at_countdown_start(&countdown, limit);
    at_status status = at_wire_run(&runner->child, &job, runner->transport, runner->shared.base, &answer, &countdown);
    if (status != AT_OK) {
        char doing[256];
        const struct at_variant *v = &runner->greeting.variants[variant];
        snprintf(doing, sizeof doing, "while running %s/%s", v->family, v->name);
        return end_badly(runner, status, status, doing);
    }
    fill_reply(&answer, reply);
    return AT_OK;
}

/* Inline, the block goes along with each job and comes back: one at a time. */
static at_status ask_each(struct at_runner *runner, const int *variants, int n, const struct at_problem *problem,
                          int64_t used, struct at_time_limit limit, struct at_run_reply *replies) {
    const struct at_run_mode mode = { .ask = 1 };
    for (int i = 0; i < n; i++)
        AT_TRY(at_runner_run(runner, variants[i], problem, used, &mode, limit, &replies[i]));
    return AT_OK;
}

at_status at_runner_ask(struct at_runner *runner, const int *variants, int n, const struct at_problem *problem,
                        int64_t used, struct at_time_limit limit, struct at_run_reply *replies) {
    struct at_job job;
    struct at_countdown countdown;
    runner->left.variant = -1;
    AT_TRY(make_ready(runner));
    if (runner->transport != AT_TRANSPORT_MEMFD)
        return ask_each(runner, variants, n, problem, used, limit, replies);
    if (n > 0 && lacks_parameter(runner, problem, &replies[0])) {
        for (int i = 1; i < n; i++)
            replies[i] = replies[0];
        return AT_OK;
    }
    AT_TRY(at_wire_job(problem, runner->shared.base, used, &job));
    struct at_reply *answers = calloc((size_t)n + 1, sizeof *answers);
    if (!answers)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d replies", n);
    job.id = runner->next_id;
    runner->next_id += n;
    job.mode = (struct at_run_mode){ .ask = 1 };
    job.memory = runner->shared.capacity;
    job.timeout = limit.wall < 1e9 ? limit.wall : 1e9;
    at_countdown_start(&countdown, limit);
    const at_status status = at_wire_ask(&runner->child, &job, variants, n, answers, &countdown);
    for (int i = 0; status == AT_OK && i < n; i++)
        fill_reply(&answers[i], &replies[i]);
    free(answers);
    return status == AT_OK ? AT_OK : end_badly(runner, status, status, "while variants were asked what they take");
}
