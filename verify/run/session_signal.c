/* The signal that asks a session to end.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>

#include "verify/run/session.h"

static volatile sig_atomic_t interrupted;

/* The first asks for an end after the running jobs; the second ends the process, as if nobody had asked. */
static void on_signal(int number) {
    if (interrupted) {
        signal(number, SIG_DFL);
        raise(number);
    }
    interrupted = number;
}

int at_session_signal(void) { return interrupted; }

void at_session_watch_signals(void) {
    struct sigaction action = { .sa_handler = on_signal };
    interrupted = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
