/* Room on disk for what is too large for memory: a file without a name that is gone with its process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SCRATCH_H
#define AT_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "attest/status.h"

/* What is less than a MB stays in memory, and has no file. All zeros, with `beside`, is an empty one. */
struct at_scratch {
    const char *beside; /* the file lies in the folder of this path, or in $TMPDIR or /tmp where that takes no file */
    int fd;             /* with is_open */
    int is_open;
    int64_t length;
    char *waiting; /* bytes at the end that are not written yet */
    size_t n_waiting;
};

/* Appends n bytes; *offset: where they begin. AT_IO: no file, or no room. */
at_status at_scratch_append(struct at_scratch *s, const void *bytes, size_t n, int64_t *offset);
/* The n bytes from `offset` on, which were appended before. */
at_status at_scratch_read(struct at_scratch *s, int64_t offset, void *bytes, size_t n);
void at_scratch_release(struct at_scratch *s);
/* An open file without a name, in the folder of `beside` or else in $TMPDIR or /tmp. The caller closes *fd. */
at_status at_scratch_file(const char *beside, int *fd);

/* Results and their columns are zeros for the most part. Packed: a bit for each of n words of 8 bytes, then those words that
 * are not 0. `packed` has room for AT_PACKED_BYTES(n); returns how many are used. */
#define AT_PACKED_BYTES(n) (((n) + 63) / 64 * 8 + 8 * (n))
size_t at_words_pack(const void *words, size_t n, void *packed);
/* Back into n words. `packed` is what at_words_pack() made of n words. */
void at_words_unpack(const void *packed, size_t n, void *words);

#endif
