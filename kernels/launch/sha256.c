/* SHA-256, its constants computed from the primes that define them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/sha256.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 64, BLOCK = 64, WORDS = 8 };

/* The first 32 bits of the fraction of p's square root (power 2) or cube root (3): the root of p 2^(32 power), bit by bit. */
static uint32_t root_bits(unsigned p, int power) {
    const unsigned __int128 wanted = (unsigned __int128)p << (32 * power);
    uint64_t root = 0;
    for (int bit = 37; bit >= 0; bit--) { /* roots of primes up to 311 are below 2^5 */
        const uint64_t next = root | (uint64_t)1 << bit;
        unsigned __int128 product = (unsigned __int128)next * next;
        if (power == 3)
            product *= next;
        if (product <= wanted)
            root = next;
    }
    return (uint32_t)root;
}

struct state {
    uint32_t constants[ROUNDS], words[WORDS];
};

static void begin(struct state *s) {
    int n = 0;
    for (unsigned p = 2; n < ROUNDS; p++) {
        int is_prime = 1;
        for (unsigned f = 2; f * f <= p; f++)
            is_prime &= p % f != 0;
        if (!is_prime)
            continue;
        if (n < WORDS)
            s->words[n] = root_bits(p, 2);
        s->constants[n++] = root_bits(p, 3);
    }
}

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void take_block(struct state *s, const uint8_t *block) {
    uint32_t w[ROUNDS], v[WORDS];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < ROUNDS; i++)
        w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, s->words, sizeof v);
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t first =
            v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + s->constants[i] + w[i];
        const uint32_t second = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < WORDS; i++)
        s->words[i] += v[i];
}

void at_sha256(const void *data, size_t n, char text[AT_SHA256_TEXT]) {
    struct state s;
    uint8_t last[2 * BLOCK] = { 0 };
    const uint8_t *bytes = (const uint8_t *)data;
    const size_t whole = n / BLOCK * BLOCK, rest = n - whole, padded = rest + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    begin(&s);
    for (size_t at = 0; at < whole; at += BLOCK)
        take_block(&s, bytes + at);
    if (rest)
        memcpy(last, bytes + whole, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[padded - 1 - (size_t)i] = (uint8_t)((uint64_t)n * 8 >> (8 * i));
    for (size_t at = 0; at < padded; at += BLOCK)
        take_block(&s, last + at);
    for (int i = 0; i < WORDS; i++)
        snprintf(text + (size_t)i * 8, 9, "%08x", (unsigned)s.words[i]);
}
