/* A sandbox of what Linux gives to a process without privileges: landlock, namespaces, limits; raw system calls, no library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* landlock(7). Its numbers are the same on every architecture; headers older than the running kernel lack some of them. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446, CLOSE_RANGE = 436 };
enum { LANDLOCK_VERSION = 1, LANDLOCK_PATH_BENEATH = 1, TCP_BIND_CONNECT = 3, SCOPE_SOCKETS_SIGNALS = 3 };
enum {
    FS_EXECUTE = 1,
    FS_WRITE_FILE = 2,
    FS_READ_FILE = 4,
    FS_READ_DIR = 8,
    FS_TRUNCATE = 1 << 14,
    FS_IOCTL_DEV = 1 << 15
};
/* Bits of access to files that a version knows: all below this one. */
static const int fs_bits[] = { 0, 13, 14, 15, 15, 16 };
struct ruleset {
    uint64_t fs, net, scoped;
};
struct __attribute__((packed)) beneath {
    uint64_t allowed;
    int32_t fd;
};

/* Descriptors of a child are below: putting them in place must not close what is still needed. */
enum { ABOVE_INHERITED = 16 };

enum { MAX_ENVIRONMENT = 4096, ID_BYTES = 64 };

enum network { NETWORK_SHARED, NETWORK_OWN, NETWORK_OWN_WITH_USER };

struct at_sandbox {
    char scratch[4096];
    int landlock;   /* version; 0: none */
    int rules;      /* descriptor; -1: none */
    uint64_t files; /* kinds of access to files that they are about */
    enum network network;
    int was_dumpable;
    char *environment[MAX_ENVIRONMENT + 8];
    char *own[8]; /* of them, those that are ours */
    int n_own;
    char uid_map[ID_BYTES], gid_map[ID_BYTES];
    char text[1024];
};

/* ---- what there is ---- */

static void allow(int rules, const char *path, uint64_t access) {
    const struct beneath rule = { .allowed = access, .fd = open(path, O_PATH | O_CLOEXEC) };
    if (rule.fd < 0)
        return;
    (void)syscall(LANDLOCK_ADD, rules, LANDLOCK_PATH_BENEATH, &rule, 0);
    close(rule.fd);
}

/* Devices that programs write to, those of GPUs among them; no folder of files in memory. */
static void allow_devices(int rules, uint64_t handled) {
    static const char *const names[] = { "null", "zero", "full", "random", "urandom", "nvidia", "kfd", "dri" };
    char path[512];
    DIR *dir = opendir("/dev");
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strncmp(entry->d_name, names[i], strlen(names[i])) == 0) {
                snprintf(path, sizeof path, "/dev/%.255s", entry->d_name);
                allow(rules, path, (FS_WRITE_FILE | FS_READ_FILE | FS_IOCTL_DEV) & handled);
            }
    closedir(dir);
}

static void find_landlock(struct at_sandbox *box) {
    const long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
    box->rules = -1;
    if (version < 1)
        return;
    const int known = (int)(sizeof fs_bits / sizeof *fs_bits) - 1;
    const uint64_t files = ((uint64_t)1 << fs_bits[version < known ? version : known]) - 1;
    const struct ruleset rules = { files, version >= 4 ? TCP_BIND_CONNECT : 0,
                                   version >= 6 ? SCOPE_SOCKETS_SIGNALS : 0 };
    const size_t size = version >= 6 ? sizeof rules : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    const int low = (int)syscall(LANDLOCK_CREATE, &rules, size, 0);
    if (low < 0)
        return;
    box->rules = fcntl(low, F_DUPFD_CLOEXEC, ABOVE_INHERITED);
    close(low);
    if (box->rules < 0)
        return;
    box->landlock = (int)version;
    box->files = files;
    allow(box->rules, "/", (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR) & files);
    allow(box->rules, box->scratch, files);
    allow_devices(box->rules, files);
}

/* A child tries, since what one has left a process cannot come back to. */
static void find_network(struct at_sandbox *box) {
    static const int flags[] = { [NETWORK_OWN] = CLONE_NEWNET, [NETWORK_OWN_WITH_USER] = CLONE_NEWNET | CLONE_NEWUSER };
    for (enum network n = NETWORK_OWN; n <= NETWORK_OWN_WITH_USER && !box->network; n++) {
        int code = 0;
        const pid_t child = fork();
        if (child == 0)
            _exit(unshare(flags[n]) != 0);
        if (child > 0 && waitpid(child, &code, 0) == child && WIFEXITED(code) && WEXITSTATUS(code) == 0)
            box->network = n;
    }
}

int at_sandbox_has(const struct at_sandbox *box, enum at_protection protection) {
    switch (protection) {
    case AT_PROTECT_MEMORY:
        return box->landlock >= 1 || geteuid() != 0;
    case AT_PROTECT_FILES:
        return box->landlock >= 1;
    case AT_PROTECT_NETWORK:
        return box->network != NETWORK_SHARED || box->landlock >= 4;
    default:
        return box->landlock >= 6;
    }
}

const char *at_protection_name(enum at_protection protection) {
    static const char *const names[AT_PROTECT_COUNT] = { "memory", "files", "network", "signals" };
    return names[protection];
}

static void describe(struct at_sandbox *box) {
    size_t at = 0;
    const size_t size = sizeof box->text;
    at += (size_t)snprintf(box->text, size, "no new privileges, no capabilities, limits, a scratch folder");
    if (box->landlock)
        at += (size_t)snprintf(box->text + at, size - at, ", writes nowhere else (landlock %d)", box->landlock);
    if (box->network)
        at += (size_t)snprintf(box->text + at, size - at, ", no network");
    for (int p = 0, n = 0; p < AT_PROTECT_COUNT; p++)
        if (!at_sandbox_has(box, (enum at_protection)p))
            at +=
                (size_t)snprintf(box->text + at, size - at, "%s %s", n++ ? "," : "; not to be had here: protection of",
                                 at_protection_name((enum at_protection)p));
    if (box->network == NETWORK_SHARED && at_sandbox_has(box, AT_PROTECT_NETWORK))
        snprintf(box->text + at, size - at, "; of networks TCP alone is closed");
}

const char *at_sandbox_text(const struct at_sandbox *box) { return box->text; }

/* ---- opening and closing ---- */

static int is_replaced(const char *entry) {
    static const char *const names[] = { "HOME=", "TMPDIR=", "XDG_CACHE_HOME=", "TRITON_CACHE_DIR=" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

static at_status make_environment(struct at_sandbox *box) {
    static const char *const own[] = { "HOME=%s", "TMPDIR=%s", "XDG_CACHE_HOME=%s", "TRITON_CACHE_DIR=%s" };
    int n = 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        char *entry = malloc(sizeof box->scratch + 32);
        if (!entry)
            return AT_FAIL(AT_NO_MEMORY, "no memory for an environment");
        snprintf(entry, sizeof box->scratch + 32, own[i], box->scratch);
        box->environment[n++] = box->own[box->n_own++] = entry;
    }
    for (char **e = environ; *e && n < MAX_ENVIRONMENT; e++)
        if (!is_replaced(*e))
            box->environment[n++] = *e;
    return AT_OK;
}

char *const *at_sandbox_environment(const struct at_sandbox *box) { return box->environment; }

at_status at_sandbox_open(struct at_sandbox **out) {
    const char *tmp = getenv("TMPDIR");
    at_status status = AT_OK;
    struct at_sandbox *box = *out = calloc(1, sizeof *box);
    if (!box)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a sandbox");
    box->rules = -1;
    box->was_dumpable = prctl(PR_GET_DUMPABLE) == 1;
    tmp = tmp && *tmp ? tmp : "/tmp";
    if (strlen(tmp) > sizeof box->scratch / 2) { /* cut off, it would be another folder */
        AT_FAIL_OUT(AT_IO, "cannot make a scratch folder: TMPDIR has %zu bytes, room is for %zu", strlen(tmp),
                    sizeof box->scratch / 2);
    }
    snprintf(box->scratch, sizeof box->scratch, "%s/attest-scratch-XXXXXX", tmp);
    if (!mkdtemp(box->scratch)) {
        const int error = errno;
        char path[sizeof box->scratch];
        memcpy(path, box->scratch, sizeof path);
        box->scratch[0] = 0;
        AT_FAIL_OUT(AT_IO, "cannot make a scratch folder %s: %s", path, strerror(error));
    }
    snprintf(box->uid_map, sizeof box->uid_map, "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
    snprintf(box->gid_map, sizeof box->gid_map, "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
    AT_TRY_OUT(make_environment(box));
    find_landlock(box);
    find_network(box);
    prctl(PR_SET_DUMPABLE, 0);
    describe(box);
out:
    if (status != AT_OK) {
        at_sandbox_close(box);
        *out = NULL;
    }
    return status;
}

/* A folder with all that is in it; links are removed, not followed. */
static void remove_folder(int parent, const char *name, int depth) {
    enum { DEEPEST = 64 }; /* each level holds a descriptor */
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(fd, entry->d_name, 0) != 0 && depth < DEEPEST)
            remove_folder(fd, entry->d_name, depth + 1);
    if (dir)
        closedir(dir);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void at_sandbox_close(struct at_sandbox *box) {
    if (!box)
        return;
    if (box->scratch[0])
        remove_folder(AT_FDCWD, box->scratch, 0);
    if (box->rules >= 0)
        close(box->rules);
    if (box->was_dumpable)
        prctl(PR_SET_DUMPABLE, 1);
    for (int i = 0; i < box->n_own; i++)
        free(box->own[i]);
    free(box);
}

/* ---- in the child ---- */

static int write_all(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const size_t n = strlen(text);
    const int good = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    return good ? 0 : -1;
}

/* The user keeps its number, or files would belong to nobody. */
static int leave_network(const struct at_sandbox *box) {
    if (box->network == NETWORK_OWN)
        return unshare(CLONE_NEWNET);
    if (box->network != NETWORK_OWN_WITH_USER)
        return 0;
    prctl(PR_SET_DUMPABLE, 1); /* its own maps are else root's to write */
    if (unshare(CLONE_NEWNET | CLONE_NEWUSER) != 0)
        return -1;
    (void)write_all("/proc/self/setgroups", "deny");
    if (write_all("/proc/self/uid_map", box->uid_map) != 0)
        return -1;
    (void)write_all("/proc/self/gid_map", box->gid_map);
    return 0;
}

static void limit(int what, rlim_t most) {
    struct rlimit now;
    if (getrlimit(what, &now) != 0)
        return;
    now.rlim_max = now.rlim_max < most ? now.rlim_max : most;
    now.rlim_cur = now.rlim_max;
    (void)setrlimit(what, &now);
}

/* Those that root would have again by exec are no longer in the bounding set. */
static void drop_capabilities(void) {
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
    for (int c = 0; c < 64; c++)
        (void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
    (void)syscall(SYS_capset, &header, none);
}

int at_sandbox_enter(const struct at_sandbox *box, int last_fd) {
    static const rlim_t file_bytes = (rlim_t)4 << 30;
    enum { FILES = 4096 };
    if (leave_network(box) != 0)
        return -1;
    drop_capabilities();
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, file_bytes);
    limit(RLIMIT_NOFILE, FILES);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    /* Names of its own threads, without which CUDA does not start: error 304. */
    if (box->rules >= 0)
        allow(box->rules, "/proc/self/task", (FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE) & box->files);
    if (box->rules >= 0 && syscall(LANDLOCK_RESTRICT, box->rules, 0) != 0)
        return -1;
    (void)syscall(CLOSE_RANGE, (unsigned)last_fd + 1, ~0u, 0);
    return 0;
}
