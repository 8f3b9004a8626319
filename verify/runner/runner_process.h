/* A runner's process: started with three pipes and the shared memory, watched, killed in time, reaped.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RUNNER_PROCESS_H
#define AT_RUNNER_PROCESS_H

#include "attest/protocol.h"
#include "verify/runner/sandbox.h"
#include "verify/runner/time_limit.h"

#include <sys/types.h>

enum { AT_LAST_WORDS_BYTES = 1024 };

/* A child in a process group of its own. pid 0: none is running. */
struct at_child {
    pid_t pid;
    int in, out, err; /* our ends of its standard streams; -1 when closed; all non-blocking */
    struct at_inbox inbox;
    char words[AT_LAST_WORDS_BYTES]; /* the end of what it wrote to standard error */
    size_t n_words;
    int at_line_start; /* of the copy of its standard error, when one is made */
    char name[64];     /* for messages */
};

/* argv[0] is a path, or without a sandbox a name found along PATH. Descriptor `memory` becomes AT_INHERITED_FD in the child.
 * `environment` (ends with NULL): the child's. `box`: what the child is kept in; NULL: nothing. */
at_status at_child_start(struct at_child *child, const char *name, const char *const argv[], int memory,
                         char *const *environment, const struct at_sandbox *box);

/* The three below end with AT_HUNG when the countdown, which the caller has started, runs out, with AT_CRASHED when the
 * child is gone, and read its standard error all the while. The child is left as it is; the caller ends it. */
at_status at_child_write(struct at_child *child, const void *data, size_t n, struct at_countdown *countdown);
/* *line is valid until the next call. */
at_status at_child_line(struct at_child *child, char **line, struct at_countdown *countdown);
at_status at_child_read(struct at_child *child, void *data, size_t n, struct at_countdown *countdown);

/* 1 when the child is gone or has sent bytes that nobody asked for. */
int at_child_is_disturbed(struct at_child *child);

/* Ends the child: waits `grace` seconds for it to go by itself, kills its whole process group, reaps it.
 * `fate` (may be NULL) gets "exit code 3" or "signal 11 (Segmentation fault)", and its last words. */
void at_child_end(struct at_child *child, double grace, char *fate, size_t size);

#endif
