/* A bounded input file, and the checks of sizes and names that all readers share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/readers/reader_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static at_status open_regular(const char *path, struct at_input *input) {
    /* O_NONBLOCK: opening a FIFO would otherwise wait for a writer before fstat can refuse it. */
    input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (input->fd < 0)
        return AT_FAIL(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat info;
    if (fstat(input->fd, &info) != 0)
        return AT_FAIL(AT_IO, "%s: fstat: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return AT_FAIL(AT_USAGE, "%s: is %s, wanted a regular file", path,
                       S_ISDIR(info.st_mode) ? "a folder" : "a pipe, a device or a socket");
    input->size = info.st_size;
    return AT_OK;
}

at_status at_input_open(const char *path, struct at_input *input) {
    *input = (struct at_input){ .fd = -1 };
    at_status status = open_regular(path, input);
    if (status == AT_OK && !(input->path = strdup(path)))
        status = AT_FAIL(AT_NO_MEMORY, "%s: no memory for its name", path);
    if (status != AT_OK)
        at_input_close(input);
    return status;
}

void at_input_close(struct at_input *input) {
    if (input->fd >= 0)
        close(input->fd);
    free(input->path);
    *input = (struct at_input){ .fd = -1 };
}

at_status at_input_read(const struct at_input *input, int64_t offset, int64_t n, void *out) {
    if (offset < 0 || n < 0 || offset > input->size || n > input->size - offset)
        return AT_FAIL(AT_USAGE, "%s: offset %" PRId64 ": wanted %" PRId64 " bytes there, the file has %" PRId64,
                       input->path, offset, n, input->size);
    uint8_t *to = out;
    while (n > 0) {
        ssize_t got = pread(input->fd, to, (size_t)n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return AT_FAIL(AT_IO, "%s: offset %" PRId64 ": read: %s", input->path, offset, strerror(errno));
        if (got == 0)
            return AT_FAIL(AT_IO, "%s: offset %" PRId64 ": the file ends here; it had %" PRId64 " bytes when opened",
                           input->path, offset, input->size);
        to += got;
        offset += got;
        n -= got;
    }
    return AT_OK;
}

uint64_t at_read_le(const void *bytes, int n) {
    const uint8_t *b = bytes;
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | b[i];
    return value;
}

at_status at_shape_set(const char *where, struct at_file_tensor *tensor, int64_t rank, const int64_t *shape) {
    if (rank > AT_READER_MAX_RANK)
        return AT_FAIL(AT_USAGE, "%s: has %" PRId64 " dimensions, wanted at most %d", where, rank, AT_READER_MAX_RANK);
    tensor->rank = (int)rank;
    int64_t count = 1;
    int empty = 0;
    for (int i = 0; i < tensor->rank; i++) {
        tensor->shape[i] = shape[i];
        empty |= shape[i] == 0;
        /* Zero extents are left out of the product, so that [2^62, 2^62, 0] does not hide an overflow. */
        if (shape[i] != 0 && __builtin_mul_overflow(count, shape[i], &count))
            return AT_FAIL(AT_USAGE, "%s: dimension %d: the shape's product is beyond 2^63 elements", where, i);
    }
    tensor->count = empty ? 0 : count;
    return AT_OK;
}

at_status at_shape_bytes(const char *where, const struct at_file_tensor *tensor, int64_t element, int64_t *bytes) {
    if (__builtin_mul_overflow(tensor->count, element, bytes))
        return AT_FAIL(AT_USAGE, "%s: %" PRId64 " elements of %" PRId64 " bytes are beyond 2^63 bytes", where,
                       tensor->count, element);
    return AT_OK;
}

at_status at_name_set(const char *path, struct at_file_tensor *tensor, const char *name, size_t n) {
    if (n >= AT_READER_NAME_BYTES)
        return AT_FAIL(AT_USAGE, "%s: a tensor's name has %zu bytes, wanted at most %d", path, n,
                       AT_READER_NAME_BYTES - 1);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return AT_FAIL(AT_USAGE, "%s: byte %zu of a tensor's name is the control character 0x%02x", path, i,
                           (unsigned)(unsigned char)name[i]);
    json_t *text = json_stringn(name, n);
    if (!text)
        return AT_FAIL(AT_USAGE, "%s: a tensor's name of %zu bytes is not UTF-8", path, n);
    json_decref(text);
    memcpy(tensor->name, name, n);
    tensor->name[n] = 0;
    return AT_OK;
}
