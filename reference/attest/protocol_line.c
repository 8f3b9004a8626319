/* The runner protocol's lines: writing them, finding them in a stream, taking them apart.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char hex_digits[] = "0123456789ABCDEF";

/* ---- writing ---- */

static void put(struct at_line *line, char c) {
    if (line->n + 1 >= AT_LINE_BYTES) /* the last byte is kept for '\n' */
        line->full = 1;
    else
        line->text[line->n++] = c;
}

static void put_plain(struct at_line *line, const char *text) {
    for (; *text; text++)
        put(line, *text);
}

/* Printable ASCII without space, '%' and '=' stands for itself; every other byte is %XX. */
static int is_plain(unsigned char c) { return c > ' ' && c < 0x7f && c != '%' && c != '='; }

static void put_escaped(struct at_line *line, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (is_plain(c)) {
            put(line, (char)c);
        } else {
            put(line, '%');
            put(line, hex_digits[c >> 4]);
            put(line, hex_digits[c & 15]);
        }
    }
}

void at_line_begin(struct at_line *line, const char *verb) {
    line->n = 0;
    line->full = 0;
    put_plain(line, verb);
}

void at_line_text(struct at_line *line, const char *key, const char *value) {
    put(line, ' ');
    put_plain(line, key);
    put(line, '=');
    put_escaped(line, value);
}

void at_line_i64(struct at_line *line, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    at_line_text(line, key, text);
}

void at_line_f64(struct at_line *line, const char *key, double value) {
    char text[48];
    snprintf(text, sizeof text, "%a", value);
    at_line_text(line, key, text);
}

at_status at_line_end(struct at_line *line) {
    if (line->full)
        return AT_FAIL(AT_PROTOCOL, "a protocol line is longer than %d bytes: %.40s...", AT_LINE_BYTES, line->text);
    line->text[line->n++] = '\n';
    line->text[line->n] = '\0';
    return AT_OK;
}

/* ---- taking apart ---- */

static int hex_value(char c) {
    const char *at = c ? strchr(hex_digits, c) : NULL;
    return at ? (int)(at - hex_digits) : -1;
}

/* Unescapes in place. %00 is refused: values are C strings. */
static at_status unescape(char *text) {
    char *out = text;
    for (const char *in = text; *in; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int high = hex_value(in[1]), low = high < 0 ? -1 : hex_value(in[2]);
        if (low < 0 || high * 16 + low == 0)
            return AT_FAIL(AT_PROTOCOL, "\"%.8s\" is no escaped byte; wanted %% and two digits of 0-9A-F, not %%00",
                           in);
        *out++ = (char)(high * 16 + low);
        in += 2;
    }
    *out = '\0';
    return AT_OK;
}

/* One `key=value`: splits at the first '=', unescapes the value. */
static at_status parse_field(char *word, struct at_message *message) {
    char *equals = strchr(word, '=');
    if (!equals || equals == word)
        return AT_FAIL(AT_PROTOCOL, "\"%.60s\" in a %.20s line is no field; wanted key=value", word, message->verb);
    if (message->n == AT_LINE_FIELDS)
        return AT_FAIL(AT_PROTOCOL, "a %.20s line has more than %d fields", message->verb, AT_LINE_FIELDS);
    *equals = '\0';
    AT_TRY(unescape(equals + 1));
    message->field[message->n].key = word;
    message->field[message->n].value = equals + 1;
    message->n++;
    return AT_OK;
}

at_status at_message_parse(char *text, struct at_message *message) {
    message->verb = text;
    message->n = 0;
    char *space = strchr(text, ' ');
    if (text[0] == '\0' || space == text || strchr(text, '%') == text)
        return AT_FAIL(AT_PROTOCOL, "a line does not start with a verb: \"%.60s\"", text);
    while (space) {
        *space = '\0';
        char *word = space + 1;
        space = strchr(word, ' ');
        if (space)
            *space = '\0';
        AT_TRY(parse_field(word, message));
    }
    return AT_OK;
}

const char *at_message_get(const struct at_message *message, const char *key) {
    for (int i = 0; i < message->n; i++)
        if (strcmp(message->field[i].key, key) == 0)
            return message->field[i].value;
    return NULL;
}

static at_status need(const struct at_message *message, const char *key, const char **value) {
    *value = at_message_get(message, key);
    if (!*value)
        return AT_FAIL(AT_PROTOCOL, "a %.20s line has no field %s", message->verb, key);
    return AT_OK;
}

at_status at_message_text(const struct at_message *message, const char *key, char *out, size_t size) {
    const char *value;
    AT_TRY(need(message, key, &value));
    if (strlen(value) >= size)
        return AT_FAIL(AT_PROTOCOL, "%s=%.40s... is %zu bytes long; at most %zu fit", key, value, strlen(value),
                       size - 1);
    memcpy(out, value, strlen(value) + 1);
    return AT_OK;
}

at_status at_message_i64(const struct at_message *message, const char *key, int64_t min, int64_t max, int64_t *out) {
    const char *value;
    AT_TRY(need(message, key, &value));
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    int starts = (value[0] >= '0' && value[0] <= '9') || value[0] == '-';
    if (!starts || *end || errno || number < min || number > max)
        return AT_FAIL(AT_PROTOCOL, "%s=%.60s; wanted a whole number from %lld to %lld", key, value, (long long)min,
                       (long long)max);
    *out = number;
    return AT_OK;
}

at_status at_message_f64(const struct at_message *message, const char *key, double *out) {
    const char *value;
    AT_TRY(need(message, key, &value));
    char *end;
    double number = strtod(value, &end);
    if (!value[0] || value[0] == ' ' || *end)
        return AT_FAIL(AT_PROTOCOL, "%s=%.60s; wanted a number", key, value);
    *out = number;
    return AT_OK;
}

/* ---- the stream ---- */

char *at_inbox_room(struct at_inbox *inbox, size_t *room) {
    if (inbox->begin > 0) {
        memmove(inbox->data, inbox->data + inbox->begin, inbox->end - inbox->begin);
        inbox->end -= inbox->begin;
        inbox->begin = 0;
    }
    *room = sizeof inbox->data - inbox->end;
    return inbox->data + inbox->end;
}

void at_inbox_added(struct at_inbox *inbox, size_t n) { inbox->end += n; }

at_status at_inbox_line(struct at_inbox *inbox, char **line) {
    *line = NULL;
    char *text = inbox->data + inbox->begin;
    size_t n = inbox->end - inbox->begin;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n') {
            text[i] = '\0';
            inbox->begin += i + 1;
            *line = text;
            return AT_OK;
        }
        if (c < ' ' || c > '~')
            return AT_FAIL(AT_PROTOCOL, "byte 0x%02x in a protocol line after \"%.*s\"; wanted printable ASCII",
                           (unsigned)c, (int)(i < 60 ? i : 60), text);
    }
    if (n == AT_LINE_BYTES)
        return AT_FAIL(AT_PROTOCOL, "a protocol line is longer than %d bytes: \"%.60s...\"", AT_LINE_BYTES, text);
    return AT_OK;
}

size_t at_inbox_take(struct at_inbox *inbox, void *out, size_t n) {
    size_t waiting = inbox->end - inbox->begin;
    if (n > waiting)
        n = waiting;
    if (n > 0)
        memcpy(out, inbox->data + inbox->begin, n);
    inbox->begin += n;
    return n;
}

at_status at_message_optional_i64(const struct at_message *message, const char *key, int64_t most, int64_t *out) {
    *out = 0;
    return at_message_get(message, key) ? at_message_i64(message, key, 0, most, out) : AT_OK;
}
