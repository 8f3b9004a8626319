/* The datasets of an HDF5 file as tensors. Runs in the child process of reader_hdf5.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_H5TENSORS_H
#define AT_H5TENSORS_H

#include "datasets/readers/reader.h"

struct at_h5_file;

enum { AT_H5_MAX_TENSORS = 65536 };

/* Lists every dataset reached by hard links from the root; soft and external links are not followed. A
 * tensor's name is the dataset's path with '.' for '/': layers/0/q and layers.0.q are found as layers.0.q.
 * Datasets that are valid but not read (types, big-endian, virtual or external storage, parts never written,
 * other filters than deflate, shuffle and fletcher32) have supported = 0. The file stays open until the
 * process ends. */
at_status at_h5_file_open(const char *path, struct at_h5_file **file, struct at_file_tensor **tensors, int *n);
/* Elements [first, first + n) in row-major order, in the file's own codes. */
at_status at_h5_file_read(struct at_h5_file *file, const struct at_file_tensor *tensors, int i, int64_t first,
                          int64_t n, void *out);

#endif
