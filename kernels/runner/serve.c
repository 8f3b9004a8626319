/* The runner's protocol loop: hello, choice of transport, jobs until quit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/serve.h"

#include "kernels/runner/job.h"
#include "kernels/runner/sequence.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A job that attest has stopped waiting for ends by itself soon after, even when attest was killed. */
enum { ALARM_GRACE_SECONDS = 5, ALARM_MAX_SECONDS = 100000000, ORPHAN_GRACE_SECONDS = 2 };

/* One conversation. */
struct session {
    const struct at_serve *serve;
    struct at_inbox inbox;
    struct at_line line;
    struct at_block block;
    struct at_sequence sequence; /* jobs that wait for the one that runs them */
    int ended;                   /* the other side closed its end */
};

int at_serve_claim_stdout(void) {
    int out = dup(STDOUT_FILENO);
    if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    return out;
}

/* ---- orphans ---- */

static void *end_orphan(void *in) {
    struct pollfd end_of_input = { .fd = *(const int *)in };
    while (poll(&end_of_input, 1, -1) < 0 && errno == EINTR)
        continue;
    sleep(ORPHAN_GRACE_SECONDS); /* between jobs the loop sees the end of its input by itself */
    _exit(1);
}

void at_serve_end_with(const int *in) {
    pthread_t thread;
    struct stat kind;
    if (fstat(*in, &kind) != 0 || S_ISREG(kind.st_mode)) /* a file has no other end */
        return;
    if (pthread_create(&thread, NULL, end_orphan, (void *)in) == 0) /* without it there is still the alarm */
        pthread_detach(thread);
}

/* ---- bytes ---- */

static at_status write_all(int fd, const void *data, size_t n) {
    const char *from = (const char *)data;
    while (n > 0) {
        ssize_t done = write(fd, from, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return AT_FAIL(AT_IO, "cannot write to attest: %s", strerror(errno));
        from += done;
        n -= (size_t)done;
    }
    return AT_OK;
}

/* 0 bytes: the end of input. */
static at_status read_some(int fd, void *data, size_t n, size_t *got) {
    ssize_t done;
    do
        done = read(fd, data, n);
    while (done < 0 && errno == EINTR);
    if (done < 0)
        return AT_FAIL(AT_IO, "cannot read from attest: %s", strerror(errno));
    *got = (size_t)done;
    return AT_OK;
}

/* *line = the next line, NULL at the end of input. */
static at_status next_line(struct session *s, char **line) {
    for (;;) {
        AT_TRY(at_inbox_line(&s->inbox, line));
        if (*line)
            return AT_OK;
        size_t room, got = 0;
        char *into = at_inbox_room(&s->inbox, &room);
        AT_TRY(read_some(s->serve->in, into, room, &got));
        if (got == 0) {
            s->ended = 1;
            return AT_OK;
        }
        at_inbox_added(&s->inbox, got);
    }
}

/* The block's bytes that follow a job line. */
static at_status read_payload(struct session *s, int64_t n) {
    int64_t have = (int64_t)at_inbox_take(&s->inbox, s->block.base, (size_t)n);
    while (have < n) {
        size_t got = 0;
        AT_TRY(read_some(s->serve->in, s->block.base + have, (size_t)(n - have), &got));
        if (got == 0)
            return AT_FAIL(AT_PROTOCOL, "the input ended after %lld of %lld bytes of a block", (long long)have,
                           (long long)n);
        have += (int64_t)got;
    }
    return AT_OK;
}

static at_status send_line(struct session *s) { return write_all(s->serve->out, s->line.text, s->line.n); }

/* ---- greeting ---- */

static void copy_text(char *out, size_t size, const char *text) { snprintf(out, size, "%s", text ? text : ""); }

static at_status send_variant(struct session *s, int i) {
    const struct at_kernel_entry *entry = s->serve->kernels.at(i);
    struct at_variant_text v = { 0 };
    copy_text(v.family, sizeof v.family, entry->family);
    copy_text(v.name, sizeof v.name, entry->name);
    copy_text(v.path, sizeof v.path, entry->path);
    copy_text(v.sha256, sizeof v.sha256, entry->sha256);
    copy_text(v.summary, sizeof v.summary, entry->kernel->summary);
    copy_text(v.source, sizeof v.source, entry->kernel->source);
    if (s->serve->kernels.mutant_of)
        copy_text(v.mutant_of, sizeof v.mutant_of, s->serve->kernels.mutant_of(entry));
    v.asked = entry->kernel->choose != NULL;
    AT_TRY(at_numerics_format(&entry->kernel->numerics, v.numerics, sizeof v.numerics));
    AT_TRY(at_variant_format(i, &v, &s->line));
    return send_line(s);
}

static at_status greet(struct session *s) {
    struct at_hello hello = {
        .version = AT_PROTOCOL_VERSION, .transport = { 1, 1 }, .variants = s->serve->kernels.n, .sequences = 1
    };
    if (s->serve->takes)
        copy_text(hello.takes, sizeof hello.takes, s->serve->takes);
    else
        at_takes_all(hello.takes, sizeof hello.takes);
    copy_text(hello.name, sizeof hello.name, s->serve->name);
    copy_text(hello.device, sizeof hello.device, s->serve->device_text);
    AT_TRY(at_hello_format(&hello, &s->line));
    AT_TRY(send_line(s));
    for (int i = 0; i < hello.variants; i++)
        AT_TRY(send_variant(s, i));
    at_line_begin(&s->line, "ready");
    AT_TRY(at_line_end(&s->line));
    return send_line(s);
}

/* Answers `open`: `opened`, or `refused` when this transport cannot work here; attest may offer another. */
static at_status handle_open(struct session *s, const struct at_message *message) {
    struct at_open open;
    AT_TRY(at_open_parse(message, &open));
    if (at_block_open(&s->block, &open) == AT_OK) {
        at_line_begin(&s->line, "opened");
        at_line_text(&s->line, "transport", at_transport_name(open.transport));
    } else {
        at_line_begin(&s->line, "refused");
        at_line_text(&s->line, "reason", at_error_message());
    }
    AT_TRY(at_line_end(&s->line));
    return send_line(s);
}

/* ---- jobs ---- */

/* An operator that this runner does not know, or that has come to have a size since. */
static int declines(const struct at_job *job, struct at_reply *reply) {
    if (job->problem.op && !job->lacks[0])
        return 0;
    reply->kind = AT_REPLY_UNSUPPORTED;
    if (!job->problem.op)
        snprintf(reply->reason, sizeof reply->reason, "this runner does not know the operator %s", job->op);
    else
        snprintf(reply->reason, sizeof reply->reason, "the job has no %s, which this runner's %s wants", job->lacks,
                 job->op);
    return 1;
}

/* A job alone ends a sequence that was begun. */
static void run(struct session *s, const struct at_job *job, struct at_reply *reply) {
    if (job->mode.hold) {
        at_sequence_hold(&s->sequence, job, reply);
        return;
    }
    if (job->mode.replays)
        at_sequence_run(&s->sequence, s->serve, &s->block, job, reply);
    else
        at_job_run(s->serve, &s->block, job, reply);
    at_sequence_release(&s->sequence);
}

static at_status handle_job(struct session *s, const struct at_message *message) {
    struct at_job job;
    AT_TRY(at_job_parse(message, &job));
    const int sent_inline = s->block.transport == AT_TRANSPORT_INLINE && !job.mode.hold;
    if (s->block.transport == AT_TRANSPORT_MEMFD && job.memory < job.used)
        return AT_FAIL(AT_PROTOCOL, "memory=%lld is less than used=%lld", (long long)job.memory, (long long)job.used);
    if (!job.mode.hold)
        AT_TRY(at_block_reserve(&s->block, sent_inline ? job.used : job.memory));
    if (sent_inline)
        AT_TRY(read_payload(s, job.used));
    struct at_reply reply = { .kind = AT_REPLY_DONE, .id = job.id };
    if (declines(&job, &reply)) {
        /* an operator of another time: the job is answered, the conversation goes on */
    } else if (job.variant < s->serve->kernels.n) {
        double most = ceil(job.timeout) + ALARM_GRACE_SECONDS;
        alarm(most < ALARM_MAX_SECONDS ? (unsigned)most : ALARM_MAX_SECONDS);
        run(s, &job, &reply);
        alarm(0);
        if (s->serve->after_job)
            s->serve->after_job(s->serve->kernels.at(job.variant));
    } else {
        reply.kind = AT_REPLY_FAILED;
        snprintf(reply.reason, sizeof reply.reason, "no variant %d: this runner has %d", job.variant,
                 s->serve->kernels.n);
    }
    reply.bytes = reply.kind == AT_REPLY_DONE && sent_inline ? job.used : 0;
    AT_TRY(at_reply_format(&reply, &s->line));
    AT_TRY(send_line(s));
    return reply.bytes > 0 ? write_all(s->serve->out, s->block.base, (size_t)reply.bytes) : AT_OK;
}

/* ---- the loop ---- */

static at_status handle_line(struct session *s, char *line, int *opened, int *quit) {
    struct at_message message;
    AT_TRY(at_message_parse(line, &message));
    if (strcmp(message.verb, "quit") == 0) {
        *quit = 1;
        return AT_OK;
    }
    if (strcmp(message.verb, "open") == 0) {
        *opened = 1;
        return handle_open(s, &message);
    }
    if (strcmp(message.verb, "job") == 0 && *opened)
        return handle_job(s, &message);
    return AT_FAIL(AT_PROTOCOL, "\"%.60s\" is not understood here; wanted open, %squit", message.verb,
                   *opened ? "job or " : "");
}

/* Best effort: the pipe itself may be what failed. */
static void report_error(struct session *s) {
    at_line_begin(&s->line, "error");
    at_line_text(&s->line, "reason", at_error_message());
    char trail[2048];
    copy_text(trail, sizeof trail, at_error_trail());
    fprintf(stderr, "%s: %s\n", s->serve->name, trail);
    if (at_line_end(&s->line) == AT_OK && send_line(s) != AT_OK)
        fprintf(stderr, "%s: and attest could not be told\n", s->serve->name);
}

at_status at_serve(const struct at_serve *serve) {
    struct session s = { .serve = serve };
    int opened = 0, quit = 0;
    at_status status = greet(&s);
    while (status == AT_OK && !quit) {
        char *line;
        status = next_line(&s, &line);
        if (status != AT_OK || s.ended)
            break;
        status = handle_line(&s, line, &opened, &quit);
    }
    if (status != AT_OK)
        report_error(&s);
    at_sequence_release(&s.sequence);
    at_block_release(&s.block);
    return status;
}
