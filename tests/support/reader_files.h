/* Tensor files made byte by byte for the tests of the readers: good ones, and ones that lie.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_READER_FILES_H
#define AT_READER_FILES_H

#include <stddef.h>
#include <stdint.h>

/* A growing array of bytes. Running out of memory ends the test program. */
struct at_bytes {
    uint8_t *data;
    size_t n, capacity;
};

void at_bytes_add(struct at_bytes *bytes, const void *data, size_t n);
void at_bytes_le(struct at_bytes *bytes, uint64_t value, int n);
void at_bytes_set_le(struct at_bytes *bytes, size_t at, uint64_t value, int n);
void at_bytes_release(struct at_bytes *bytes);

/* Writes the bytes to a file of this name in a temporary folder of the process, removed when it ends.
 * The path is valid until the next call with the same name. */
const char *at_temp_file(const char *name, const struct at_bytes *bytes);
/* The path alone. */
const char *at_temp_path(const char *name);

/* u64 length, header text, data. */
void at_make_safetensors(struct at_bytes *out, const char *header, const void *data, size_t n);
/* An npy array of the given version; the dictionary is padded to a multiple of 64 and ended by a newline. */
void at_make_npy(struct at_bytes *out, int version, const char *dictionary, const void *data, size_t n);

/* One member of a zip archive. */
struct at_zip_source {
    const char *name;
    const struct at_bytes *content;
    int deflate;
    int zip64; /* sizes in a zip64 field */
};
/* A zip archive; with_zip64: has zip64 end records too. */
void at_make_zip(struct at_bytes *out, const struct at_zip_source *members, int n, int with_zip64);

/* An HDF5 file with one tensor of every format that is read (named as the format is, values
 * at_sample_value), contiguous and in deflated chunks ("chunked", f32 [7 5 3]), a nested path
 * "layers/0/q" and datasets that are not read: "be" (big-endian), "text", "unwritten", "i64". */
void at_make_hdf5(const char *path);
/* Value of element i in the samples: exact in every format. */
double at_sample_value(int64_t i);

#endif
