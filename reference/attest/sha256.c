/* SHA-256 (FIPS 180-4) of a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/sha256.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 64, BLOCK = 64, WORDS = 8 };

/* The standard's constants are the first 32 fraction bits of square and cube roots of the first primes, which a double has. */
static uint32_t fraction(double x) { return (uint32_t)ldexp(x - floor(x), 32); }

static void constants(uint32_t start[WORDS], uint32_t round[ROUNDS]) {
    for (int n = 0, p = 2; n < ROUNDS; p++) {
        int d = 2;
        while (d * d <= p && p % d != 0)
            d++;
        if (d * d <= p)
            continue;
        if (n < WORDS)
            start[n] = fraction(sqrt(p));
        round[n++] = fraction(cbrt(p));
    }
}

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void digest(uint32_t state[WORDS], const uint32_t round[ROUNDS], const unsigned char *block) {
    uint32_t w[ROUNDS], s[WORDS];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < ROUNDS; i++)
        w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t a = s[0], e = s[4];
        const uint32_t in =
            s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + round[i] + w[i];
        const uint32_t out = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, (WORDS - 1) * sizeof *s);
        s[4] += in;
        s[0] = in + out;
    }
    for (int i = 0; i < WORDS; i++)
        state[i] += s[i];
}

at_status at_sha256_file(const char *path, char hex[AT_SHA256_TEXT]) {
    uint32_t state[WORDS] = { 0 }, round[ROUNDS];
    unsigned char block[2 * BLOCK];
    uint64_t bytes = 0;
    size_t n;
    FILE *file = fopen(path, "re");
    if (!file)
        return AT_FAIL(AT_IO, "cannot read %s: %s", path, strerror(errno));
    constants(state, round);
    while ((n = fread(block, 1, BLOCK, file)) == BLOCK) {
        digest(state, round, block);
        bytes += n;
    }
    const int failed = ferror(file);
    fclose(file);
    if (failed)
        return AT_FAIL(AT_IO, "cannot read %s to its end", path);
    bytes += n;
    /* A bit behind the last byte, zeros, and the number of bits in the last 8 bytes of a block. */
    const size_t end = n + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    memset(block + n, 0, sizeof block - n);
    block[n] = 0x80;
    for (size_t i = 0; i < 8; i++)
        block[end - 1 - i] = (unsigned char)(bytes * 8 >> 8 * i);
    for (size_t at = 0; at < end; at += BLOCK)
        digest(state, round, block + at);
    for (int i = 0; i < WORDS; i++)
        snprintf(hex + 8 * i, 9, "%08x", (unsigned)state[i]);
    return AT_OK;
}
