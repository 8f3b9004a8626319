/* Starting, talking to and ending a runner's process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/runner_process.h"

#include "attest/env.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long helpers of an ended child may still hold its standard error, and reads of what one floods it with. */
static const double last_words_seconds = 0.2;
enum { LAST_READS = 1024 };

/* ---- starting ---- */

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A pipe whose ends are above the numbers the child gets, so that dup2 never overwrites one that is still
 * needed; close-on-exec, so that runners of other threads do not hold it open. */
static at_status make_pipe(int ends[2]) {
    int low[2];
    if (pipe2(low, O_CLOEXEC) != 0)
        return AT_FAIL(AT_IO, "cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, AT_INHERITED_FD + 1);
        close(low[i]);
    }
    if (ends[0] < 0 || ends[1] < 0) {
        close_fd(&ends[0]);
        close_fd(&ends[1]);
        return AT_FAIL(AT_IO, "cannot make a pipe: %s", strerror(EMFILE));
    }
    return AT_OK;
}

/* Own process group (so that its helpers die with it), no signal blocked or ignored. */
static int spawn(pid_t *pid, const char *const argv[], const int fd[AT_INHERITED_FD + 1], char *const *environment) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    for (int i = 0; i <= AT_INHERITED_FD; i++)
        posix_spawn_file_actions_adddup2(&actions, fd[i], i);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int error = posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* The same in a sandbox, for which the child has calls of its own to make before its program. argv[0] is a path. Only
 * async-signal-safe calls: other threads of this process may have held any lock. Returns errno. */
static int spawn_boxed(pid_t *pid, const char *const argv[], const int fd[AT_INHERITED_FD + 1],
                       char *const *environment, const struct at_sandbox *box) {
    static const char sorry[] = "the sandbox could not be set up\n";
    sigset_t none;
    sigemptyset(&none);
    *pid = fork();
    if (*pid != 0)
        return *pid < 0 ? errno : 0;
    setpgid(0, 0);
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i <= AT_INHERITED_FD; i++)
        if (dup2(fd[i], i) < 0)
            _exit(127);
    if (at_sandbox_enter(box, AT_INHERITED_FD) != 0) {
        (void)!write(2, sorry, sizeof sorry - 1);
        _exit(127);
    }
    execve(argv[0], (char *const *)argv, environment);
    _exit(127);
}

at_status at_child_start(struct at_child *child, const char *name, const char *const argv[], int memory,
                         char *const *environment, const struct at_sandbox *box) {
    at_status status = AT_OK;
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
    int shared = fcntl(memory, F_DUPFD_CLOEXEC, AT_INHERITED_FD + 1);
    *child = (struct at_child){ .in = -1, .out = -1, .err = -1, .at_line_start = 1 };
    snprintf(child->name, sizeof child->name, "%s", name);
    if (shared < 0)
        AT_FAIL_OUT(AT_IO, "cannot hand on the shared memory: %s", strerror(errno));
    AT_TRY_OUT(make_pipe(in));
    AT_TRY_OUT(make_pipe(out));
    AT_TRY_OUT(make_pipe(err));
    const int fd[AT_INHERITED_FD + 1] = { in[0], out[1], err[1], shared };
    int error = box ? spawn_boxed(&child->pid, argv, fd, environment, box) : spawn(&child->pid, argv, fd, environment);
    if (!error)
        setpgid(child->pid, child->pid); /* whichever of both comes first */
    if (error) {
        child->pid = 0;
        AT_FAIL_OUT(AT_ENVIRONMENT, "cannot start %s: %s", argv[0], strerror(error));
    }
    child->in = in[1];
    child->out = out[0];
    child->err = err[0];
    in[1] = out[0] = err[0] = -1;
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    fcntl(child->out, F_SETFL, O_NONBLOCK);
    fcntl(child->err, F_SETFL, O_NONBLOCK);
out:
    close_fd(&shared);
    for (int i = 0; i < 2; i++) {
        close_fd(&in[i]);
        close_fd(&out[i]);
        close_fd(&err[i]);
    }
    return status;
}

/* ---- standard error ---- */

/* AT_RUNNER_STDERR=1: what a runner says is shown as it comes, each line behind its name. */
static void show(struct at_child *child, const char *text, size_t n) {
    const char *wanted = getenv("AT_RUNNER_STDERR");
    if (!wanted || strcmp(wanted, "1") != 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (child->at_line_start)
            fprintf(stderr, "[%s] ", child->name);
        fputc(text[i], stderr);
        child->at_line_start = text[i] == '\n';
    }
}

/* Keeps the newest bytes. */
static void remember(struct at_child *child, const char *text, size_t n) {
    if (n > sizeof child->words) {
        text += n - sizeof child->words;
        n = sizeof child->words;
    }
    size_t keep = child->n_words;
    if (keep > sizeof child->words - n)
        keep = sizeof child->words - n;
    memmove(child->words, child->words + child->n_words - keep, keep);
    memcpy(child->words + keep, text, n);
    child->n_words = keep + n;
}

/* One read: a runner that floods its standard error must not keep us from looking at the clock. */
static void read_words(struct at_child *child) {
    char text[4096];
    ssize_t n = read(child->err, text, sizeof text);
    if (n > 0) {
        show(child, text, (size_t)n);
        remember(child, text, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_fd(&child->err);
    }
}

/* ---- talking ---- */

/* Waits until fd is ready for `events`, reading standard error meanwhile. */
static at_status wait_for(struct at_child *child, int fd, short events, struct at_countdown *countdown) {
    for (;;) {
        double wait;
        AT_TRY(at_countdown_look(countdown, child->pid, child->name, &wait));
        struct pollfd polls[2] = { { .fd = fd, .events = events }, { .fd = child->err, .events = POLLIN } };
        int ready = poll(polls, 2, wait < 3600 ? (int)(wait * 1000) + 1 : 3600000);
        if (ready < 0 && errno != EINTR)
            return AT_FAIL(AT_IO, "poll: %s", strerror(errno));
        if (ready > 0 && polls[1].revents)
            read_words(child);
        if (ready > 0 && polls[0].revents)
            return AT_OK;
    }
}

/* write() with SIGPIPE kept away from this thread: blocked, and taken back if this write raised it. */
static ssize_t write_quietly(int fd, const void *data, size_t n) {
    sigset_t pipe_only, before, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t done = write(fd, data, n);
    int error = errno;
    if (done < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE)) {
        const struct timespec now = { 0, 0 };
        while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}

at_status at_child_write(struct at_child *child, const void *data, size_t n, struct at_countdown *countdown) {
    const char *from = (const char *)data;
    while (n > 0) {
        AT_TRY(wait_for(child, child->in, POLLOUT, countdown));
        ssize_t done = write_quietly(child->in, from, n);
        if (done < 0 && errno != EAGAIN && errno != EINTR)
            return AT_FAIL(AT_CRASHED, "runner %s does not read any more: %s", child->name, strerror(errno));
        if (done > 0) {
            from += done;
            n -= (size_t)done;
        }
    }
    return AT_OK;
}

/* Reads what is there, at least one byte. */
static at_status read_some(struct at_child *child, void *data, size_t n, struct at_countdown *countdown, size_t *got) {
    *got = 0;
    while (*got == 0) {
        AT_TRY(wait_for(child, child->out, POLLIN, countdown));
        ssize_t done = read(child->out, data, n);
        if (done == 0)
            return AT_FAIL(AT_CRASHED, "runner %s closed its output", child->name);
        if (done < 0 && errno != EAGAIN && errno != EINTR)
            return AT_FAIL(AT_IO, "cannot read from runner %s: %s", child->name, strerror(errno));
        if (done > 0)
            *got = (size_t)done;
    }
    return AT_OK;
}

at_status at_child_line(struct at_child *child, char **line, struct at_countdown *countdown) {
    for (;;) {
        AT_TRY(at_inbox_line(&child->inbox, line));
        if (*line)
            return AT_OK;
        size_t room, got = 0;
        char *into = at_inbox_room(&child->inbox, &room);
        AT_TRY(read_some(child, into, room, countdown, &got));
        at_inbox_added(&child->inbox, got);
    }
}

at_status at_child_read(struct at_child *child, void *data, size_t n, struct at_countdown *countdown) {
    char *into = (char *)data;
    size_t have = at_inbox_take(&child->inbox, into, n);
    while (have < n) {
        size_t got = 0;
        AT_TRY(read_some(child, into + have, n - have, countdown, &got));
        have += got;
    }
    return AT_OK;
}

int at_child_is_disturbed(struct at_child *child) {
    if (child->pid == 0 || child->inbox.end > child->inbox.begin)
        return 1;
    struct pollfd poll_out = { .fd = child->out, .events = POLLIN };
    return poll(&poll_out, 1, 0) != 0;
}

/* ---- ending ---- */

static void nap(void) {
    const struct timespec ms2 = { 0, 2000000 };
    nanosleep(&ms2, NULL);
}

/* 1 when the child has ended; it is not reaped yet, so its number still names its group and nobody else's. */
static int has_ended(const struct at_child *child) {
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child->pid;
}

static void read_last_words(struct at_child *child) {
    const double until = at_seconds() + last_words_seconds;
    struct pollfd poll_err = { .fd = child->err, .events = POLLIN };
    for (int i = 0; child->err >= 0 && i < LAST_READS; i++) {
        if (poll(&poll_err, 1, 20) > 0)
            read_words(child); /* what the child left is read to its end, however late it is */
        else if (!(at_seconds() < until))
            break;
    }
}

/* The end of the last words on one line. */
static void append_words(const struct at_child *child, char *fate, size_t size) {
    enum { SHOWN = 400 };
    size_t n = child->n_words, used = strlen(fate);
    while (n > 0 && child->words[n - 1] == '\n')
        n--;
    if (n == 0)
        return;
    size_t from = n > SHOWN ? n - SHOWN : 0;
    snprintf(fate + used, size - used, "; its last words: %.*s", (int)(n - from), child->words + from);
    for (char *c = fate + used; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = *c == '\n' ? '|' : ' ';
}

static void describe(int wait_status, int had_to_kill, const struct at_child *child, char *fate, size_t size) {
    if (had_to_kill)
        snprintf(fate, size, "a closed pipe but no exit (it was killed)");
    else if (WIFSIGNALED(wait_status))
        snprintf(fate, size, "signal %d (%s)", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    else
        snprintf(fate, size, "exit code %d", WEXITSTATUS(wait_status));
    append_words(child, fate, size);
}

void at_child_end(struct at_child *child, double grace, char *fate, size_t size) {
    if (fate)
        fate[0] = '\0';
    if (child->pid == 0)
        return;
    close_fd(&child->in); /* the end of input is a request to go */
    double until = at_seconds() + grace;
    while (!has_ended(child) && at_seconds() < until) {
        if (child->err >= 0) {
            struct pollfd poll_err = { .fd = child->err, .events = POLLIN };
            if (poll(&poll_err, 1, 2) > 0)
                read_words(child);
        } else {
            nap();
        }
    }
    int had_to_kill = !has_ended(child);
    kill(-child->pid, SIGKILL);
    int wait_status = 0;
    while (waitpid(child->pid, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    read_last_words(child);
    if (fate)
        describe(wait_status, had_to_kill, child, fate, size);
    close_fd(&child->out);
    close_fd(&child->err);
    child->pid = 0;
}
