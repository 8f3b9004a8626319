/* Files that appear whole or not at all: written beside their final path, fsynced, renamed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ATOMIC_FILE_H
#define AT_ATOMIC_FILE_H

#include <stdio.h>

#include "attest/status.h"

/* An output in the making. A path that exists and is no regular file (/dev/stdout, a pipe) is written in
 * place, because renaming over it would destroy it. */
struct at_atomic_file {
    char *path, *temp; /* temp is NULL when written in place */
    FILE *stream;
    char *buffer; /* of the stream */
};

at_status at_atomic_open(const char *path, struct at_atomic_file *file);
/* Whether a file can be made at `path`, before work goes into what it is to hold. */
at_status at_atomic_check(const char *path);
/* The same, and it would be a regular file: what has a journal beside it cannot be a device or a pipe. */
at_status at_atomic_check_regular(const char *path);
/* AT_USAGE when `path` is the very file `other`, which is read or written, too: one of them would be destroyed. */
at_status at_atomic_check_apart(const char *path, const char *other);
/* For commands, before any work: each of `written` can be made, and is neither another one nor among `others`. NULL
 * entries are skipped. */
at_status at_atomic_check_files(const char *const *written, int n_written, const char *const *others, int n_others);
/* Flushes, fsyncs and renames; AT_IO, and nothing at `path` has changed, when any write has failed. */
at_status at_atomic_commit(struct at_atomic_file *file);
/* Leaves `path` as it was. No effect after a commit, successful or not. */
void at_atomic_abandon(struct at_atomic_file *file);

/* What this process and its children have in the making from here on is known to both: before a fork. */
at_status at_atomic_watch(void);
/* Deletes what the child `pid`, which has ended, neither committed nor abandoned. */
void at_atomic_sweep(long pid);

#endif
