/* What a runner that nobody trusts is kept from: other processes' memory, files, networks, signals.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SANDBOX_H
#define AT_SANDBOX_H

#include "attest/status.h"

struct at_sandbox;

enum at_protection {
    AT_PROTECT_MEMORY, /* no process but its own is read or written (landlock, or no capability and attest not dumpable) */
    AT_PROTECT_FILES, /* nothing is written but in its scratch folder, to devices and to what /proc says of its own threads (landlock) */
    AT_PROTECT_NETWORK, /* no network (a network namespace of its own, else landlock for TCP) */
    AT_PROTECT_SIGNALS, /* no signals to processes but its own (landlock from 6 on) */
    AT_PROTECT_COUNT
};

/* Makes the scratch folder (in TMPDIR, else /tmp), asks what the system has, and keeps this process's memory from others
 * (PR_SET_DUMPABLE) until the sandbox is closed. AT_IO when there can be no folder; protections that are not to be had are
 * no failure: at_sandbox_has(). To be called before there are threads. */
at_status at_sandbox_open(struct at_sandbox **box);
/* Takes the scratch folder away with all that is in it; NULL is allowed. After its runners have ended. */
void at_sandbox_close(struct at_sandbox *box);

int at_sandbox_has(const struct at_sandbox *box, enum at_protection protection);
/* "memory", "files", "network", "signals". */
const char *at_protection_name(enum at_protection protection);
/* One line, the same in every run: what is had, what is not to be had on this system. */
const char *at_sandbox_text(const struct at_sandbox *box);

/* The environment of a child: this process's, with HOME, TMPDIR, XDG_CACHE_HOME and TRITON_CACHE_DIR in the scratch folder. */
char *const *at_sandbox_environment(const struct at_sandbox *box);
/* In the child, between fork and exec, after its descriptors up to `last_fd` are in place (all above are closed): async-signal-safe.
 * 0, or -1 when a protection that at_sandbox_has() could not be set up; then the child must not go on. */
int at_sandbox_enter(const struct at_sandbox *box, int last_fd);

#endif
