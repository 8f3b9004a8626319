/* A process for reading files that may be damaged, and its limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/guard.h"

#include <errno.h>
#include <hdf5.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verify/result/atomic_file.h"

/* One reading: seconds of processor time, one of them for each SECOND_BYTES of the file, and memory beyond what the process
 * has, MEMORY_TIMES what the file has. Archives are deflated, results and counts up to 100 times. A whole second is the
 * kernel's step: what is left of the one that runs comes off. */
enum { SECONDS = 3, SECOND_BYTES = 1 << 20, MEMORY_TIMES = 256 };
static const uint64_t memory_bytes = (uint64_t)2 << 30;

/* Where the child is, in memory that its parent sees. */
struct place {
    char path[4096]; /* read last */
    int depth;       /* of at_guard_begin() */
};
static struct place own, *place; /* NULL: this process is no child */

/* ---- the child ---- */

static struct rlimit processor_before, memory_before;

static uint64_t memory_now(void) {
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (!statm)
        return 0;
    if (fscanf(statm, "%llu", &pages) != 1)
        pages = 0;
    fclose(statm);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The soft limit, which is put back; never above one that the user has set. */
static void lower(int resource, const struct rlimit *before, uint64_t to) {
    struct rlimit limit = *before;
    if (before->rlim_cur == RLIM_INFINITY || to < before->rlim_cur)
        limit.rlim_cur = (rlim_t)to;
    setrlimit(resource, &limit);
}

void at_guard_begin(const char *path) {
    if (!place || place->depth++ > 0)
        return;
    struct stat info;
    struct rusage used;
    const uint64_t bytes = stat(path, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
    snprintf(place->path, sizeof place->path, "%s", path);
    getrusage(RUSAGE_SELF, &used);
    getrlimit(RLIMIT_CPU, &processor_before);
    getrlimit(RLIMIT_AS, &memory_before);
    const int64_t us = used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    const int64_t so_far = used.ru_utime.tv_sec + used.ru_stime.tv_sec + us / 1000000;
    const uint64_t memory = memory_now();
    lower(RLIMIT_CPU, &processor_before, (uint64_t)so_far + SECONDS + bytes / SECOND_BYTES);
    if (memory > 0)
        lower(RLIMIT_AS, &memory_before, memory + memory_bytes + bytes * MEMORY_TIMES);
}

void at_guard_end(void) {
    if (!place || --place->depth > 0)
        return;
    setrlimit(RLIMIT_CPU, &processor_before);
    setrlimit(RLIMIT_AS, &memory_before);
}

/* Without a core file for each damaged one. */
static void become_child(struct place *at) {
    const struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    place = at;
    place->depth = 0;
}

void at_guard_enter(void) {
    static const int faults[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGXCPU };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        signal(faults[i], SIG_DFL);
    become_child(&own);
}

/* Written by gcc's coverage runtime where a build has it: _exit would lose the child's counts. */
extern void __gcov_dump(void) __attribute__((weak));

void at_guard_leave(int code) {
    if (__gcov_dump)
        __gcov_dump();
    _exit(code);
}

/* ---- the parent ---- */

/* A signal that a process brings upon itself, or that a limit sends. */
static int is_fault(int signal_number) {
    static const int faults[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXCPU };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i] == signal_number)
            return 1;
    return 0;
}

#define WHAT_TO_DO "the file is damaged; copy it anew from where it is whole, or make it again"

at_status at_guard_died(const char *path, int wait_status) {
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGXCPU)
        return AT_FAIL(AT_USAGE,
                       "%s: the HDF5 library does not come to an end with it within its processor time: " WHAT_TO_DO,
                       path);
    if (WIFSIGNALED(wait_status))
        return AT_FAIL(AT_USAGE, "%s: the HDF5 library died reading it (%s): " WHAT_TO_DO, path,
                       strsignal(WTERMSIG(wait_status)));
    return AT_FAIL(AT_USAGE, "%s: the process that read it left with code %d: the file is damaged", path,
                   WEXITSTATUS(wait_status));
}

/* The child's side of a memory that both see; AT_IO when there is none. */
static at_status share_place(struct place **seen) {
    void *memory = mmap(NULL, sizeof **seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return AT_FAIL(AT_IO, "no memory to share with the process that reads: %s", strerror(errno));
    *seen = memory;
    return AT_OK;
}

static int is_off(void) {
    const char *text = getenv("AT_GUARD");
    return text && strcmp(text, "off") == 0;
}

static int wait_for(pid_t child) {
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR)
        ;
    return wait_status;
}

static volatile sig_atomic_t forward_to; /* a process */

static void forward(int signal_number) {
    const int before = errno;
    kill((pid_t)forward_to, signal_number);
    errno = before;
}

/* What somebody sends to the command is for the child; what nohup has it ignore, both ignore. */
static int wait_and_forward(pid_t child, const sigset_t *mask) {
    static const int sent[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction action = { .sa_handler = forward }, before;
    forward_to = child;
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
        if (sigaction(sent[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(sent[i], &action, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    return wait_for(child);
}

/* As the child died, so that a shell sees what it would have seen of one process. */
static void die_of(int signal_number) {
    sigset_t one;
    signal(signal_number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(signal_number);
}

static at_status judge(const struct place *seen, int wait_status, int *code) {
    char path[sizeof seen->path];
    snprintf(path, sizeof path, "%.*s", (int)sizeof path - 1, seen->path);
    if (WIFEXITED(wait_status)) {
        *code = WEXITSTATUS(wait_status);
        return AT_OK;
    }
    const int signal_number = WTERMSIG(wait_status);
    if (is_fault(signal_number) && seen->depth > 0)
        return at_guard_died(path, wait_status);
    if (is_fault(signal_number))
        return AT_FAIL(AT_BUG, "attest died (%s)%s%s: AT_GUARD=off lets a debugger see where", strsignal(signal_number),
                       *path ? " after reading " : "", path);
    if (signal_number == SIGKILL)
        return AT_FAIL(AT_IO, "%s%sthe process that reads was killed (SIGKILL): was there no memory left?", path,
                       *path ? ": " : "");
    die_of(signal_number);
    return AT_FAIL(AT_IO, "the process that reads was ended by signal %d", signal_number);
}

at_status at_guard_split(int *ended, int *code) {
    struct place *seen;
    sigset_t all, mask;
    *ended = *code = 0;
    if (is_off())
        return AT_OK;
    AT_TRY(share_place(&seen));
    AT_TRY(at_atomic_watch());
    fflush(NULL); /* or the child writes it, too */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask); /* until the parent forwards and the child is one */
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        H5dont_atexit();    /* what a damaged file has left in the library is not worth a last look */
        become_child(seen); /* with a sanitizer's handlers, which report */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        return AT_OK;
    }
    const int failed = errno;
    *ended = 1;
    if (child < 0) {
        sigprocmask(SIG_SETMASK, &mask, NULL);
        munmap(seen, sizeof *seen);
        return AT_FAIL(AT_IO, "no process to read in: %s", strerror(failed));
    }
    const int wait_status = wait_and_forward(child, &mask);
    at_atomic_sweep((long)child);
    const at_status status = judge(seen, wait_status, code);
    munmap(seen, sizeof *seen);
    return status;
}

at_status at_guard_probe(const char *path, at_status (*read)(void *context), void *context) {
    if (place || is_off())
        return AT_OK;
    const pid_t child = fork();
    if (child < 0)
        return AT_FAIL(AT_IO, "%s: no process to read it: %s", path, strerror(errno));
    if (child == 0) {
        at_guard_enter();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)read(context);
        at_guard_leave(0);
    }
    const int wait_status = wait_for(child);
    if (WIFSIGNALED(wait_status) && !is_fault(WTERMSIG(wait_status)))
        return AT_FAIL(AT_IO, "%s: reading it was interrupted (%s)", path, strsignal(WTERMSIG(wait_status)));
    return wait_status == 0 ? AT_OK : at_guard_died(path, wait_status);
}
