/* Greeting a runner and running one job on it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/runner_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void at_greeting_release(struct at_greeting *greeting) {
    free(greeting->variants);
    greeting->variants = NULL;
    greeting->n = 0;
}

static at_status read_message(struct at_child *child, struct at_message *message, struct at_countdown *countdown) {
    char *line;
    AT_TRY(at_child_line(child, &line, countdown));
    return at_message_parse(line, message);
}

/* ---- greeting ---- */

static at_status read_variant(struct at_child *child, int index, struct at_variant *variant,
                              struct at_countdown *countdown) {
    struct at_message message;
    struct at_variant_text text;
    AT_TRY(read_message(child, &message, countdown));
    AT_TRY(at_variant_parse(&message, index, &text));
    memcpy(variant->family, text.family, sizeof variant->family);
    memcpy(variant->name, text.name, sizeof variant->name);
    memcpy(variant->path, text.path, sizeof variant->path);
    memcpy(variant->sha256, text.sha256, sizeof variant->sha256);
    memcpy(variant->summary, text.summary, sizeof variant->summary);
    memcpy(variant->source, text.source, sizeof variant->source);
    memcpy(variant->mutant_of, text.mutant_of, sizeof variant->mutant_of);
    variant->untimed = text.untimed;
    variant->asked = text.asked;
    if (at_numerics_parse(text.numerics, &variant->numerics) != AT_OK ||
        at_numerics_check(&variant->numerics) != AT_OK) {
        char why[256];
        snprintf(why, sizeof why, "%s", at_error_message());
        return AT_FAIL(AT_PROTOCOL, "variant %s/%s declares numerics that mean nothing: %s", text.family, text.name,
                       why);
    }
    return AT_OK;
}

_Static_assert(sizeof((struct at_variant *)0)->family == sizeof((struct at_variant_text *)0)->family &&
                   sizeof((struct at_variant *)0)->name == sizeof((struct at_variant_text *)0)->name &&
                   sizeof((struct at_variant *)0)->path == sizeof((struct at_variant_text *)0)->path &&
                   sizeof((struct at_variant *)0)->sha256 == sizeof((struct at_variant_text *)0)->sha256 &&
                   sizeof((struct at_variant *)0)->summary == sizeof((struct at_variant_text *)0)->summary &&
                   sizeof((struct at_variant *)0)->source == sizeof((struct at_variant_text *)0)->source &&
                   sizeof((struct at_variant *)0)->mutant_of == sizeof((struct at_variant_text *)0)->mutant_of &&
                   sizeof((struct at_greeting *)0)->takes == sizeof((struct at_hello *)0)->takes,
               "texts are copied whole");

static at_status read_hello(struct at_child *child, struct at_greeting *greeting, struct at_hello *hello,
                            struct at_countdown *countdown) {
    struct at_message message;
    AT_TRY(read_message(child, &message, countdown));
    AT_TRY(at_hello_parse(&message, hello));
    memcpy(greeting->name, hello->name, sizeof greeting->name);
    memcpy(greeting->device, hello->device, sizeof greeting->device);
    greeting->sequences = hello->sequences;
    memcpy(greeting->takes, hello->takes, sizeof greeting->takes);
    greeting->variants = calloc((size_t)hello->variants + 1, sizeof *greeting->variants);
    if (!greeting->variants)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d variants", hello->variants);
    for (; greeting->n < hello->variants; greeting->n++)
        AT_TRY(read_variant(child, greeting->n, &greeting->variants[greeting->n], countdown));
    AT_TRY(read_message(child, &message, countdown));
    if (strcmp(message.verb, "ready") != 0)
        return AT_FAIL(AT_PROTOCOL, "\"%.60s\" after %d variants; wanted ready", message.verb, hello->variants);
    return AT_OK;
}

/* *taken = 0 when the runner refuses; `why` is its reason then. */
static at_status offer(struct at_child *child, const struct at_open *open, int *taken, char *why, size_t size,
                       struct at_countdown *countdown) {
    struct at_line line;
    struct at_message message;
    AT_TRY(at_open_format(open, &line));
    AT_TRY(at_child_write(child, line.text, line.n, countdown));
    AT_TRY(read_message(child, &message, countdown));
    *taken = strcmp(message.verb, "opened") == 0;
    if (!*taken && strcmp(message.verb, "refused") != 0)
        return AT_FAIL(AT_PROTOCOL, "\"%.60s\" in answer to open; wanted opened or refused", message.verb);
    const char *reason = at_message_get(&message, "reason");
    snprintf(why, size, "%s", reason ? reason : "no reason given");
    return AT_OK;
}

/* The nonce borrows the block's first bytes and gives them back: a job may be prepared there already. */
static at_status offer_memfd(struct at_child *child, const struct at_shared *shared, int *taken,
                             struct at_countdown *countdown) {
    struct at_open open = { .transport = AT_TRANSPORT_MEMFD, .fd = AT_INHERITED_FD, .memory = shared->capacity };
    uint8_t before[AT_NONCE_BYTES];
    char why[256];
    if (getrandom(open.nonce, sizeof open.nonce, 0) != (ssize_t)sizeof open.nonce)
        return AT_FAIL(AT_ENVIRONMENT, "no random numbers from the system");
    memcpy(before, shared->base, sizeof before);
    memcpy(shared->base, open.nonce, sizeof open.nonce);
    at_status status = offer(child, &open, taken, why, sizeof why, countdown);
    memcpy(shared->base, before, sizeof before);
    return status;
}

static at_status agree(struct at_child *child, const struct at_shared *shared, const struct at_hello *hello,
                       struct at_greeting *greeting, struct at_countdown *countdown) {
    int taken = 0;
    greeting->transport = AT_TRANSPORT_MEMFD;
    if (hello->transport[AT_TRANSPORT_MEMFD])
        AT_TRY(offer_memfd(child, shared, &taken, countdown));
    if (taken)
        return AT_OK;
    greeting->transport = AT_TRANSPORT_INLINE;
    char why[256] = "it does not speak inline, and its shared memory is not ours";
    const struct at_open open = { .transport = AT_TRANSPORT_INLINE };
    if (hello->transport[AT_TRANSPORT_INLINE])
        AT_TRY(offer(child, &open, &taken, why, sizeof why, countdown));
    if (!taken)
        return AT_FAIL(AT_PROTOCOL, "the runner takes no transport: %s", why);
    return AT_OK;
}

at_status at_wire_greet(struct at_child *child, const struct at_shared *shared, struct at_greeting *greeting,
                        struct at_countdown *countdown) {
    at_status status = AT_OK;
    struct at_hello hello;
    *greeting = (struct at_greeting){ 0 };
    AT_TRY_OUT(read_hello(child, greeting, &hello, countdown));
    AT_TRY_OUT(agree(child, shared, &hello, greeting, countdown));
out:
    if (status != AT_OK)
        at_greeting_release(greeting);
    return status;
}

/* ---- jobs ---- */

at_status at_wire_job(const struct at_problem *problem, const uint8_t *base, int64_t used, struct at_job *job) {
    *job = (struct at_job){ .problem = *problem, .used = used };
    memset(job->problem.tensors, 0, sizeof job->problem.tensors);
    snprintf(job->op, sizeof job->op, "%s", problem->op->name);
    for (int i = 0; i < problem->op->n_tensors; i++) {
        const struct at_tensor *t = &problem->tensors[i];
        if (!t->data || t->rank == 0)
            continue;
        struct at_job_tensor *to = &job->tensor[job->n_tensors++];
        *to = (struct at_job_tensor){ .index = i, .role = problem->op->tensors[i].role, .shape = *t };
        to->shape.data = NULL;
        to->bytes = at_tensor_bytes(t);
        snprintf(to->name, sizeof to->name, "%s", problem->op->tensors[i].name);
        /* through integers: a pointer into another object cannot be compared */
        uintptr_t at = (uintptr_t)t->data, start = (uintptr_t)base;
        if (at < start || at - start > (uintptr_t)used || (uintptr_t)to->bytes > (uintptr_t)used - (at - start))
            return AT_FAIL(AT_BUG, "tensor %s is not inside the runner's block", to->name);
        to->offset = (int64_t)(at - start);
    }
    return AT_OK;
}

at_status at_wire_run(struct at_child *child, const struct at_job *job, enum at_transport transport, uint8_t *block,
                      struct at_reply *reply, struct at_countdown *countdown) {
    struct at_line line;
    struct at_message message;
    int is_inline = transport == AT_TRANSPORT_INLINE && !job->mode.hold;
    AT_TRY(at_job_format(job, &line));
    AT_TRY(at_child_write(child, line.text, line.n, countdown));
    if (is_inline)
        AT_TRY(at_child_write(child, block, (size_t)job->used, countdown));
    AT_TRY(read_message(child, &message, countdown));
    AT_TRY(at_reply_parse(&message, reply));
    if (reply->id != job->id)
        return AT_FAIL(AT_PROTOCOL, "a reply to job %lld came while job %lld was running", (long long)reply->id,
                       (long long)job->id);
    int64_t want = is_inline && reply->kind == AT_REPLY_DONE ? job->used : 0;
    if (reply->bytes != want)
        return AT_FAIL(AT_PROTOCOL, "bytes=%lld in a reply; wanted %lld", (long long)reply->bytes, (long long)want);
    if (want > 0)
        AT_TRY(at_child_read(child, block, (size_t)want, countdown));
    if (child->inbox.end > child->inbox.begin)
        return AT_FAIL(AT_PROTOCOL, "the runner sent more than its reply");
    return AT_OK;
}

/* A reply takes at most some 2 KB, so that those of the jobs ahead fit a pipe and neither side waits to write to the other
 * while that one writes. */
enum { JOBS_AHEAD = 8 };

/* The line of another job: its id and variant, and the rest as in `like`. */
static at_status send_question(struct at_child *child, const struct at_line *like, int64_t id, int variant,
                               struct at_countdown *countdown) {
    struct at_line line;
    const char *rest = strstr(like->text, " op=");
    at_line_begin(&line, "job");
    at_line_i64(&line, "id", id);
    at_line_i64(&line, "variant", variant);
    const size_t n = like->n - (size_t)(rest - like->text);
    if (line.n + n >= sizeof line.text)
        return AT_FAIL(AT_PROTOCOL, "a question's line is longer than %d bytes", AT_LINE_BYTES);
    memcpy(line.text + line.n, rest, n);
    return at_child_write(child, line.text, line.n + n, countdown);
}

at_status at_wire_ask(struct at_child *child, const struct at_job *job, const int *variants, int n,
                      struct at_reply *replies, struct at_countdown *countdown) {
    struct at_message message;
    struct at_line like;
    AT_TRY(at_job_format(job, &like));
    for (int sent = 0, i = 0; i < n; i++) {
        for (; sent < n && sent < i + JOBS_AHEAD; sent++)
            AT_TRY(send_question(child, &like, job->id + sent, variants[sent], countdown));
        AT_TRY(read_message(child, &message, countdown));
        AT_TRY(at_reply_parse(&message, &replies[i]));
        if (replies[i].id != job->id + i || replies[i].bytes != 0)
            return AT_FAIL(AT_PROTOCOL, "a reply to job %lld with %lld bytes came while job %lld was asked about",
                           (long long)replies[i].id, (long long)replies[i].bytes, (long long)(job->id + i));
    }
    return child->inbox.end > child->inbox.begin ? AT_FAIL(AT_PROTOCOL, "the runner sent more than its reply") : AT_OK;
}
