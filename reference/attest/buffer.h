/* Guarded placement of tensors in one block of memory: a band of known bytes before and after each,
 * outputs pre-filled with marked NaNs, so that writes outside and elements left out are seen.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_BUFFER_H
#define AT_BUFFER_H

#include "attest/tensor.h"

enum { AT_GUARD_BYTES = 512, AT_BUFFER_ALIGN = 256, AT_MAX_PLACED = 24 };

struct at_placed {
    int64_t offset, bytes; /* of the payload inside the block */
    uint64_t checksum;     /* taken by at_buffer_seal() */
};

/* Owns neither the block nor the tensors; a block is memory of the runner's. */
struct at_buffer {
    uint8_t *base;
    int64_t capacity, used;
    int64_t fence; /* bytes of guard behind the last payload's band, which `used` has in it */
    uint64_t seed; /* guard bytes and marks derive from it; changes with case and rerun */
    int n;
    struct at_placed placed[AT_MAX_PLACED];
};

/* Bytes a block needs for payloads of these sizes, guards and alignment included. */
int64_t at_buffer_need(int n, const int64_t *bytes);
void at_buffer_init(struct at_buffer *buffer, void *base, int64_t capacity, uint64_t seed);
/* Reserves a payload with bands on both sides; *index names it afterwards. bytes may be 0. */
at_status at_buffer_place(struct at_buffer *buffer, int64_t bytes, int *index, void **payload);
/* `bytes` more of guard behind the last payload, for what strays further than a band: they count as damaged past its end.
 * Nothing is placed afterwards. AT_NO_MEMORY. */
at_status at_buffer_fence(struct at_buffer *buffer, int64_t bytes);
/* 64-bit checksum of payload i as it is now, kept for at_buffer_changed(). */
void at_buffer_seal(struct at_buffer *buffer, int i);
int at_buffer_changed(const struct at_buffer *buffer, int i);
/* First damaged guard byte, over all bands: 1 and *i = the payload whose band it is and *distance =
 * bytes past its end (>= 0) or before its start (< 0); 0 when all are whole. */
int at_buffer_damaged(const struct at_buffer *buffer, int *i, int64_t *distance);

/* The marked NaN of a format: a quiet NaN whose payload bits come from the seed where the format has
 * them. A kernel that computes a NaN gives the canonical one; e4m3/e5m2 have too few bits to tell. */
uint64_t at_mark_code(enum at_format format, uint64_t seed);
/* Fills a whole tensor with the mark / counts elements that still hold it (first index in *first). */
void at_mark_fill(const struct at_tensor *tensor, uint64_t seed);
int64_t at_mark_count(const struct at_tensor *tensor, uint64_t seed, int64_t *first);

/* 64-bit FNV-1a-like checksum used above and for case hashes; same value on every machine. */
uint64_t at_hash_bytes(const void *data, size_t n, uint64_t start);
#define AT_HASH_START 0xcbf29ce484222325u

#endif
