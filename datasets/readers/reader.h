/* Readers of tensor files: safetensors, npy (one, or a folder of them), npz, HDF5 (through a hook). A file is hostile until
 * checked: every length and offset is bounded by the file's size before it is used.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_READER_H
#define AT_READER_H

#include "attest/tensor.h"

enum { AT_READER_MAX_RANK = 8, AT_READER_NAME_BYTES = 256 };

/* A tensor as the file has it. f16/bf16/f32/f64/e4m3/e5m2 map to at_format; i32 too; other types are
 * listed with supported = 0 and cannot be read. */
struct at_file_tensor {
    char name[AT_READER_NAME_BYTES];
    int supported;
    enum at_format format;
    char type_name[32]; /* the file's own word for it */
    int rank;
    int64_t shape[AT_READER_MAX_RANK];
    int64_t count, bytes;
};

struct at_reader; /* an open file */

/* Opens by content and suffix (.safetensors .npy .npz .h5 .hdf5); a folder is one tensor for each npy file. Errors name the file, the offset or
 * field, what was found and what is wanted. */
at_status at_reader_open(const char *path, struct at_reader **reader);
void at_reader_close(struct at_reader *reader);
int at_reader_count(const struct at_reader *reader);
const struct at_file_tensor *at_reader_tensor(const struct at_reader *reader, int i);
/* Index by name, -1 if none. */
int at_reader_find(const struct at_reader *reader, const char *name);
/* Elements [first, first + n) of tensor i, in the file's own format, to `out`. Streams: a file larger
 * than memory can be read piece by piece. */
at_status at_reader_read(struct at_reader *reader, int i, int64_t first, int64_t n, void *out);
/* The same, decoded to double. */
at_status at_reader_read_f64(struct at_reader *reader, int i, int64_t first, int64_t n, double *out);

/* What a reader of one file type implements; HDF5's is registered by verify/archive, the only place
 * that includes hdf5.h. */
struct at_reader_type {
    const char *name;
    const char *suffixes[4]; /* NULL-terminated when fewer */
    const char *magics[2];   /* first bytes of its files, which hold no 0; none: the suffix decides */
    int folders;             /* 1: takes folders */
    at_status (*open)(const char *path, void **handle, struct at_file_tensor **tensors, int *n);
    at_status (*read)(void *handle, const struct at_file_tensor *tensors, int i, int64_t first, int64_t n, void *out);
    void (*close)(void *handle);
};
void at_reader_register(const struct at_reader_type *type);

#endif
