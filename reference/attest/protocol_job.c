/* The runner protocol's jobs, to lines and back: an operator's own sizes and parameters by name, and its tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/protocol.h"

enum { KEY_BYTES = 64 };

static const char *const role_names[] = { "in", "out", "inout" };

static void format_tensor(const struct at_job_tensor *tensor, struct at_line *line) {
    char shape[96] = "";
    for (int i = 0; i < tensor->shape.rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i ? "," : "",
                 (long long)tensor->shape.shape[i]);
    char text[256];
    snprintf(text, sizeof text, "%d:%s:%s:%s:%s:%lld:%lld", tensor->index, tensor->name, role_names[tensor->role],
             tensor->shape.format == AT_I32 ? "i32" : at_format_info(tensor->shape.format)->name, shape,
             (long long)tensor->offset, (long long)tensor->bytes);
    at_line_text(line, "tensor", text);
}

/* "size.NAME" or "param.NAME". */
static const char *key_of(const struct at_scalar *field, char *text, size_t size) {
    snprintf(text, size, "%s.%s", at_scalar_is_size(field) ? "size" : "param", field->name);
    return text;
}

static void format_fields(const struct at_problem *problem, struct at_line *line) {
    char key[KEY_BYTES];
    const struct at_scalar *field;
    for (int i = 0; (field = at_op_scalar_at(problem->op, i)); i++) {
        const double value = at_scalar_get(problem, field);
        if (field->type == AT_SCALAR_FLOAT)
            at_line_f64(line, key_of(field, key, sizeof key), value);
        else
            at_line_i64(line, key_of(field, key, sizeof key), (int64_t)value);
    }
}

at_status at_job_format(const struct at_job *job, struct at_line *line) {
    const struct at_problem *problem = &job->problem;
    at_line_begin(line, "job");
    at_line_i64(line, "id", job->id);
    at_line_i64(line, "variant", job->variant);
    at_line_text(line, "op", job->op);
    at_line_text(line, "dtype", at_format_info(problem->dtype)->name);
    at_line_i64(line, "memory", job->memory);
    at_line_i64(line, "used", job->used);
    at_line_f64(line, "timeout", job->timeout);
    format_fields(problem, line);
    if (job->mode.graph)
        at_line_i64(line, "graph", job->mode.graph_max_sk);
    if (job->mode.order)
        at_line_i64(line, "order", job->mode.order);
    if (job->mode.counters)
        at_line_i64(line, "counters", 1);
    if (job->mode.unchecked)
        at_line_i64(line, "unchecked", 1);
    if (job->mode.ask)
        at_line_i64(line, "ask", 1);
    if (job->mode.dry)
        at_line_i64(line, "dry", 1);
    if (job->mode.timings)
        at_line_i64(line, "timings", job->mode.timings);
    if (job->mode.hold)
        at_line_i64(line, "hold", 1);
    if (job->mode.replays)
        at_line_i64(line, "replays", job->mode.replays);
    if (job->mode.steps)
        at_line_i64(line, "steps", job->mode.steps);
    for (int i = 0; i < job->n_tensors; i++)
        format_tensor(&job->tensor[i], line);
    return at_line_end(line);
}

/* Takes one part of `text` up to `end`; the last part has end '\0'. */
static at_status part(char **text, char end, char **out) {
    *out = *text;
    char *stop = end ? strchr(*text, end) : *text + strlen(*text);
    if (!stop)
        return AT_FAIL(AT_PROTOCOL,
                       "a tensor field ends early at \"%.60s\"; wanted "
                       "index:name:role:format:shape:offset:bytes",
                       *out);
    *text = end ? stop + 1 : stop;
    *stop = '\0';
    return AT_OK;
}

static at_status number(const char *text, int64_t max, int64_t *out) {
    char *end;
    long long value = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || strlen(text) > 18 || value > max)
        return AT_FAIL(AT_PROTOCOL, "\"%.40s\" in a tensor field; wanted a whole number from 0 to %lld", text,
                       (long long)max);
    *out = value;
    return AT_OK;
}

static at_status parse_shape(char *text, struct at_tensor *shape) {
    while (*text) {
        char *next = strchr(text, ',');
        if (next)
            *next++ = '\0';
        if (shape->rank == AT_MAX_RANK)
            return AT_FAIL(AT_PROTOCOL, "a tensor has more than %d dimensions", AT_MAX_RANK);
        AT_TRY(number(text, AT_PROTOCOL_MAX_BYTES, &shape->shape[shape->rank++]));
        text = next ? next : text + strlen(text);
    }
    return AT_OK;
}

static at_status parse_format(const char *name, enum at_format *format) {
    *format = AT_I32;
    if (strcmp(name, "i32") == 0)
        return AT_OK;
    if (at_format_parse(name, format) != AT_OK)
        return AT_FAIL(AT_PROTOCOL, "\"%.40s\" is no number format", name);
    return AT_OK;
}

/* bytes = product of the shape times the element size, without overflow; inside [0, used). */
static at_status check_extent(const struct at_job_tensor *t, int64_t used) {
    int64_t element = (int64_t)at_format_info(t->shape.format)->bytes, bytes = element;
    for (int i = 0; i < t->shape.rank; i++)
        if (__builtin_mul_overflow(bytes, t->shape.shape[i], &bytes))
            return AT_FAIL(AT_PROTOCOL, "tensor %s: its shape is beyond any memory", t->name);
    if (t->shape.rank == 0 || bytes != t->bytes)
        return AT_FAIL(AT_PROTOCOL, "tensor %s: %lld bytes, its shape and format want %lld", t->name,
                       (long long)t->bytes, (long long)bytes);
    if (t->offset > used || t->bytes > used - t->offset || t->offset % element)
        return AT_FAIL(AT_PROTOCOL, "tensor %s: bytes %lld at %lld; wanted inside %lld and aligned to %lld", t->name,
                       (long long)t->bytes, (long long)t->offset, (long long)used, (long long)element);
    return AT_OK;
}

static at_status parse_tensor(const char *value, int64_t used, struct at_job_tensor *t) {
    char copy[256], *text = copy, *index, *name, *role, *format, *shape, *offset, *bytes;
    if (strlen(value) >= sizeof copy)
        return AT_FAIL(AT_PROTOCOL, "tensor=%.40s... is too long", value);
    memcpy(copy, value, strlen(value) + 1);
    AT_TRY(part(&text, ':', &index));
    AT_TRY(part(&text, ':', &name));
    AT_TRY(part(&text, ':', &role));
    AT_TRY(part(&text, ':', &format));
    AT_TRY(part(&text, ':', &shape));
    AT_TRY(part(&text, ':', &offset));
    AT_TRY(part(&text, '\0', &bytes));
    int64_t i;
    AT_TRY(number(index, AT_MAX_TENSORS - 1, &i));
    t->index = (int)i;
    if (strlen(name) >= sizeof t->name)
        return AT_FAIL(AT_PROTOCOL, "tensor name %.40s... is too long", name);
    memcpy(t->name, name, strlen(name) + 1);
    int r = 0;
    while (r <= AT_INOUT && strcmp(role, role_names[r]) != 0)
        r++;
    if (r > AT_INOUT)
        return AT_FAIL(AT_PROTOCOL, "tensor %s: role \"%.40s\"; wanted in, out or inout", t->name, role);
    t->role = (enum at_role)r;
    AT_TRY(parse_format(format, &t->shape.format));
    AT_TRY(parse_shape(shape, &t->shape));
    AT_TRY(number(offset, AT_PROTOCOL_MAX_BYTES, &t->offset));
    AT_TRY(number(bytes, AT_PROTOCOL_MAX_BYTES, &t->bytes));
    return check_extent(t, used);
}

static at_status parse_tensors(const struct at_message *message, struct at_job *job) {
    unsigned seen = 0;
    for (int i = 0; i < message->n; i++) {
        if (strcmp(message->field[i].key, "tensor") != 0)
            continue;
        if (job->n_tensors == AT_MAX_TENSORS)
            return AT_FAIL(AT_PROTOCOL, "a job has more than %d tensors", AT_MAX_TENSORS);
        struct at_job_tensor *t = &job->tensor[job->n_tensors++];
        AT_TRY(parse_tensor(message->field[i].value, job->used, t));
        if (seen & 1u << t->index)
            return AT_FAIL(AT_PROTOCOL, "a job has tensor %d twice", t->index);
        seen |= 1u << t->index;
    }
    return AT_OK;
}

static at_status parse_mode(const struct at_message *message, struct at_run_mode *mode) {
    int64_t counters, timings, unchecked, ask, dry, hold, replays;
    mode->graph = at_message_get(message, "graph") != NULL;
    AT_TRY(at_message_optional_i64(message, "graph", AT_PROTOCOL_MAX_BYTES, &mode->graph_max_sk));
    AT_TRY(at_message_optional_i64(message, "order", INT64_MAX, &mode->order));
    AT_TRY(at_message_optional_i64(message, "counters", 1, &counters));
    AT_TRY(at_message_optional_i64(message, "timings", 1000000, &timings));
    AT_TRY(at_message_optional_i64(message, "unchecked", 1, &unchecked));
    AT_TRY(at_message_optional_i64(message, "ask", 1, &ask));
    AT_TRY(at_message_optional_i64(message, "dry", 1, &dry));
    AT_TRY(at_message_optional_i64(message, "hold", 1, &hold));
    AT_TRY(at_message_optional_i64(message, "replays", 1000000, &replays));
    AT_TRY(at_message_optional_i64(message, "steps", AT_PROTOCOL_MAX_BYTES, &mode->steps));
    if (mode->steps % (int64_t)sizeof(double))
        return AT_FAIL(AT_PROTOCOL, "steps=%lld; wanted a multiple of %zu", (long long)mode->steps, sizeof(double));
    mode->counters = (int32_t)counters;
    mode->unchecked = (int32_t)unchecked;
    mode->dry = (int32_t)dry;
    mode->ask = (int32_t)ask;
    mode->timings = (int32_t)timings;
    mode->hold = (int32_t)hold;
    mode->replays = (int32_t)replays;
    return AT_OK;
}

/* One size or parameter of the operator. What a line does not say keeps its default; a size has none worth having. */
static at_status parse_field(const struct at_message *message, const struct at_scalar *field, struct at_job *job) {
    char key[KEY_BYTES];
    double real;
    int64_t whole;
    if (!at_message_get(message, key_of(field, key, sizeof key))) {
        if (at_scalar_is_size(field) && !job->lacks[0])
            snprintf(job->lacks, sizeof job->lacks, "%s", key);
        return AT_OK;
    }
    if (field->type == AT_SCALAR_FLOAT) {
        AT_TRY(at_message_f64(message, key, &real));
        at_scalar_set(&job->problem, field, real);
        return AT_OK;
    }
    const int64_t least = at_scalar_is_size(field) ? 0 : INT32_MIN;
    AT_TRY(at_message_i64(message, key, least, at_scalar_is_size(field) ? AT_PROTOCOL_MAX_BYTES : INT32_MAX, &whole));
    at_scalar_set(&job->problem, field, (double)whole);
    return AT_OK;
}

/* Sizes and parameters by the operator's own table; those of an operator that this program does not know stay unread. */
static at_status parse_fields(const struct at_message *message, struct at_job *job) {
    char text[16];
    enum at_format dtype;
    AT_TRY(at_message_text(message, "op", job->op, sizeof job->op));
    AT_TRY(at_message_text(message, "dtype", text, sizeof text));
    AT_TRY(parse_format(text, &dtype));
    const struct at_op *op = at_op_find(job->op);
    if (!op) {
        job->problem.dtype = dtype;
        return AT_OK;
    }
    at_problem_init(&job->problem, op, dtype);
    const struct at_scalar *field;
    for (int i = 0; (field = at_op_scalar_at(op, i)); i++)
        AT_TRY(parse_field(message, field, job));
    return AT_OK;
}

at_status at_job_parse(const struct at_message *message, struct at_job *job) {
    *job = (struct at_job){ 0 };
    AT_TRY(at_message_expect(message, "job"));
    int64_t variant;
    AT_TRY(at_message_i64(message, "id", 0, INT64_MAX, &job->id));
    AT_TRY(at_message_i64(message, "variant", 0, AT_MAX_VARIANTS - 1, &variant));
    job->variant = (int)variant;
    AT_TRY(parse_fields(message, job));
    AT_TRY(at_message_i64(message, "memory", 0, AT_PROTOCOL_MAX_BYTES, &job->memory));
    AT_TRY(at_message_i64(message, "used", 0, AT_PROTOCOL_MAX_BYTES, &job->used));
    AT_TRY(at_message_f64(message, "timeout", &job->timeout));
    if (!(job->timeout > 0 && job->timeout <= 1e9))
        return AT_FAIL(AT_PROTOCOL, "timeout=%g; wanted above 0", job->timeout);
    AT_TRY(parse_mode(message, &job->mode));
    return parse_tensors(message, job);
}
