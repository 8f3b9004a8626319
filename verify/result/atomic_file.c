/* Files that appear whole or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/result/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verify/result/record.h"

/* Names of files in the making, in memory that a child shares with its parent. Of one more than fit, nothing is known. */
enum { MAX_WATCHED = 8, NAME_BYTES = 4096, BUFFER_BYTES = 1 << 18 };
static char (*watched)[NAME_BYTES];

static void watch(const char *temp) {
    for (int i = 0; watched && i < MAX_WATCHED; i++)
        if (!watched[i][0]) {
            snprintf(watched[i], NAME_BYTES, "%s", temp);
            return;
        }
}

static void unwatch(const char *temp) {
    for (int i = 0; watched && i < MAX_WATCHED; i++)
        if (strcmp(watched[i], temp) == 0)
            watched[i][0] = 0;
}

at_status at_atomic_watch(void) {
    void *memory =
        mmap(NULL, sizeof watched[0] * MAX_WATCHED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the names of files in the making: %s", strerror(errno));
    watched = memory;
    return AT_OK;
}

/* A process that dies of a fault may have written anywhere: a name that is not of its making is left alone. */
void at_atomic_sweep(long pid) {
    char suffix[32];
    const int end = snprintf(suffix, sizeof suffix, ".%ld.tmp", pid);
    for (int i = 0; watched && i < MAX_WATCHED; i++) {
        watched[i][NAME_BYTES - 1] = 0;
        const size_t n = strlen(watched[i]);
        if (n > (size_t)end && strcmp(watched[i] + n - (size_t)end, suffix) == 0)
            unlink(watched[i]);
    }
    if (watched)
        munmap(watched, sizeof watched[0] * MAX_WATCHED);
    watched = NULL;
}

static void forget(struct at_atomic_file *file) {
    if (file->temp)
        unwatch(file->temp);
    free(file->path);
    free(file->temp);
    free(file->buffer);
    *file = (struct at_atomic_file){ 0 };
}

/* The rename must not replace a link by a file, nor a device by anything. */
static at_status choose_names(const char *path, struct at_atomic_file *file) {
    struct stat info;
    int exists = stat(path, &info) == 0;
    if (!*path)
        return AT_FAIL(AT_USAGE, "found an empty name, wanted that of a file to write");
    file->path = exists ? realpath(path, NULL) : strdup(path);
    if (!file->path)
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    if (exists && S_ISDIR(info.st_mode))
        return AT_FAIL(AT_USAGE, "%s is a folder, wanted the name of a file to write", path);
    if (exists && !S_ISREG(info.st_mode))
        return AT_OK;
    size_t size = strlen(file->path) + 32;
    file->temp = malloc(size);
    if (!file->temp)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its name", path);
    snprintf(file->temp, size, "%s.%ld.tmp", file->path, (long)getpid());
    return AT_OK;
}

/* With the C library's buffer of 4 KB, writing a table of gigabytes is a third system calls. Without memory for a larger one
 * it stays. */
static void widen(struct at_atomic_file *file) {
    if ((file->buffer = malloc(BUFFER_BYTES)))
        setvbuf(file->stream, file->buffer, _IOFBF, BUFFER_BYTES);
}

at_status at_atomic_open(const char *path, struct at_atomic_file *file) {
    *file = (struct at_atomic_file){ 0 };
    at_status status = choose_names(path, file);
    if (status == AT_OK) {
        file->stream =
            fopen(file->temp ? file->temp : file->path, file->temp ? "w+e" : "we"); /* HDF5 reads what it wrote */
        if (file->stream && file->temp) {
            watch(file->temp);
            widen(file);
        }
        if (!file->stream)
            status = AT_FAIL(AT_IO, "cannot write %s: %s", path, strerror(errno));
    }
    if (status != AT_OK)
        forget(file);
    return status;
}

/* A new name is durable when its folder is. A file system that cannot sync a folder is not an error. */
static void sync_folder(const char *path) {
    char *folder = strdup(path);
    if (!folder)
        return;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder ? 1 : 0] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

/* Why an earlier write failed. A stream remembers only that one did; the file is given up anyway, so one more write may
 * say it. A device or a pipe is not asked: what it is sent has arrived. */
static int reason_of(const struct at_atomic_file *file) {
    static const char more[65536];
    clearerr(file->stream);
    errno = 0;
    return file->temp && write(fileno(file->stream), more, sizeof more) < (ssize_t)sizeof more && errno ? errno : EIO;
}

at_status at_atomic_commit(struct at_atomic_file *file) {
    int failed = ferror(file->stream) ? reason_of(file) : 0;
    if ((!failed || failed == EIO) && fflush(file->stream) != 0)
        failed = errno;
    if (!failed && file->temp && fsync(fileno(file->stream)) != 0)
        failed = errno;
    if (fclose(file->stream) != 0 && !failed)
        failed = errno;
    if (!failed && file->temp && rename(file->temp, file->path) != 0)
        failed = errno;
    at_status status = AT_OK;
    if (failed)
        status = AT_FAIL(AT_IO, "cannot write %s: %s", file->path, strerror(failed));
    if (failed && file->temp)
        unlink(file->temp);
    if (!failed && file->temp)
        sync_folder(file->path);
    forget(file);
    return status;
}

void at_atomic_abandon(struct at_atomic_file *file) {
    if (!file->stream)
        return;
    fclose(file->stream);
    if (file->temp)
        unlink(file->temp);
    forget(file);
}

at_status at_atomic_check(const char *path) {
    struct at_atomic_file file;
    if (strcmp(path, "-") == 0) /* or a file of that name is in the way of everyone's next command */
        return AT_FAIL(AT_USAGE, "found -, wanted the name of a file (./- is one)");
    AT_TRY(at_atomic_open(path, &file));
    at_atomic_abandon(&file);
    return AT_OK;
}

at_status at_atomic_check_apart(const char *path, const char *other) {
    struct stat x, y;
    const int there = stat(path, &x) == 0;
    const int same = !there                 ? strcmp(path, other) == 0
                     : stat(other, &y) == 0 ? S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino
                                            : 0;
    return same ? AT_FAIL(AT_USAGE, "%s and %s are one file, wanted another one to write", path, other) : AT_OK;
}

at_status at_atomic_check_files(const char *const *written, int n_written, const char *const *others, int n_others) {
    for (int i = 0; i < n_written; i++) {
        if (!written[i])
            continue;
        AT_TRY(at_atomic_check(written[i]));
        for (int k = 0; k < n_others; k++)
            if (others[k])
                AT_TRY(at_atomic_check_apart(written[i], others[k]));
        for (int k = 0; k < i; k++)
            if (written[k])
                AT_TRY(at_atomic_check_apart(written[i], written[k]));
    }
    return AT_OK;
}

/* Looked at before it is opened: a pipe without a reader would wait for one. */
at_status at_atomic_check_regular(const char *path) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return AT_FAIL(AT_USAGE, "%s is no regular file, wanted one: its journal lies beside it", path);
    return at_atomic_check(path);
}
