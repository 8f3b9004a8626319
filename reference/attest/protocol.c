/* The runner protocol's greeting: hello, variant and open, to lines and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const transport_names[AT_TRANSPORT_COUNT] = { "memfd", "inline" };

const char *at_transport_name(enum at_transport transport) { return transport_names[transport]; }

at_status at_transport_parse(const char *name, enum at_transport *transport) {
    for (int i = 0; i < AT_TRANSPORT_COUNT; i++)
        if (strcmp(name, transport_names[i]) == 0) {
            *transport = (enum at_transport)i;
            return AT_OK;
        }
    return AT_FAIL(AT_PROTOCOL, "transport \"%.40s\"; wanted memfd or inline", name);
}

at_status at_message_expect(const struct at_message *message, const char *verb) {
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
    if (hello->sequences)
        at_line_i64(line, "sequences", 1);
    if (hello->takes[0])
        at_line_text(line, "takes", hello->takes);
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
    AT_TRY(at_message_expect(message, "hello"));
    AT_TRY(at_message_i64(message, "protocol", 0, INT32_MAX, &hello->version));
    if (hello->version != AT_PROTOCOL_VERSION)
        return AT_FAIL(AT_PROTOCOL, "the runner speaks protocol %lld, this attest speaks %d", (long long)hello->version,
                       AT_PROTOCOL_VERSION);
    AT_TRY(at_message_text(message, "name", hello->name, sizeof hello->name));
    AT_TRY(at_message_text(message, "device", hello->device, sizeof hello->device));
    AT_TRY(parse_transports(message, hello));
    int64_t variants, sequences;
    AT_TRY(at_message_i64(message, "variants", 0, AT_MAX_VARIANTS, &variants));
    hello->variants = (int)variants;
    AT_TRY(at_message_optional_i64(message, "sequences", 1, &sequences));
    hello->sequences = (int)sequences;
    return at_message_get(message, "takes") ? at_message_text(message, "takes", hello->takes, sizeof hello->takes)
                                            : AT_OK;
}

void at_takes_all(char *takes, size_t size) {
    takes[0] = '\0';
    for (int o = 0; o < at_op_count(); o++)
        for (int i = 0; i < at_op_at(o)->n_own; i++)
            if (at_op_at(o)->own[i].announced)
                snprintf(takes + strlen(takes), size - strlen(takes), "%s%s.%s", takes[0] ? "," : "", at_op_at(o)->name,
                         at_op_at(o)->own[i].name);
}

static int has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n]))
            return 1;
    return 0;
}

const struct at_scalar *at_takes_lacks(const char *takes, const struct at_problem *problem) {
    for (int i = 0; i < problem->op->n_own; i++) {
        const struct at_scalar *field = &problem->op->own[i];
        const double value = at_scalar_get(problem, field);
        char word[160];
        snprintf(word, sizeof word, "%s.%s", problem->op->name, field->name);
        if (field->announced && (value < field->value || value > field->value) && !has_word(takes, word))
            return field;
    }
    return NULL;
}

/* The text fields of a variant line, in their order. */
#define VARIANT_TEXTS(X) X(family) X(name) X(path) X(sha256) X(summary) X(source) X(numerics)

at_status at_variant_format(int index, const struct at_variant_text *variant, struct at_line *line) {
    at_line_begin(line, "variant");
    at_line_i64(line, "index", index);
#define X(field) at_line_text(line, #field, variant->field);
    VARIANT_TEXTS(X)
#undef X
    if (variant->mutant_of[0])
        at_line_text(line, "mutant_of", variant->mutant_of);
    if (variant->untimed)
        at_line_i64(line, "timed", 0);
    if (variant->asked)
        at_line_i64(line, "asked", 1);
    return at_line_end(line);
}

at_status at_variant_parse(const struct at_message *message, int index, struct at_variant_text *variant) {
    *variant = (struct at_variant_text){ 0 };
    AT_TRY(at_message_expect(message, "variant"));
    int64_t found;
    AT_TRY(at_message_i64(message, "index", index, index, &found));
#define X(field) AT_TRY(at_message_text(message, #field, variant->field, sizeof variant->field));
    VARIANT_TEXTS(X)
#undef X
    if (!variant->family[0] || !variant->name[0])
        return AT_FAIL(AT_PROTOCOL, "variant %d has no family or no name", index);
    if (at_message_get(message, "timed")) {
        AT_TRY(at_message_i64(message, "timed", 0, 1, &found));
        variant->untimed = !found;
    }
    AT_TRY(at_message_optional_i64(message, "asked", 1, &found));
    variant->asked = (int)found;
    return at_message_get(message, "mutant_of")
               ? at_message_text(message, "mutant_of", variant->mutant_of, sizeof variant->mutant_of)
               : AT_OK;
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
    AT_TRY(at_message_expect(message, "open"));
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
