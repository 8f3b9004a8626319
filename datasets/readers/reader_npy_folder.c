/* Reader of a folder of npy files: each is a tensor, called as the file is.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An npy file holds one array, so a capture in this format is many of them. Headers are read when the folder is opened;
 * one file is open at a time, since a capture may have more layers than a process may have files. */
#include "datasets/readers/reader_internal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
    char *path;
    int64_t size, data; /* of the file when the folder was opened; where its elements start */
};

struct handle {
    struct part *parts;
    int n, at; /* at: the part that is open, -1 none */
    struct at_input input;
};

static void close_folder(void *opaque) {
    struct handle *handle = opaque;
    if (!handle)
        return;
    at_input_close(&handle->input);
    for (int i = 0; i < handle->n; i++)
        free(handle->parts[i].path);
    free(handle->parts);
    free(handle);
}

/* Other files may lie there, too; hidden ones are those of an editor or a copy that is under way. */
static int is_npy(const struct dirent *entry) {
    const size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 4 && strcmp(entry->d_name + length - 4, ".npy") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static at_status add_part(const char *folder, const char *name, struct handle *handle, struct at_file_tensor *tensor) {
    struct part *part = &handle->parts[handle->n];
    const size_t length = strlen(folder) + strlen(name) + 2;
    part->path = malloc(length);
    if (!part->path)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its names", folder);
    snprintf(part->path, length, "%s/%s", folder, name);
    handle->n++;
    AT_TRY(at_npy_open(part->path, &handle->input, tensor, &part->data));
    part->size = handle->input.size;
    at_input_close(&handle->input);
    return AT_OK;
}

static at_status open_folder(const char *path, void **opaque, struct at_file_tensor **tensors, int *n) {
    at_status status = AT_OK;
    struct dirent **entries = NULL;
    struct handle *handle = calloc(1, sizeof *handle);
    const int found = handle ? scandir(path, &entries, is_npy, by_name) : 0;
    *tensors = NULL;
    if (!handle)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for its reader", path);
    handle->at = handle->input.fd = -1;
    if (found < 0)
        AT_FAIL_OUT(AT_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (found == 0)
        AT_FAIL_OUT(AT_USAGE, "%s: is a folder, wanted a regular file, or a folder that holds .npy files", path);
    handle->parts = calloc((size_t)found, sizeof *handle->parts);
    *tensors = calloc((size_t)found, sizeof **tensors);
    if (!handle->parts || !*tensors)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %d files", path, found);
    for (int i = 0; i < found; i++)
        AT_TRY_OUT(add_part(path, entries[i]->d_name, handle, &(*tensors)[i]));
    *n = found;
    *opaque = handle;
out:
    for (int i = 0; i < found; i++)
        free(entries[i]);
    free(entries);
    if (status != AT_OK) {
        free(*tensors);
        close_folder(handle);
    }
    return status;
}

static at_status turn_to(struct handle *handle, int i) {
    const struct part *part = &handle->parts[i];
    if (handle->at == i)
        return AT_OK;
    at_input_close(&handle->input);
    handle->at = -1;
    AT_TRY(at_input_open(part->path, &handle->input));
    if (handle->input.size != part->size)
        return AT_FAIL(AT_IO, "%s: has %" PRId64 " bytes; it had %" PRId64 " when its folder was opened", part->path,
                       handle->input.size, part->size);
    handle->at = i;
    return AT_OK;
}

static at_status read_tensor(void *opaque, const struct at_file_tensor *tensors, int i, int64_t first, int64_t n,
                             void *out) {
    struct handle *handle = opaque;
    const int64_t element = (int64_t)at_format_info(tensors[i].format)->bytes;
    AT_TRY(turn_to(handle, i));
    return at_input_read(&handle->input, handle->parts[i].data + first * element, n * element, out);
}

const struct at_reader_type at_reader_npy_folder = {
    .name = "npy folder",
    .folders = 1,
    .open = open_folder,
    .read = read_tensor,
    .close = close_folder,
};
