/* The runner protocol's messages: hello, variant, open, job and reply, to lines and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const transport_names[AT_TRANSPORT_COUNT] = { "memfd", "inline" };
static const char *const role_names[] = { "in", "out", "inout" };

const char *at_transport_name(enum at_transport transport) { return transport_names[transport]; }

at_status at_transport_parse(const char *name, enum at_transport *transport) {
    for (int i = 0; i < AT_TRANSPORT_COUNT; i++)
        if (strcmp(name, transport_names[i]) == 0) {
            *transport = (enum at_transport)i;
            return AT_OK;
        }
    return AT_FAIL(AT_PROTOCOL, "transport \"%.40s\"; wanted memfd or inline", name);
}

static at_status expect_verb(const struct at_message *message, const char *verb) {
    if (strcmp(message->verb, verb) != 0)
        return AT_FAIL(AT_PROTOCOL, "a line starts with \"%.60s\"; wanted %s", message->verb, verb);
    return AT_OK;
}

/* ---- hello and variant ---- */

at_status at_hello_format(const struct at_hello *hello, struct at_line *line) {
    char list[64] = "";
    for (int i = 0; i < AT_TRANSPORT_COUNT; i++)
        if (hello->transport[i])
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list[0] ? "," : "", transport_names[i]);
    at_line_begin(line, "hello");
    at_line_i64(line, "protocol", hello->version);
    at_line_text(line, "name", hello->name);
    at_line_text(line, "device", hello->device);
    at_line_text(line, "transports", list);
    at_line_i64(line, "variants", hello->variants);
    return at_line_end(line);
}

/* Transports this side does not know are a newer runner's and are passed over. */
static at_status parse_transports(const struct at_message *message, struct at_hello *hello) {
    char list[128];
    AT_TRY(at_message_text(message, "transports", list, sizeof list));
    int known = 0;
    char *rest = NULL;
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        for (int i = 0; i < AT_TRANSPORT_COUNT; i++)
            if (strcmp(word, transport_names[i]) == 0)
                known = hello->transport[i] = 1;
    if (!known)
        return AT_FAIL(AT_PROTOCOL, "the runner offers no transport of memfd, inline");
    return AT_OK;
}

at_status at_hello_parse(const struct at_message *message, struct at_hello *hello) {
    *hello = (struct at_hello){ 0 };
    AT_TRY(expect_verb(message, "hello"));
    AT_TRY(at_message_i64(message, "protocol", 0, INT32_MAX, &hello->version));
    if (hello->version != AT_PROTOCOL_VERSION)
        return AT_FAIL(AT_PROTOCOL, "the runner speaks protocol %lld, this attest speaks %d", (long long)hello->version,
                       AT_PROTOCOL_VERSION);
    AT_TRY(at_message_text(message, "name", hello->name, sizeof hello->name));
    AT_TRY(at_message_text(message, "device", hello->device, sizeof hello->device));
    AT_TRY(parse_transports(message, hello));
    int64_t variants;
    AT_TRY(at_message_i64(message, "variants", 0, AT_MAX_VARIANTS, &variants));
    hello->variants = (int)variants;
    return AT_OK;
}

/* The text fields of a variant line, in their order. */
#define VARIANT_TEXTS(X) X(family) X(name) X(path) X(sha256) X(summary) X(source) X(numerics)

at_status at_variant_format(int index, const struct at_variant_text *variant, struct at_line *line) {
    at_line_begin(line, "variant");
    at_line_i64(line, "index", index);
#define X(field) at_line_text(line, #field, variant->field);
    VARIANT_TEXTS(X)
#undef X
    return at_line_end(line);
}

at_status at_variant_parse(const struct at_message *message, int index, struct at_variant_text *variant) {
    *variant = (struct at_variant_text){ 0 };
    AT_TRY(expect_verb(message, "variant"));
    int64_t found;
    AT_TRY(at_message_i64(message, "index", index, index, &found));
#define X(field) AT_TRY(at_message_text(message, #field, variant->field, sizeof variant->field));
    VARIANT_TEXTS(X)
#undef X
    if (!variant->family[0] || !variant->name[0])
        return AT_FAIL(AT_PROTOCOL, "variant %d has no family or no name", index);
    return AT_OK;
}

/* ---- open ---- */

at_status at_open_format(const struct at_open *open, struct at_line *line) {
    at_line_begin(line, "open");
    at_line_i64(line, "protocol", AT_PROTOCOL_VERSION);
    at_line_text(line, "transport", transport_names[open->transport]);
    if (open->transport == AT_TRANSPORT_MEMFD) {
        char hex[2 * AT_NONCE_BYTES + 1];
        for (int i = 0; i < AT_NONCE_BYTES; i++)
            snprintf(hex + (size_t)2 * (size_t)i, 3, "%02x", open->nonce[i]);
        at_line_i64(line, "fd", open->fd);
        at_line_i64(line, "memory", open->memory);
        at_line_text(line, "nonce", hex);
    }
    return at_line_end(line);
}

static at_status parse_nonce(const char *hex, uint8_t *nonce) {
    if (strlen(hex) != (size_t)2 * AT_NONCE_BYTES || strspn(hex, "0123456789abcdef") != strlen(hex))
        return AT_FAIL(AT_PROTOCOL, "nonce=%.60s; wanted %d digits of 0-9a-f", hex, 2 * AT_NONCE_BYTES);
    for (size_t i = 0; i < AT_NONCE_BYTES; i++) {
        char byte[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
        nonce[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return AT_OK;
}

at_status at_open_parse(const struct at_message *message, struct at_open *open) {
    *open = (struct at_open){ 0 };
    AT_TRY(expect_verb(message, "open"));
    int64_t version, fd;
    AT_TRY(at_message_i64(message, "protocol", AT_PROTOCOL_VERSION, AT_PROTOCOL_VERSION, &version));
    char text[80];
    AT_TRY(at_message_text(message, "transport", text, sizeof text));
    AT_TRY(at_transport_parse(text, &open->transport));
    if (open->transport != AT_TRANSPORT_MEMFD)
        return AT_OK;
    AT_TRY(at_message_i64(message, "fd", 0, INT32_MAX, &fd));
    open->fd = (int)fd;
    AT_TRY(at_message_i64(message, "memory", AT_NONCE_BYTES, AT_PROTOCOL_MAX_BYTES, &open->memory));
    AT_TRY(at_message_text(message, "nonce", text, sizeof text));
    return parse_nonce(text, open->nonce);
}

/* ---- job ---- */

static const char *const size_keys[] = {
#define X(name, meaning) "size." #name,
    AT_SIZE_LIST(X)
#undef X
};

static void put_f32(struct at_line *line, const char *key, float value) { at_line_f64(line, key, (double)value); }
static void put_i32(struct at_line *line, const char *key, int32_t value) { at_line_i64(line, key, value); }

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

at_status at_job_format(const struct at_job *job, struct at_line *line) {
    at_line_begin(line, "job");
    at_line_i64(line, "id", job->id);
    at_line_i64(line, "variant", job->variant);
    at_line_text(line, "op", job->op);
    at_line_text(line, "dtype", at_format_info(job->dtype)->name);
    at_line_i64(line, "memory", job->memory);
    at_line_i64(line, "used", job->used);
    at_line_f64(line, "timeout", job->timeout);
#define X(name, meaning) at_line_i64(line, "size." #name, job->sizes.name);
    AT_SIZE_LIST(X)
#undef X
#define X(type, name, value, meaning) \
    _Generic(job->params.name, float : put_f32, int32_t : put_i32)(line, "param." #name, job->params.name);
    AT_PARAM_LIST(X)
#undef X
    if (job->mode.graph)
        at_line_i64(line, "graph", job->mode.graph_max_sk);
    if (job->mode.order)
        at_line_i64(line, "order", job->mode.order);
    if (job->mode.counters)
        at_line_i64(line, "counters", 1);
    if (job->mode.unchecked)
        at_line_i64(line, "unchecked", 1);
    if (job->mode.timings)
        at_line_i64(line, "timings", job->mode.timings);
    for (int i = 0; i < job->n_tensors; i++)
        format_tensor(&job->tensor[i], line);
    return at_line_end(line);
}

static at_status get_f32(const struct at_message *message, const char *key, float *out) {
    double value;
    AT_TRY(at_message_f64(message, key, &value));
    *out = (float)value;
    return AT_OK;
}

static at_status get_i32(const struct at_message *message, const char *key, int32_t *out) {
    int64_t value;
    AT_TRY(at_message_i64(message, key, INT32_MIN, INT32_MAX, &value));
    *out = (int32_t)value;
    return AT_OK;
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
    int64_t counters, timings, unchecked;
    mode->graph = at_message_get(message, "graph") != NULL;
    AT_TRY(at_message_optional_i64(message, "graph", AT_PROTOCOL_MAX_BYTES, &mode->graph_max_sk));
    AT_TRY(at_message_optional_i64(message, "order", INT64_MAX, &mode->order));
    AT_TRY(at_message_optional_i64(message, "counters", 1, &counters));
    AT_TRY(at_message_optional_i64(message, "timings", 1000000, &timings));
    AT_TRY(at_message_optional_i64(message, "unchecked", 1, &unchecked));
    mode->counters = (int32_t)counters;
    mode->unchecked = (int32_t)unchecked;
    mode->timings = (int32_t)timings;
    return AT_OK;
}

at_status at_job_parse(const struct at_message *message, struct at_job *job) {
    *job = (struct at_job){ 0 };
    AT_TRY(expect_verb(message, "job"));
    int64_t variant;
    AT_TRY(at_message_i64(message, "id", 0, INT64_MAX, &job->id));
    AT_TRY(at_message_i64(message, "variant", 0, AT_MAX_VARIANTS - 1, &variant));
    job->variant = (int)variant;
    AT_TRY(at_message_text(message, "op", job->op, sizeof job->op));
    char text[16];
    AT_TRY(at_message_text(message, "dtype", text, sizeof text));
    AT_TRY(parse_format(text, &job->dtype));
    AT_TRY(at_message_i64(message, "memory", 0, AT_PROTOCOL_MAX_BYTES, &job->memory));
    AT_TRY(at_message_i64(message, "used", 0, AT_PROTOCOL_MAX_BYTES, &job->used));
    AT_TRY(at_message_f64(message, "timeout", &job->timeout));
    if (!(job->timeout > 0 && job->timeout <= 1e9))
        return AT_FAIL(AT_PROTOCOL, "timeout=%g; wanted above 0", job->timeout);
    int64_t *const sizes[] = {
#define X(name, meaning) &job->sizes.name,
        AT_SIZE_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        AT_TRY(at_message_i64(message, size_keys[i], 0, AT_PROTOCOL_MAX_BYTES, sizes[i]));
#define X(type, name, value, meaning) \
    AT_TRY(_Generic(job->params.name, float : get_f32, int32_t : get_i32)(message, "param." #name, &job->params.name));
    AT_PARAM_LIST(X)
#undef X
    AT_TRY(parse_mode(message, &job->mode));
    return parse_tensors(message, job);
}
