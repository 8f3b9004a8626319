/* A file without a name, appended and read, and words packed for it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/result/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAITING_BYTES = 1 << 20 };

/* ---- the file ---- */

/* O_TMPFILE is not known to every file system; a name is then taken and given back at once. */
static int open_in(const char *folder) {
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    if (snprintf(path, sizeof path, "%s/attest.XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

at_status at_scratch_file(const char *beside, int *fd) {
    char folder[4096];
    const char *slash = strrchr(beside, '/'), *other = getenv("TMPDIR");
    const int n = slash ? (int)(slash - beside) + (slash == beside) : 1;
    *fd = -1;
    if (n < (int)sizeof folder && strncmp(beside, "/dev/", 5) != 0) {
        snprintf(folder, sizeof folder, "%.*s", n, slash ? beside : ".");
        *fd = open_in(folder);
    }
    if (*fd < 0)
        *fd = open_in(other && *other ? other : "/tmp");
    return *fd >= 0 ? AT_OK : AT_FAIL(AT_IO, "%s: no room beside it for a temporary file: %s", beside, strerror(errno));
}

static at_status write_waiting(struct at_scratch *s) {
    size_t done = 0;
    if (!s->is_open)
        AT_TRY(at_scratch_file(s->beside, &s->fd));
    s->is_open = 1;
    while (done < s->n_waiting) {
        const off_t at = (off_t)(s->length - (int64_t)s->n_waiting) + (off_t)done;
        const ssize_t written = pwrite(s->fd, s->waiting + done, s->n_waiting - done, at);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            return AT_FAIL(AT_IO, "%s: cannot write the temporary file beside it: %s", s->beside,
                           written ? strerror(errno) : "no room");
    }
    s->n_waiting = 0;
    return AT_OK;
}

at_status at_scratch_append(struct at_scratch *s, const void *bytes, size_t n, int64_t *offset) {
    const char *from = bytes;
    if (!s->waiting && !(s->waiting = malloc(WAITING_BYTES)))
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for a temporary file", s->beside);
    *offset = s->length;
    while (n > 0) {
        if (s->n_waiting == WAITING_BYTES)
            AT_TRY(write_waiting(s));
        const size_t room = WAITING_BYTES - s->n_waiting, now = n < room ? n : room;
        memcpy(s->waiting + s->n_waiting, from, now);
        s->n_waiting += now;
        s->length += (int64_t)now;
        from += now;
        n -= now;
    }
    return AT_OK;
}

at_status at_scratch_read(struct at_scratch *s, int64_t offset, void *bytes, size_t n) {
    size_t done = 0;
    const int64_t written = s->length - (int64_t)s->n_waiting;
    if (offset >= written) {
        memcpy(bytes, s->waiting + (offset - written), n);
        return AT_OK;
    }
    if (offset + (int64_t)n > s->length - (int64_t)s->n_waiting)
        AT_TRY(write_waiting(s));
    while (done < n) {
        const ssize_t got = pread(s->fd, (char *)bytes + done, n - done, (off_t)offset + (off_t)done);
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            return AT_FAIL(AT_IO, "%s: cannot read the temporary file beside it: %s", s->beside,
                           got ? strerror(errno) : "it ends too early");
    }
    return AT_OK;
}

void at_scratch_release(struct at_scratch *s) {
    if (s->is_open)
        close(s->fd);
    free(s->waiting);
    *s = (struct at_scratch){ .beside = s->beside };
}

/* ---- packing ---- */

size_t at_words_pack(const void *words, size_t n, void *packed) {
    const char *from = words;
    char *bits = packed, *to = bits + (n + 63) / 64 * 8;
    for (size_t at = 0; at < n; at += 64) {
        const size_t end = n - at < 64 ? n - at : 64;
        uint64_t set = 0;
        for (size_t i = 0; i < end; i++) {
            uint64_t word;
            memcpy(&word, from + 8 * (at + i), 8);
            if (!word)
                continue;
            set |= (uint64_t)1 << i;
            memcpy(to, &word, 8);
            to += 8;
        }
        memcpy(bits + at / 8, &set, 8);
    }
    return (size_t)(to - bits);
}

void at_words_unpack(const void *packed, size_t n, void *words) {
    const char *bits = packed, *from = bits + (n + 63) / 64 * 8;
    memset(words, 0, 8 * n);
    for (size_t at = 0; at < n; at += 64) {
        uint64_t set;
        memcpy(&set, bits + at / 8, 8);
        for (; set; set &= set - 1, from += 8)
            memcpy((char *)words + 8 * (at + (size_t)__builtin_ctzll(set)), from, 8);
    }
}
