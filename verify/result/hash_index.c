/* Open addressing, with the hashes kept: to grow, nothing is hashed again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/result/hash_index.h"

#include <inttypes.h>
#include <stdlib.h>

/* The first slot free for a hash, or taken by the thing that is asked for. */
static int64_t slot_of(const struct at_hash_index *x, uint64_t hash, int (*is_it)(const void *context, int64_t number),
                       const void *context) {
    const int64_t mask = 2 * x->capacity - 1;
    int64_t at = (int64_t)(hash & (uint64_t)mask);
    for (; x->slots[at]; at = (at + 1) & mask) {
        const int64_t number = x->slots[at] - 1;
        if (is_it && x->hashes[number] == hash && is_it(context, number))
            break;
    }
    return at;
}

int64_t at_hash_index_find(const struct at_hash_index *x, uint64_t hash,
                           int (*is_it)(const void *context, int64_t number), const void *context) {
    return x->n ? x->slots[slot_of(x, hash, is_it, context)] - 1 : -1;
}

static at_status grow(struct at_hash_index *x) {
    const int64_t capacity = x->capacity ? 2 * x->capacity : 64;
    uint64_t *hashes = realloc(x->hashes, (size_t)capacity * sizeof *hashes);
    x->hashes = hashes ? hashes : x->hashes;
    int64_t *slots = calloc(2 * (size_t)capacity, sizeof *slots);
    if (!hashes || !slots) {
        free(slots);
        return AT_FAIL(AT_NO_MEMORY, "no memory for an index of %" PRId64, capacity);
    }
    free(x->slots);
    x->slots = slots;
    x->capacity = capacity;
    for (int64_t i = 0; i < x->n; i++)
        slots[slot_of(x, hashes[i], NULL, NULL)] = i + 1;
    return AT_OK;
}

at_status at_hash_index_add(struct at_hash_index *x, uint64_t hash) {
    if (x->n == x->capacity)
        AT_TRY(grow(x));
    x->hashes[x->n++] = hash;
    x->slots[slot_of(x, hash, NULL, NULL)] = x->n;
    return AT_OK;
}

void at_hash_index_release(struct at_hash_index *x) {
    free(x->hashes);
    free(x->slots);
    *x = (struct at_hash_index){ 0 };
}
