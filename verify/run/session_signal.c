/* The signal that asks a session to end.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "verify/run/session.h"

static volatile sig_atomic_t interrupted;
static struct timespec first; /* when it came */

/* timeout(1) signals its child and then the group that the child is in: two signals that are one. */
static int is_the_same(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - first.tv_sec) * 1000000000L + (now.tv_nsec - first.tv_nsec) < 1000000000L;
}

/* The first asks for an end after the running jobs; another, a second later or more, ends the process, as if nobody
 * had asked. */
static void on_signal(int number) {
    if (!interrupted) {
        clock_gettime(CLOCK_MONOTONIC, &first);
        interrupted = number;
    } else if (!is_the_same()) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

int at_session_signal(void) { return interrupted; }

void at_session_watch_signals(void) {
    struct sigaction action = { .sa_handler = on_signal };
    interrupted = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
