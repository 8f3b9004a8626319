/* HDF5 with this project's rules built in: no times, tracked order, columns with units and dimension scales,
 * errors in our own trail.
 * SPDX-License-Identifier: Apache-2.0
 *
 * verify/archive is the only place that includes hdf5.h. The type in memory is always the type in the file. */
#ifndef AT_H5UTIL_H
#define AT_H5UTIL_H

#include <hdf5.h>
#include <stdint.h>

#include "attest/status.h"

/* What a column holds. Text is variable-length UTF-8, its data an array of const char *. */
enum at_h5_type { AT_H5_TEXT, AT_H5_I8, AT_H5_I32, AT_H5_I64, AT_H5_U64, AT_H5_F64, AT_H5_F32, AT_H5_F16, AT_H5_BF16 };
/* Columns that come in pieces come in so many rows at a time: whole chunks of every column, and as many texts as HDF5 converts
 * in one go (16 bytes each in a buffer of 1 MB), so that the file has the bytes that one write would give it. */
enum { AT_H5_RANK = 4, AT_H5_PIECE_ROWS = 1 << 16 };
size_t at_h5_type_bytes(enum at_h5_type type);

/* A dataset of rank 1 to 4. scales: open dimension scales, one per axis. */
struct at_h5_column {
    const char *name;
    enum at_h5_type type;
    int rank;
    hsize_t dims[AT_H5_RANK];
    hid_t scales[AT_H5_RANK];
    const char *units, *long_name;
    int is_tensor;             /* stored as it is, without filters */
    int missing;               /* integers: -1 stands for "none" and is declared as _FillValue */
    const char *flag_meanings; /* I8: names of the values 0 .. n_flags - 1, space-separated; NULL: no flags */
    int n_flags;
    int bare; /* neither scales nor attributes, which take most of a small column's time: for this program's eyes */
    const void *data;
    /* Instead of data, where rows do not all fit memory: *data gets those from `first`, a multiple of AT_H5_PIECE_ROWS, to the
     * end of their piece, good until the next call. The file gets the bytes that it would have got in one piece. */
    at_status (*piece)(void *context, hsize_t first, const void **data);
    void *context;
};

/* Stops HDF5 from printing its error stack. Every entry point calls it first. */
void at_h5_quiet(void);
/* AT_IO (reading: AT_USAGE when the content is at fault) with `file`, what could not be done, and the
 * innermost line of HDF5's error stack. */
at_status at_h5_fail(at_status status, const char *file, const char *action, const char *name);
/* Closes any object except a file; ignores negative ids. */
void at_h5_close(hid_t id);

/* The bytes of a file that is built in memory. */
struct at_h5_image {
    void *bytes;
    size_t n;
};

/* A new file in memory, whose bytes `image` gets when it is closed; `image` must stay where it is until then.
 * Nothing reaches a disk through HDF5: 1.10 cannot be brought to a clean end after a write of its own failed. */
at_status at_h5_create(const char *file, struct at_h5_image *image, hid_t *id);
/* The same with another driver, which `set_driver` puts into the access list; for the makers of files here. */
at_status at_h5_create_on(const char *file, at_status (*set_driver)(const char *file, hid_t access, void *context),
                          void *context, hid_t *id);
/* Closes the file (an object left open is AT_BUG) and writes it to `path`, whole or not at all. Releases the
 * image in any case. */
at_status at_h5_save(const char *path, hid_t id, struct at_h5_image *image);
/* Closes and forgets; for the way out after an error. */
void at_h5_abandon(hid_t id, struct at_h5_image *image);
at_status at_h5_open(const char *file, hid_t *id);

/* A file that is too large to be built in memory, with the bytes that at_h5_create() gives it. HDF5 writes through a driver that
 * never fails: after the first write that did, what HDF5 wants written stays in memory, so that the file can be closed; the
 * failure is `out`'s, and whoever writes on for long asks at_h5_out_failed(). */
struct at_h5_out;
at_status at_h5_create_out(const char *path, struct at_h5_out **out, hid_t *id);
/* AT_IO when something could not be written. */
at_status at_h5_out_failed(const struct at_h5_out *out);
/* Closes the file, which then has its name, whole or not at all. Releases `out` in any case. */
at_status at_h5_save_out(struct at_h5_out *out, hid_t id);
void at_h5_abandon_out(struct at_h5_out *out, hid_t id);

/* A group with encoding-type and encoding-version. nx_class: "NXdata", "NXcollection". */
at_status at_h5_group(const char *file, hid_t parent, const char *name, const char *type, const char *nx_class,
                      hid_t *group);
at_status at_h5_attr_text(const char *file, hid_t object, const char *name, const char *text);
at_status at_h5_attr_texts(const char *file, hid_t object, const char *name, int n, const char *const *texts);

/* Writes `first`, `first` + 1, ... as int64 and makes it a dimension scale; *scale stays open. */
at_status at_h5_scale(const char *file, hid_t group, const char *name, hsize_t n, int64_t first, const char *long_name,
                      hid_t *scale);
/* The same with given values. */
at_status at_h5_scale_of(const char *file, hid_t group, const char *name, hsize_t n, const int64_t *values,
                         const char *long_name, hid_t *scale);
at_status at_h5_write(const char *file, hid_t group, const struct at_h5_column *column);
/* A single text, with units and long_name. */
at_status at_h5_write_text(const char *file, hid_t group, const char *name, const char *text, const char *long_name);

/* Length of a 1-D dataset, AT_USAGE if it has another rank or is not there. */
at_status at_h5_length(const char *file, hid_t group, const char *name, hsize_t *n);
/* Reads a column whose type and dims must be exactly these into `data`. Texts: an array of char * that
 * at_h5_free_texts() releases. Refuses a dataset that claims more than the file stores. */
at_status at_h5_read(const char *file, hid_t group, const char *name, enum at_h5_type type, int rank,
                     const hsize_t *dims, void *data);
/* The same of rows [first, first + n) of a column with `width` values a row (1: of rank 1). Fast where first is a multiple of
 * AT_H5_PIECE_ROWS. */
at_status at_h5_read_rows(const char *file, hid_t group, const char *name, enum at_h5_type type, int width,
                          hsize_t first, hsize_t n, void *data);
/* The same of n rows by their numbers, in ascending order; width at most 8. */
at_status at_h5_pick(const char *file, hid_t group, const char *name, enum at_h5_type type, int width,
                     const int64_t *rows, int64_t n, void *data);
void at_h5_free_texts(char **texts, hsize_t n);
/* A single text / a text attribute; the caller frees *text. */
at_status at_h5_read_text(const char *file, hid_t group, const char *name, char **text);
at_status at_h5_read_attr(const char *file, hid_t object, const char *name, char **text);

#endif
