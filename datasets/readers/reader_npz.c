/* Reader of npz files: a zip archive of npy members, stored or deflated.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Opening reads the directory and the header of each member. The first read of a tensor passes once over its
 * whole member and checks size and CRC, so that no element of a damaged member is ever handed out. */
#include "datasets/readers/reader_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
    const struct at_zip_member *member;
    struct at_unzip *unzip; /* opened by the first read */
    int verified;
    int64_t data; /* offset of the elements in the unpacked member */
};

struct handle {
    struct at_input input;
    struct at_zip_member *members;
    struct part *parts;
    int n;
};

static void close_file(void *opaque) {
    struct handle *handle = opaque;
    if (!handle)
        return;
    for (int i = 0; i < handle->n; i++)
        at_unzip_close(handle->parts[i].unzip);
    free(handle->parts);
    free(handle->members);
    at_input_close(&handle->input);
    free(handle);
}

/* The npy header of one member, unpacked into `prefix` (AT_NPY_PREFIX bytes). */
static at_status parse_part(const struct handle *handle, struct part *part, uint8_t *prefix,
                            struct at_file_tensor *tensor) {
    char where[1024];
    const struct at_zip_member *m = part->member;
    int64_t n = m->unpacked < AT_NPY_PREFIX ? m->unpacked : AT_NPY_PREFIX;
    struct at_unzip *unzip = NULL;
    AT_TRY(at_unzip_open(&handle->input, m, &unzip));
    at_status status = at_unzip_read(unzip, 0, n, prefix);
    at_unzip_close(unzip);
    AT_TRY(status);
    AT_TRY(at_name_set(handle->input.path, tensor, m->name, strlen(m->name) - 4));
    snprintf(where, sizeof where, "%s: member '%s'", handle->input.path, m->name);
    AT_TRY(at_npy_parse(where, prefix, n, m->unpacked, tensor, &part->data));
    return AT_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Two members of one name would make what is read depend on the search order. */
static at_status check_names(const char *path, const struct at_file_tensor *tensors, int n) {
    at_status status = AT_OK;
    const char **names = calloc((size_t)n + 1, sizeof *names);
    if (!names)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %d names", path, n);
    for (int i = 0; i < n; i++)
        names[i] = tensors[i].name;
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 1; i < n && status == AT_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = AT_FAIL(AT_USAGE, "%s: two members are called '%s.npy'", path, names[i]);
    free(names);
    return status;
}

/* Members that are not called *.npy are no arrays and are passed over, as numpy does. */
static at_status parse_parts(const char *path, struct handle *handle, int64_t n_members,
                             struct at_file_tensor **tensors) {
    at_status status = AT_OK;
    uint8_t *prefix = malloc(AT_NPY_PREFIX);
    handle->parts = calloc((size_t)n_members + 1, sizeof *handle->parts);
    *tensors = calloc((size_t)n_members + 1, sizeof **tensors);
    if (!prefix || !handle->parts || !*tensors)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for its members", path);
    for (int64_t i = 0; i < n_members; i++) {
        size_t length = strlen(handle->members[i].name);
        if (length < 4 || strcmp(handle->members[i].name + length - 4, ".npy") != 0)
            continue;
        struct part *part = &handle->parts[handle->n];
        part->member = &handle->members[i];
        AT_TRY_OUT(parse_part(handle, part, prefix, &(*tensors)[handle->n]));
        handle->n++;
    }
    AT_TRY_OUT(check_names(path, *tensors, handle->n));
out:
    free(prefix);
    return status;
}

static at_status open_file(const char *path, void **opaque, struct at_file_tensor **tensors, int *n) {
    at_status status = AT_OK;
    int64_t n_members = 0;
    *tensors = NULL;
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its reader", path);
    handle->input.fd = -1;
    AT_TRY_OUT(at_input_open(path, &handle->input));
    AT_TRY_OUT(at_zip_list(&handle->input, &handle->members, &n_members));
    AT_TRY_OUT(parse_parts(path, handle, n_members, tensors));
    *n = handle->n;
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
    struct handle *handle = opaque;
    struct part *part = &handle->parts[i];
    if (!part->unzip)
        AT_TRY(at_unzip_open(&handle->input, part->member, &part->unzip));
    if (!part->verified)
        AT_TRY(at_unzip_verify(part->unzip));
    part->verified = 1;
    int64_t element = (int64_t)at_format_info(tensors[i].format)->bytes;
    AT_TRY(at_unzip_read(part->unzip, part->data + first * element, n * element, out));
    return AT_OK;
}

const struct at_reader_type at_reader_npz = {
    .name = "npz",
    .suffixes = { ".npz" },
    .magics = { "PK\x03\x04", "PK\x05\x06" },
    .open = open_file,
    .read = read_tensor,
    .close = close_file,
};
