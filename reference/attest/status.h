/* Statuses and the error trail: what was wanted, what was found, and every frame it passed through.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A fallible function returns at_status. On failure it has written at least one line to the calling
 * thread's trail; callers add a frame with AT_TRY and pass the status on. The trail is thread-local,
 * bounded, and survives until at_error_clear() or the next AT_FAIL.
 *
 * A kernel that computes the wrong thing is a result, never a status. */
#ifndef AT_STATUS_H
#define AT_STATUS_H

#include <stddef.h>

/* name, process exit code when it ends the program, meaning */
/* clang-format off */
#define AT_STATUS_LIST(X)                                                          \
    X(OK,           0, "ok")                                                       \
    X(USAGE,        2, "bad input: an argument, a case line, a file's content")    \
    X(NOT_FOUND,    2, "a named thing does not exist")                             \
    X(UNSUPPORTED,  2, "valid, but not something this program does")               \
    X(IO,           3, "the operating system refused a read, write or open")       \
    X(NO_MEMORY,    3, "memory could not be had")                                  \
    X(ENVIRONMENT,  3, "the machine lacks what was asked for")                     \
    X(PROTOCOL,     3, "the other side of a runner's pipe broke the protocol")     \
    X(CRASHED,      3, "a runner died")                                            \
    X(HUNG,         3, "a runner passed its time limit")                           \
    X(BUG,         70, "attest contradicts itself")
/* clang-format on */

typedef enum at_status {
#define X(name, exit_code, meaning) AT_##name,
    AT_STATUS_LIST(X)
#undef X
        AT_STATUS_COUNT
} at_status;

/* "USAGE", "IO", ...; never NULL. */
const char *at_status_name(at_status status);
/* One-line meaning; never NULL. */
const char *at_status_meaning(at_status status);
/* The exit code a program ends with when this status reaches main. */
int at_status_exit_code(at_status status);

/* Starts a new trail with one formatted line; returns `status`. Use through AT_FAIL. */
at_status at_fail_at(at_status status, const char *file, int line, const char *function, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Adds a frame (with an optional formatted note, NULL for none) to the trail; returns `status`. */
at_status at_frame_at(at_status status, const char *file, int line, const char *function, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The first line of the trail: the message a user should read. "" when there is none. */
const char *at_error_message(void);
/* Message and frames, one per line, newest last; valid until the trail changes. "" when none. */
const char *at_error_trail(void);
void at_error_clear(void);

/* A thread's message and trail, to hand them to another thread. */
enum { AT_ERROR_MESSAGE_BYTES = 1024, AT_ERROR_TRAIL_BYTES = 4096 };
struct at_error_copy {
    char message[AT_ERROR_MESSAGE_BYTES], trail[AT_ERROR_TRAIL_BYTES];
};
/* Copies the calling thread's message and trail / makes these the calling thread's. */
void at_error_save(struct at_error_copy *error);
void at_error_restore(const struct at_error_copy *error);

/* The first of two equal statuses. Inline, so that analyzers see that AT_FAIL never gives AT_OK. */
static inline at_status at_status_of(at_status status, at_status reported) {
    (void)reported;
    return status;
}

#define AT_FAIL(status, ...) at_status_of((status), at_fail_at((status), __FILE__, __LINE__, __func__, __VA_ARGS__))

/* Returns the status of `call` to the caller, adding a frame, unless it is AT_OK. */
#define AT_TRY(call) \
    do { \
        at_status at_try_ = (call); \
        if (at_try_ != AT_OK) { \
            at_frame_at(at_try_, __FILE__, __LINE__, __func__, NULL); \
            return at_try_; \
        } \
    } while (0)

/* The same for functions that own something: needs `at_status status` and a label `out:`. */
#define AT_TRY_OUT(call) \
    do { \
        status = (call); \
        if (status != AT_OK) { \
            at_frame_at(status, __FILE__, __LINE__, __func__, NULL); \
            goto out; \
        } \
    } while (0)

/* Fails into `out:` with a new trail. */
#define AT_FAIL_OUT(code, ...) \
    do { \
        status = AT_FAIL((code), __VA_ARGS__); \
        goto out; \
    } while (0)

#endif
