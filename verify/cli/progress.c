/* The progress bar.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attest/env.h"

static const double QUIET_SECONDS = 2, TERMINAL_INTERVAL = 0.1, LOG_INTERVAL = 10;

void at_progress_start(struct at_progress *p, const char *what, int64_t total) {
    memset(p, 0, sizeof *p);
    p->what = what;
    p->total = total;
    p->started = p->shown = at_seconds();
}

void at_progress_step(struct at_progress *p, int64_t done, int64_t failed, const char *current) {
    enum { WIDTH = 30 };
    double now = at_seconds();
    int terminal = isatty(STDERR_FILENO);
    p->done += done;
    p->failed += failed;
    if (now - p->started < QUIET_SECONDS || now - p->shown < (terminal ? TERMINAL_INTERVAL : LOG_INTERVAL))
        return;
    p->shown = now;
    double share = p->total > 0 ? (double)p->done / (double)p->total : 1;
    if (!terminal) {
        fprintf(stderr, "%s: %lld of %lld, %lld failed, %.0f s\n", p->what, (long long)p->done, (long long)p->total,
                (long long)p->failed, now - p->started);
        return;
    }
    char bar[WIDTH + 1];
    int filled = (int)(share * WIDTH);
    memset(bar, '#', WIDTH);
    memset(bar + filled, '.', (size_t)(WIDTH - filled));
    bar[WIDTH] = 0;
    fprintf(stderr, "\r\x1b[K%s [%s] %lld/%lld, %lld failed  %.40s", p->what, bar, (long long)p->done,
            (long long)p->total, (long long)p->failed, current);
    fflush(stderr);
    p->visible = 1;
}

void at_progress_end(struct at_progress *p) {
    if (p->visible)
        fprintf(stderr, "\r\x1b[K");
    p->visible = 0;
}
