/* Reading of HDF5 files that may be damaged: a process for it, with limits, whose death is an error and not attest's end.
 * SPDX-License-Identifier: Apache-2.0
 *
 * On a damaged file the library may write where it must not, or go round in circles, and nothing that can be checked
 * beforehand tells which file does that. So whatever reads a file that a user names does it in a child process: the whole
 * command (at_guard_split), a trial before the reading that counts (at_guard_probe), or a server (reader_hdf5.c). What
 * reads says where it begins and ends: there processor time and memory are limited by the size of the file, while the
 * rest of a command, which may well take hours, is not. AT_GUARD=off in the environment leaves the child out, for a
 * debugger. */
#ifndef AT_GUARD_H
#define AT_GUARD_H

#include "attest/status.h"

/* Goes on in a child process, which does not outlive its parent. *ended = 0: this is the child, or there is none; go on. *ended = 1: this is the parent, the child has ended and
 * *code is its exit code. A child that a signal of a fault or of a limit ended: AT_USAGE with the file that it was
 * reading, AT_BUG when it was reading none; other signals, Ctrl-C above all, end the parent, too. Files that it had
 * not written to the end are gone in any case (verify/result/atomic_file.h). AT_IO: no process could be had. To be called
 * before anything else runs in this process. */
at_status at_guard_split(int *ended, int *code);

/* Whether `read` comes to an end, found out in a child process, whose memory is lost: AT_USAGE when it dies or passes a
 * limit. What it returns is not looked at, as the caller calls it next and gets the same. Inside a child: AT_OK. */
at_status at_guard_probe(const char *path, at_status (*read)(void *context), void *context);

/* The library is at work on `path` from here on, to the end that belongs to it (they nest). Between them limits hold if
 * this process is a child. */
void at_guard_begin(const char *path);
void at_guard_end(void);

/* ---- for children with a protocol of their own ---- */

/* Makes this process, just forked, such a child: limits hold from here on, no core file, faults end it. */
void at_guard_enter(void);
/* Ends it without handlers of the parent's, which would run twice (HDF5's own flush of files the parent has open). */
_Noreturn void at_guard_leave(int code);
/* What the wait status of a child says of the file that it was reading, as an AT_USAGE; it did not leave with code 0. */
at_status at_guard_died(const char *path, int wait_status);

#endif
