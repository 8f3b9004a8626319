/* Two clocks over a runner.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/time_limit.h"

#include "attest/env.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double WALL_FACTOR = 10, FIRST_LOOK = 0.1; /* shares of the processor limit */
static const double MIN_WAIT = 0.02, MAX_WAIT = 1;      /* seconds between looks at the processor time */

struct at_time_limit at_time_limit(double seconds) {
    return (struct at_time_limit){ seconds, WALL_FACTOR * seconds };
}

void at_countdown_start(struct at_countdown *countdown, struct at_time_limit limit) {
    *countdown = (struct at_countdown){ .limit = limit, .start = at_seconds(), .before = -1 };
    countdown->look_at = countdown->start + fmin(FIRST_LOOK * limit.processor, limit.wall);
}

/* Clock ticks in /proc/PID/stat when the process is of the group; 0 otherwise. proc_pid_stat(5): behind the name, in
 * parentheses, which may hold any character, come state, ppid, pgrp, and as fields 14 to 17 utime stime cutime cstime.
 */
static unsigned long long ticks_of(const char *pid, pid_t group) {
    char path[64], text[1024];
    if (snprintf(path, sizeof path, "/proc/%s/stat", pid) >= (int)sizeof path)
        return 0;
    FILE *file = fopen(path, "re");
    if (!file) /* it has ended meanwhile */
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *behind = strrchr(text, ')');
    int of = 0;
    unsigned long long user, kernel, children_user, children_kernel;
    if (!behind ||
        sscanf(behind + 1, " %*c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &of, &user, &kernel,
               &children_user, &children_kernel) != 5 ||
        of != group)
        return 0;
    return user + kernel + children_user + children_kernel;
}

double at_group_processor_seconds(pid_t group) {
    unsigned long long ticks = 0;
    DIR *dir = opendir("/proc");
    if (!dir)
        return 0;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (isdigit((unsigned char)entry->d_name[0]))
            ticks += ticks_of(entry->d_name, group);
    closedir(dir);
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

at_status at_countdown_look(struct at_countdown *countdown, pid_t group, const char *name, double *wait) {
    const struct at_time_limit limit = countdown->limit;
    const double now = at_seconds(), passed = now - countdown->start;
    if (!(passed < limit.wall))
        return AT_FAIL(AT_HUNG, "runner %s gave no answer for %g s by the clock", name, limit.wall);
    *wait = fmin(countdown->look_at, countdown->start + limit.wall) - now;
    if (*wait > 0)
        return AT_OK;
    const double until_now = at_group_processor_seconds(group);
    double next = limit.processor - passed;
    if (countdown->before < 0)
        countdown->before = until_now;
    if (!(next > 0)) {
        const double left = limit.processor - (until_now - countdown->before);
        if (!(left > 0))
            return AT_FAIL(AT_HUNG, "runner %s used up its %g s of processor time", name, limit.processor);
        next = fmin(fmax(left / at_threads(), MIN_WAIT), MAX_WAIT);
    }
    *wait = fmin(next, limit.wall - passed);
    countdown->look_at = now + *wait;
    return AT_OK;
}
