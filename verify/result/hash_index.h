/* Numbers 0, 1, 2, ... of things that are found again by a hash: what a list of them lacks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HASH_INDEX_H
#define AT_HASH_INDEX_H

#include <stdint.h>

#include "attest/status.h"

/* All zeros is an empty one. At most half of the slots are taken: 24 to 48 bytes a thing. */
struct at_hash_index {
    uint64_t *hashes; /* of each thing */
    int64_t n, capacity;
    int64_t *slots; /* number + 1; 0: free. Twice `capacity`, a power of two */
};

/* The number whose hash is this one and of which is_it() is not 0; -1: there is none. */
int64_t at_hash_index_find(const struct at_hash_index *index, uint64_t hash,
                           int (*is_it)(const void *context, int64_t number), const void *context);
/* One more, which find() did not find. Its number is `n` before. */
at_status at_hash_index_add(struct at_hash_index *index, uint64_t hash);
void at_hash_index_release(struct at_hash_index *index);

#endif
