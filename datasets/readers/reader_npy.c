/* Reader of npy files: one array, called as the file is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/readers/reader_internal.h"

#include <stdlib.h>
#include <string.h>

struct handle {
    struct at_input input;
    int64_t data;
};

static void close_file(void *opaque) {
    struct handle *handle = opaque;
    if (!handle)
        return;
    at_input_close(&handle->input);
    free(handle);
}

/* The tensor of q.npy is called q. */
static at_status name_by_file(const char *path, struct at_file_tensor *tensor) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base);
    if (n > 4 && strcmp(base + n - 4, ".npy") == 0)
        n -= 4;
    return at_name_set(path, tensor, base, n);
}

static at_status parse_file(const char *path, const struct at_input *input, struct at_file_tensor *tensor,
                            int64_t *data) {
    int64_t n = input->size < AT_NPY_PREFIX ? input->size : AT_NPY_PREFIX;
    uint8_t *prefix = malloc((size_t)n + 1);
    if (!prefix)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its header", path);
    at_status status = at_input_read(input, 0, n, prefix);
    if (status == AT_OK)
        status = at_npy_parse(path, prefix, n, input->size, tensor, data);
    free(prefix);
    return status;
}

at_status at_npy_open(const char *path, struct at_input *input, struct at_file_tensor *tensor, int64_t *data) {
    AT_TRY(at_input_open(path, input));
    AT_TRY(parse_file(path, input, tensor, data));
    return name_by_file(path, tensor);
}

static at_status open_file(const char *path, void **opaque, struct at_file_tensor **tensors, int *n) {
    at_status status = AT_OK;
    struct handle *handle = calloc(1, sizeof *handle);
    *tensors = calloc(1, sizeof **tensors);
    if (!handle || !*tensors) {
        free(handle);
        free(*tensors);
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its reader", path);
    }
    handle->input.fd = -1;
    AT_TRY_OUT(at_npy_open(path, &handle->input, *tensors, &handle->data));
    *n = 1;
    *opaque = handle;
out:
    if (status != AT_OK) {
        free(*tensors);
        close_file(handle);
    }
    return status;
}

static at_status read_tensor(void *opaque, const struct at_file_tensor *tensors, int i, int64_t first, int64_t n,
                             void *out) {
    const struct handle *handle = opaque;
    int64_t element = (int64_t)at_format_info(tensors[i].format)->bytes;
    AT_TRY(at_input_read(&handle->input, handle->data + first * element, n * element, out));
    return AT_OK;
}

const struct at_reader_type at_reader_npy = {
    .name = "npy",
    .suffixes = { ".npy" },
    .magics = { "\x93NUMPY" },
    .open = open_file,
    .read = read_tensor,
    .close = close_file,
};
