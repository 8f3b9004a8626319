/* Guard bands, marks and checksums.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block is used from its start: band, payload, band and padding up to the alignment, band, payload,
 * ... The padding belongs to the band before it, so that no byte between payloads goes unwatched. */
#include "attest/buffer.h"

#include <string.h>

/* Words of bytes are compared and hashed as they lie, and hashes are kept in archives. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are little-endian");

static int64_t align_up(int64_t n) { return (n + AT_BUFFER_ALIGN - 1) / AT_BUFFER_ALIGN * AT_BUFFER_ALIGN; }

/* Bytes of one payload with both bands; the front band is a multiple of the alignment. */
static int64_t placed_bytes(int64_t bytes) { return AT_GUARD_BYTES + align_up(bytes + AT_GUARD_BYTES); }

/* splitmix64's finaliser: every input bit reaches every output bit. */
static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

enum { WORD = 8 }; /* bytes of guard that are counted at once */

static uint64_t guard_word(uint64_t seed, int64_t offset) {
    return mix(seed + 0x9e3779b97f4a7c15u * (uint64_t)(offset / WORD + 1));
}

static uint8_t guard_byte(uint64_t seed, int64_t offset) {
    const uint64_t word = guard_word(seed, offset);
    return ((const uint8_t *)&word)[offset % WORD];
}

static int is_word(int64_t at, int64_t end) { return at % WORD == 0 && end - at >= WORD; }

int64_t at_buffer_need(int n, const int64_t *bytes) {
    int64_t need = 0;
    for (int i = 0; i < n; i++)
        need += placed_bytes(bytes[i]);
    return need;
}

void at_buffer_init(struct at_buffer *buffer, void *base, int64_t capacity, uint64_t seed) {
    memset(buffer, 0, sizeof *buffer);
    buffer->base = base;
    buffer->capacity = capacity;
    buffer->seed = seed;
}

/* Offsets of the two bands of payload i: [front, offset) and [offset + bytes, *back_end). */
static int64_t bands(const struct at_placed *placed, int64_t *back_end) {
    int64_t front = placed->offset - AT_GUARD_BYTES;
    *back_end = front + placed_bytes(placed->bytes);
    return front;
}

static void fill_guard(struct at_buffer *buffer, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
        if (is_word(at, end)) {
            const uint64_t word = guard_word(buffer->seed, at);
            memcpy(buffer->base + at, &word, WORD);
            at += WORD;
        } else {
            buffer->base[at] = guard_byte(buffer->seed, at);
            at++;
        }
    }
}

at_status at_buffer_place(struct at_buffer *buffer, int64_t bytes, int *index, void **payload) {
    if ((uintptr_t)buffer->base % AT_BUFFER_ALIGN)
        return AT_FAIL(AT_BUG, "block at %p, wanted an address aligned to %d bytes", (void *)buffer->base,
                       AT_BUFFER_ALIGN);
    if (buffer->fence)
        return AT_FAIL(AT_BUG, "a payload behind the fence of a block");
    if (buffer->n == AT_MAX_PLACED)
        return AT_FAIL(AT_BUG, "a block holds %d payloads, wanted one more", AT_MAX_PLACED);
    /* compared before anything is added: bytes may be anything */
    int64_t left = buffer->capacity - buffer->used;
    if (bytes < 0 || bytes > left || placed_bytes(bytes) > left)
        return AT_FAIL(AT_NO_MEMORY, "payload of %lld bytes and its guards in a block with %lld of %lld bytes left",
                       (long long)bytes, (long long)left, (long long)buffer->capacity);
    struct at_placed *placed = &buffer->placed[buffer->n];
    placed->offset = buffer->used + AT_GUARD_BYTES;
    placed->bytes = bytes;
    placed->checksum = 0;
    int64_t back_end, front = bands(placed, &back_end);
    fill_guard(buffer, front, placed->offset);
    fill_guard(buffer, placed->offset + bytes, back_end);
    buffer->used = back_end;
    *index = buffer->n++;
    *payload = buffer->base + placed->offset;
    return AT_OK;
}

at_status at_buffer_fence(struct at_buffer *buffer, int64_t bytes) {
    if (buffer->fence || bytes < 0 || bytes > buffer->capacity - buffer->used)
        return AT_FAIL(AT_NO_MEMORY, "fence of %lld bytes in a block with %lld of %lld bytes left", (long long)bytes,
                       (long long)(buffer->capacity - buffer->used), (long long)buffer->capacity);
    fill_guard(buffer, buffer->used, buffer->used + bytes);
    buffer->used += bytes;
    buffer->fence = bytes;
    return AT_OK;
}

/* The word of up to 8 bytes. */
static inline uint64_t word_at(const uint8_t *bytes, size_t n) {
    uint64_t word = 0;
    memcpy(&word, bytes, n);
    return word;
}

/* A bijection of the running value for a given word, so data that differ in one word only never collide. The shift
 * brings high bits down: without it two flipped signs would cancel. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* Four running values, each of every fourth word: a single one would wait for itself at every word. */
static uint64_t checksum(const struct at_buffer *buffer, int i) {
    enum { CHAINS = 4 };
    const struct at_placed *placed = &buffer->placed[i];
    const uint8_t *bytes = buffer->base + placed->offset;
    const size_t n = (size_t)placed->bytes;
    uint64_t chain[CHAINS] = { AT_HASH_START, AT_HASH_START, AT_HASH_START, AT_HASH_START };
    size_t at = 0;
    for (; at + sizeof chain <= n; at += sizeof chain)
        for (size_t k = 0; k < CHAINS; k++)
            chain[k] = hash_word(chain[k], word_at(bytes + at + k * WORD, WORD));
    return at_hash_bytes(bytes + at, n - at, at_hash_bytes(chain, sizeof chain, AT_HASH_START));
}

void at_buffer_seal(struct at_buffer *buffer, int i) { buffer->placed[i].checksum = checksum(buffer, i); }

int at_buffer_changed(const struct at_buffer *buffer, int i) {
    return checksum(buffer, i) != buffer->placed[i].checksum;
}

/* First byte of [begin, end) that is not the guard's, -1 when all are. */
static int64_t first_damage(const struct at_buffer *buffer, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at++) {
        for (uint64_t word; is_word(at, end); at += WORD) {
            memcpy(&word, buffer->base + at, WORD);
            if (word != guard_word(buffer->seed, at))
                break;
        }
        if (at < end && buffer->base[at] != guard_byte(buffer->seed, at))
            return at;
    }
    return -1;
}

int at_buffer_damaged(const struct at_buffer *buffer, int *i, int64_t *distance) {
    for (int k = 0; k < buffer->n; k++) {
        const struct at_placed *placed = &buffer->placed[k];
        int64_t back = placed->offset + placed->bytes;
        int64_t back_end, front = bands(placed, &back_end);
        int64_t at = first_damage(buffer, front, placed->offset);
        int64_t from = placed->offset;
        if (at < 0) {
            at = first_damage(buffer, back, back_end);
            from = back;
        }
        if (at >= 0) {
            *i = k;
            *distance = at - from;
            return 1;
        }
    }
    const struct at_placed *last = buffer->n ? &buffer->placed[buffer->n - 1] : NULL;
    const int64_t at = last ? first_damage(buffer, buffer->used - buffer->fence, buffer->used) : -1;
    if (at < 0)
        return 0;
    *i = buffer->n - 1;
    *distance = at - (last->offset + last->bytes);
    return 1;
}

/* A payload of `bits` bits that is neither all zeros nor all ones: those are the NaNs that x86 and
 * CUDA compute. */
static uint64_t payload(uint64_t seed, int bits) {
    uint64_t choices = ((uint64_t)1 << bits) - 2;
    return 1 + mix(seed) % choices;
}

uint64_t at_mark_code(enum at_format format, uint64_t seed) {
    switch (format) {
    case AT_F64:
        return 0x7ff8000000000000u | payload(seed, 51);
    case AT_F32:
        return 0x7fc00000u | payload(seed, 22);
    case AT_TF32:
        return 0x7fc00000u | payload(seed, 9) << 13;
    case AT_F16:
        return 0x7e00u | payload(seed, 9);
    case AT_BF16:
        return 0x7fc0u | payload(seed, 6);
    case AT_E4M3:
    case AT_E5M2:
        return 0x7fu;
    default:
        return 0xa5a5a5a5u; /* i32 has no NaN: a length or page nobody has */
    }
}

void at_mark_fill(const struct at_tensor *tensor, uint64_t seed) {
    at_fill_code(tensor->format, tensor->data, 0, (size_t)at_tensor_count(tensor), at_mark_code(tensor->format, seed));
}

int64_t at_mark_count(const struct at_tensor *tensor, uint64_t seed, int64_t *first) {
    uint64_t mark = at_mark_code(tensor->format, seed);
    int64_t n = at_tensor_count(tensor), count = 0;
    for (int64_t i = 0; i < n; i++)
        if (at_load_code(tensor->format, tensor->data, (size_t)i) == mark && count++ == 0)
            *first = i;
    return count;
}

/* The length goes in last, so that trailing zeros count. */
uint64_t at_hash_bytes(const void *data, size_t n, uint64_t start) {
    const uint8_t *bytes = data;
    uint64_t hash = start;
    size_t i = 0;
    for (; i + WORD <= n; i += WORD)
        hash = hash_word(hash, word_at(bytes + i, WORD));
    if (i < n)
        hash = hash_word(hash, word_at(bytes + i, n - i));
    return mix(hash ^ (uint64_t)n * 0x9e3779b97f4a7c15u);
}
