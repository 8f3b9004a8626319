/* The thread's error trail: one message and the frames it passed through.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[AT_ERROR_MESSAGE_BYTES];
static _Thread_local char trail[AT_ERROR_TRAIL_BYTES];

static const struct {
    const char *name;
    int exit_code;
    const char *meaning;
} table[AT_STATUS_COUNT] = {
#define X(name, exit_code, meaning) { #name, exit_code, meaning },
    AT_STATUS_LIST(X)
#undef X
};

static int known(at_status status) { return (int)status >= 0 && status < AT_STATUS_COUNT; }

const char *at_status_name(at_status status) { return known(status) ? table[status].name : "UNKNOWN"; }

const char *at_status_meaning(at_status status) {
    return known(status) ? table[status].meaning : "not a status of attest";
}

int at_status_exit_code(at_status status) { return known(status) ? table[status].exit_code : table[AT_BUG].exit_code; }

static void append_frame(const char *file, int line, const char *function, const char *note) {
    size_t used = strlen(trail);
    snprintf(trail + used, sizeof trail - used, "%s  at %s:%d (%s)%s%s", used ? "\n" : "", file, line, function,
             note[0] ? ": " : "", note);
}

at_status at_fail_at(at_status status, const char *file, int line, const char *function, const char *format, ...) {
    /* Not straight into `message`: it may be one of the arguments, when a caller words it anew. */
    char text[sizeof message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(message, sizeof message, "%s", text);
    snprintf(trail, sizeof trail, "%s", message);
    append_frame(file, line, function, "");
    return status;
}

at_status at_frame_at(at_status status, const char *file, int line, const char *function, const char *format, ...) {
    char note[256] = "";
    if (format) {
        va_list args;
        va_start(args, format);
        vsnprintf(note, sizeof note, format, args);
        va_end(args);
    }
    append_frame(file, line, function, note);
    return status;
}

const char *at_error_message(void) { return message; }

const char *at_error_trail(void) { return trail; }

void at_error_clear(void) {
    message[0] = 0;
    trail[0] = 0;
}

void at_error_save(struct at_error_copy *error) {
    memcpy(error->message, message, sizeof message);
    memcpy(error->trail, trail, sizeof trail);
}

void at_error_restore(const struct at_error_copy *error) {
    memcpy(message, error->message, sizeof message);
    memcpy(trail, error->trail, sizeof trail);
}
