/* What the readers of datasets/ share: a bounded input file, shape arithmetic, npy headers, zip members.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_READER_INTERNAL_H
#define AT_READER_INTERNAL_H

#include "datasets/readers/reader.h"

/* The readers of this folder, in the order in which suffixes are tried. A new one is its file, which defines
 * at_reader_NAME, and its name here. */
#define AT_READER_LIST(X) X(safetensors) X(npy) X(npz) X(npy_folder)

#define X(name) extern const struct at_reader_type at_reader_##name;
AT_READER_LIST(X)
#undef X

/* --- reader_input.c: a regular file whose size was taken when it was opened -------------------- */

struct at_input {
    int fd;
    int64_t size;
    char *path; /* owned, for messages */
};

/* Refuses anything but a regular file, so that a pipe or a device cannot block or lie about its size. */
at_status at_input_open(const char *path, struct at_input *input);
void at_input_close(struct at_input *input);
/* Bytes [offset, offset + n) with pread: a file that shrank meanwhile gives AT_IO, never a SIGBUS. */
at_status at_input_read(const struct at_input *input, int64_t offset, int64_t n, void *out);

/* Little-endian fields of a file header. */
uint64_t at_read_le(const void *bytes, int n);

/* Sets tensor->rank and shape, checks that the product fits 63 bits, and sets count. The extents are taken as
 * non-negative by the caller. `where`: "file: tensor 'q'". */
at_status at_shape_set(const char *where, struct at_file_tensor *tensor, int64_t rank, const int64_t *shape);
/* count * element bytes, refused beyond 63 bits. */
at_status at_shape_bytes(const char *where, const struct at_file_tensor *tensor, int64_t element, int64_t *bytes);
/* Copies a name of n bytes. Refuses names that are too long, not UTF-8 or hold control characters: they are
 * printed and become JSON and HDF5 names later. */
at_status at_name_set(const char *path, struct at_file_tensor *tensor, const char *name, size_t n);

/* --- reader_npy_header.c ------------------------------------------------------------------------ */

/* Longest header that is read; numpy itself refuses to evaluate more than 10,000 bytes. */
enum { AT_NPY_MAX_HEADER = 65536, AT_NPY_PREFIX = AT_NPY_MAX_HEADER + 12 };

/* Reads the header from the first n = min(total, AT_NPY_PREFIX) bytes of an array of `total` bytes. Sets
 * everything in `tensor` but its name, and where the elements start. Arrays that are valid but not read (other
 * types, big-endian, Fortran order) come out with supported = 0. `where`: "file" or "file: member 'q.npy'". */
at_status at_npy_parse(const char *where, const uint8_t *bytes, int64_t n, int64_t total, struct at_file_tensor *tensor,
                       int64_t *data_offset);

/* --- reader_npy.c ------------------------------------------------------------------------------- */

/* Opens an npy file and reads its header. The tensor of q.npy is called q. The caller closes *input, also after a
 * failure. */
at_status at_npy_open(const char *path, struct at_input *input, struct at_file_tensor *tensor, int64_t *data_offset);

/* --- reader_zip.c ------------------------------------------------------------------------------- */

struct at_zip_member {
    char name[AT_READER_NAME_BYTES];
    int deflated;
    uint32_t crc;
    int64_t header;                 /* offset of the local header */
    int64_t data, packed, unpacked; /* offset of the bytes in the file, their number there and unpacked */
};

/* Members of the archive in the order they lie in the file; the caller frees *members. Every member lies
 * inside the file, before the directory, and no two share a byte. */
at_status at_zip_list(const struct at_input *input, struct at_zip_member **members, int64_t *n);

/* --- reader_unzip.c: the bytes of one member, forwards ------------------------------------------ */

struct at_unzip;
at_status at_unzip_open(const struct at_input *input, const struct at_zip_member *member, struct at_unzip **unzip);
void at_unzip_close(struct at_unzip *unzip);
/* Unpacked bytes [offset, offset + n). Going forwards continues where the last call ended. */
at_status at_unzip_read(struct at_unzip *unzip, int64_t offset, int64_t n, void *out);
/* One pass over the whole member: it unpacks to exactly the declared size and has the declared CRC. */
at_status at_unzip_verify(struct at_unzip *unzip);

#endif
