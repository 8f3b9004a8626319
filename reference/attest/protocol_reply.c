/* What became of a job: the reply's line, written and read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/protocol.h"

#include <string.h>

static const char *const reply_verbs[AT_REPLY_COUNT] = {
    "done", "unsupported", "failed", "racy", "dirty", "deadlocked"
};

at_status at_reply_format(const struct at_reply *reply, struct at_line *line) {
    at_line_begin(line, reply_verbs[reply->kind]);
    at_line_i64(line, "id", reply->id);
    if (reply->kind == AT_REPLY_DONE) {
        at_line_f64(line, "seconds", reply->seconds);
        at_line_i64(line, "bytes", reply->bytes);
        if (reply->capturable)
            at_line_i64(line, "capturable", 1);
        if (reply->path)
            at_line_i64(line, "path", reply->path);
        if (reply->launches > 0)
            at_line_i64(line, "launches", reply->launches);
        if (reply->way[0])
            at_line_text(line, "way", reply->way);
        if (reply->declares)
            at_line_text(line, "numerics", reply->numerics);
        if (reply->has_counters) {
#define X(name, meaning) at_line_i64(line, "counter." #name, reply->counters.name);
            AT_COUNTER_LIST(X)
#undef X
        }
        if (reply->timing.replays > 0) {
            at_line_i64(line, "replays", reply->timing.replays);
            at_line_i64(line, "copies", reply->timing.copies);
            at_line_f64(line, "cold", reply->timing.cold);
            at_line_f64(line, "hot", reply->timing.hot);
            at_line_f64(line, "copy_rate", reply->timing.copy_rate);
            if (reply->timed_outputs)
                at_line_i64(line, "outputs", 1);
        }
    } else {
        at_line_text(line, "reason", reply->reason);
    }
    return at_line_end(line);
}

/* All counters or none. */
static at_status parse_counters(const struct at_message *message, struct at_reply *reply) {
    reply->has_counters = at_message_get(message, "counter.global_requests") != NULL;
    if (!reply->has_counters)
        return AT_OK;
#define X(name, meaning) AT_TRY(at_message_i64(message, "counter." #name, 0, INT64_MAX, &reply->counters.name));
    AT_COUNTER_LIST(X)
#undef X
    return AT_OK;
}

static at_status parse_timing(const struct at_message *message, struct at_timing *timing) {
    int64_t replays = 0, copies = 0;
    if (!at_message_get(message, "replays"))
        return AT_OK;
    AT_TRY(at_message_i64(message, "replays", 1, INT32_MAX, &replays));
    AT_TRY(at_message_i64(message, "copies", 1, INT32_MAX, &copies));
    AT_TRY(at_message_f64(message, "cold", &timing->cold));
    AT_TRY(at_message_f64(message, "hot", &timing->hot));
    AT_TRY(at_message_f64(message, "copy_rate", &timing->copy_rate));
    if (!(timing->cold >= 0 && timing->cold <= 1e9 && timing->hot >= 0 && timing->hot <= 1e9 &&
          timing->copy_rate >= 0 && timing->copy_rate <= 1e18))
        return AT_FAIL(AT_PROTOCOL, "cold=%g hot=%g copy_rate=%g; wanted seconds and bytes a second, 0 or more",
                       timing->cold, timing->hot, timing->copy_rate);
    timing->replays = (int32_t)replays;
    timing->copies = (int32_t)copies;
    return AT_OK;
}

at_status at_reply_parse(const struct at_message *message, struct at_reply *reply) {
    *reply = (struct at_reply){ .kind = AT_REPLY_COUNT };
    for (int i = 0; i < AT_REPLY_COUNT; i++)
        if (strcmp(message->verb, reply_verbs[i]) == 0)
            reply->kind = (enum at_reply_kind)i;
    if (strcmp(message->verb, "error") == 0) {
        const char *reason = at_message_get(message, "reason");
        return AT_FAIL(AT_PROTOCOL, "the runner did not understand: %.400s", reason ? reason : "no reason given");
    }
    if (reply->kind == AT_REPLY_COUNT)
        return AT_FAIL(AT_PROTOCOL,
                       "\"%.60s\" is no reply; wanted done, unsupported, failed, racy, dirty, deadlocked or error",
                       message->verb);
    AT_TRY(at_message_i64(message, "id", 0, INT64_MAX, &reply->id));
    if (reply->kind != AT_REPLY_DONE)
        return at_message_text(message, "reason", reply->reason, sizeof reply->reason);
    AT_TRY(at_message_i64(message, "bytes", 0, AT_PROTOCOL_MAX_BYTES, &reply->bytes));
    AT_TRY(at_message_f64(message, "seconds", &reply->seconds));
    if (!(reply->seconds >= 0 && reply->seconds <= 1e9))
        return AT_FAIL(AT_PROTOCOL, "seconds=%g; wanted 0 or more", reply->seconds);
    int64_t capturable;
    AT_TRY(at_message_optional_i64(message, "capturable", 1, &capturable));
    reply->capturable = (int)capturable;
    AT_TRY(at_message_optional_i64(message, "path", INT64_MAX, &reply->path));
    AT_TRY(at_message_optional_i64(message, "launches", INT32_MAX, &reply->launches));
    if (at_message_get(message, "way"))
        AT_TRY(at_message_text(message, "way", reply->way, sizeof reply->way));
    reply->declares = at_message_get(message, "numerics") != NULL;
    if (reply->declares)
        AT_TRY(at_message_text(message, "numerics", reply->numerics, sizeof reply->numerics));
    AT_TRY(parse_counters(message, reply));
    int64_t outputs;
    AT_TRY(at_message_optional_i64(message, "outputs", 1, &outputs));
    reply->timed_outputs = (int)outputs;
    return parse_timing(message, &reply->timing);
}
