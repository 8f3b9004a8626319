/* The HDF5 reader: a child process that opens the file and sends tensors over a socket.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every file is opened by a forked child with the limits of guard.h; what it sends is checked as if it came from the file.
 * A child that dies, passes a limit or is silent for READ_SECONDS costs one AT_USAGE that says which. */
#include "verify/archive/reader_hdf5.h"

#include "datasets/readers/reader.h"
#include "verify/archive/guard.h"
#include "verify/archive/h5tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_SECONDS = 60, PIECE_BYTES = 4 << 20 };

struct handle {
    char *path;
    int fd; /* this end of the socket */
    pid_t child;
};

struct request {
    int64_t tensor, first, n;
};

struct reply {
    int32_t status;
    int32_t n; /* tensors that follow the first reply */
    char message[1024];
};

/* ---- both sides ---- */

/* 0, or -1 when the other side is gone, silent for `seconds` (-1: waits for ever) or the call failed. */
static int transfer(int fd, void *bytes, int64_t n, int sending, int seconds) {
    char *at = bytes;
    while (n > 0) {
        struct pollfd ready = { .fd = fd, .events = sending ? POLLOUT : POLLIN };
        int polled = poll(&ready, 1, seconds < 0 ? -1 : seconds * 1000);
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled == 0)
            errno = ETIMEDOUT;
        if (polled <= 0)
            return -1;
        ssize_t moved = sending ? send(fd, at, (size_t)n, MSG_NOSIGNAL) : recv(fd, at, (size_t)n, 0);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0) {
            errno = moved == 0 ? EPIPE : errno;
            return -1;
        }
        at += moved;
        n -= moved;
    }
    return 0;
}

/* ---- the child ---- */

static void send_or_leave(int fd, void *bytes, int64_t n) {
    if (transfer(fd, bytes, n, 1, -1) != 0)
        at_guard_leave(1);
}

static void send_reply(int fd, at_status status, int n) {
    struct reply reply = { .status = (int32_t)status, .n = n };
    snprintf(reply.message, sizeof reply.message, "%s", status == AT_OK ? "" : at_error_message());
    send_or_leave(fd, &reply, (int64_t)sizeof reply);
}

static _Noreturn void serve(int fd, const char *path) {
    static uint8_t piece[PIECE_BYTES];
    struct at_h5_file *file = NULL;
    struct at_file_tensor *tensors = NULL;
    struct request request;
    int n = 0;
    at_guard_enter();
    at_guard_begin(path);
    at_status status = at_h5_file_open(path, &file, &tensors, &n);
    at_guard_end();
    send_reply(fd, status, n);
    if (status != AT_OK)
        at_guard_leave(0);
    send_or_leave(fd, tensors, n * (int64_t)sizeof *tensors);
    while (transfer(fd, &request, (int64_t)sizeof request, 0, -1) == 0) {
        int i = (int)request.tensor;
        at_guard_begin(path);
        status = at_h5_file_read(file, tensors, i, request.first, request.n, piece);
        at_guard_end();
        send_reply(fd, status, 0);
        if (status == AT_OK)
            send_or_leave(fd, piece, request.n * (int64_t)at_format_info(tensors[i].format)->bytes);
    }
    at_guard_leave(0); /* without H5Fclose: nothing of a hostile file is worth a last look */
}

/* ---- this side ---- */

static at_status start_child(struct handle *handle) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return AT_FAIL(AT_IO, "%s: no socket for its reader: %s", handle->path, strerror(errno));
    handle->child = fork();
    if (handle->child == 0) {
        close(ends[0]);
        serve(ends[1], handle->path);
    }
    close(ends[1]);
    handle->fd = ends[0];
    if (handle->child < 0)
        return AT_FAIL(AT_IO, "%s: no process for its reader: %s", handle->path, strerror(errno));
    return AT_OK;
}

/* Ends the child, which waits for a request or is killed; its wait status. */
static int end_child(struct handle *handle, int kill_it) {
    int status = 0;
    if (handle->fd >= 0) {
        shutdown(handle->fd, SHUT_RDWR); /* reaches the child even when another child holds a copy of fd */
        close(handle->fd);
    }
    handle->fd = -1;
    if (handle->child <= 0)
        return 0;
    if (kill_it)
        kill(handle->child, SIGKILL);
    while (waitpid(handle->child, &status, 0) < 0 && errno == EINTR)
        ;
    handle->child = -1;
    return status;
}

/* The child does not answer as it should: says why, and ends it. */
static at_status lost(struct handle *handle, int was_silent) {
    if (was_silent) {
        end_child(handle, 1);
        return AT_FAIL(AT_USAGE, "%s: the HDF5 library does not come back from it within %d s: the file is damaged",
                       handle->path, READ_SECONDS);
    }
    return at_guard_died(handle->path, end_child(handle, 0));
}

static at_status receive(struct handle *handle, void *bytes, int64_t n) {
    if (handle->fd < 0)
        return AT_FAIL(AT_USAGE, "%s: cannot be read further after the failure before", handle->path);
    if (transfer(handle->fd, bytes, n, 0, READ_SECONDS) != 0)
        return lost(handle, errno == ETIMEDOUT);
    return AT_OK;
}

static at_status receive_reply(struct handle *handle, struct reply *reply) {
    AT_TRY(receive(handle, reply, (int64_t)sizeof *reply));
    reply->message[sizeof reply->message - 1] = 0;
    if (reply->status < 0 || reply->status >= AT_STATUS_COUNT)
        return AT_FAIL(AT_USAGE, "%s: the process that read it answered with status %" PRId32 ": the file is damaged",
                       handle->path, reply->status);
    if (reply->status != AT_OK)
        return AT_FAIL((at_status)reply->status, "%s", reply->message);
    return AT_OK;
}

/* Whether a tensor is described as every reader must describe it; this one comes from a process that may be broken. */
static int is_sound(const struct at_file_tensor *t) {
    if (!memchr(t->name, 0, sizeof t->name) || !memchr(t->type_name, 0, sizeof t->type_name) || t->rank < 0 ||
        t->rank > AT_READER_MAX_RANK || (unsigned)t->format >= AT_FORMAT_COUNT || t->count < 0 || t->bytes < 0)
        return 0;
    int64_t element = (int64_t)at_format_info(t->format)->bytes;
    return !t->supported || (t->count <= INT64_MAX / 8 && t->bytes == t->count * element);
}

static at_status receive_list(struct handle *handle, struct at_file_tensor **tensors, int *n) {
    struct reply reply = { 0 };
    AT_TRY(receive_reply(handle, &reply));
    if (reply.n < 0 || reply.n > AT_H5_MAX_TENSORS)
        return AT_FAIL(AT_USAGE, "%s: a list of %" PRId32 " datasets, wanted 0 to %d", handle->path, reply.n,
                       AT_H5_MAX_TENSORS);
    *n = reply.n;
    *tensors = calloc((size_t)*n + 1, sizeof **tensors);
    if (!*tensors)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %d datasets", handle->path, *n);
    AT_TRY(receive(handle, *tensors, *n * (int64_t)sizeof **tensors));
    for (int i = 0; i < *n; i++)
        if (!is_sound(&(*tensors)[i]))
            return AT_FAIL(AT_USAGE, "%s: the description of dataset %d makes no sense: the file is damaged",
                           handle->path, i);
    return AT_OK;
}

static void close_file(void *opaque) {
    struct handle *handle = opaque;
    end_child(handle, 0);
    free(handle->path);
    free(handle);
}

static at_status open_file(const char *path, void **opaque, struct at_file_tensor **tensors, int *n) {
    *tensors = NULL;
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle || !(handle->path = strdup(path))) {
        free(handle);
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its reader", path);
    }
    handle->fd = -1;
    at_status status = start_child(handle);
    if (status == AT_OK)
        status = receive_list(handle, tensors, n);
    if (status != AT_OK) {
        free(*tensors);
        close_file(handle);
        return status;
    }
    *opaque = handle;
    return AT_OK;
}

static at_status read_tensor(void *opaque, const struct at_file_tensor *tensors, int i, int64_t first, int64_t n,
                             void *out) {
    struct handle *handle = opaque;
    int64_t element = (int64_t)at_format_info(tensors[i].format)->bytes, most = PIECE_BYTES / element;
    uint8_t *to = out;
    for (int64_t done = 0; done < n;) {
        struct request request = { i, first + done, n - done < most ? n - done : most };
        struct reply reply = { 0 };
        if (handle->fd >= 0 && transfer(handle->fd, &request, (int64_t)sizeof request, 1, READ_SECONDS) != 0)
            return lost(handle, errno == ETIMEDOUT);
        AT_TRY(receive_reply(handle, &reply));
        AT_TRY(receive(handle, to, request.n * element));
        done += request.n;
        to += request.n * element;
    }
    return AT_OK;
}

static const struct at_reader_type reader_hdf5 = {
    .name = "hdf5",
    .suffixes = { ".h5", ".hdf5" },
    .magics = { "\x89HDF\r\n\x1a\n" },
    .open = open_file,
    .read = read_tensor,
    .close = close_file,
};

void at_reader_hdf5_register(void) { at_reader_register(&reader_hdf5); }
