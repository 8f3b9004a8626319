/* Good files made into damaged ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/damage.h"

#include <stdio.h>
#include <string.h>

/* A number from 0 to n - 1; n > 0. */
static size_t below(struct splitmix *random, size_t n) { return (size_t)(splitmix_next(random) % n); }

static int is_signature(const uint8_t *at) {
    static const char *const all[] = { "\x89HDF", "TREE", "SNOD", "HEAP", "GCOL", "OHDR",
                                       "OCHK",    "FRHP", "FHDB", "BTHD", "BTLF" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (memcmp(at, all[i], 4) == 0)
            return 1;
    return 0;
}

/* Any byte, or one of the REACH behind a signature. */
static size_t place_in(const struct at_bytes *good, struct splitmix *random) {
    enum { REACH = 512, MAX_SIGNATURES = 4096 };
    size_t at[MAX_SIGNATURES], n = 0;
    if (splitmix_next(random) & 1)
        return below(random, good->n);
    for (size_t i = 0; i + 4 <= good->n && n < MAX_SIGNATURES; i += 8) /* all of them lie at multiples of 8 */
        if (is_signature(good->data + i))
            at[n++] = i;
    const size_t place = n ? at[below(random, n)] + below(random, REACH) : below(random, good->n);
    return place < good->n ? place : good->n - 1;
}

static void flip_bits(struct at_bytes *out, struct splitmix *random, char *name) {
    const size_t n = splitmix_next(random) & 1 ? 1 : 1 + below(random, 8);
    size_t place = 0;
    for (size_t i = 0; i < n; i++) {
        place = place_in(out, random);
        out->data[place] ^= (uint8_t)(1u << below(random, 8));
    }
    snprintf(name, AT_DAMAGE_NAME, "%zu bits flipped, one at %zu", n, place);
}

/* Zeros, ones (the address that HDF5 calls undefined) or anything over up to 16 bytes. */
static void overwrite(struct at_bytes *out, struct splitmix *random, char *name) {
    const size_t at = place_in(out, random), n = 1 + below(random, 16), kind = below(random, 3);
    for (size_t i = at; i < at + n && i < out->n; i++)
        out->data[i] = kind == 2 ? (uint8_t)splitmix_next(random) : kind ? 0xff : 0;
    snprintf(name, AT_DAMAGE_NAME, "%zu bytes at %zu overwritten", n, at);
}

static void splice(const struct at_bytes *other, struct at_bytes *out, struct splitmix *random, char *name) {
    const size_t from = below(random, other->n), to = splitmix_next(random) & 1 ? from : below(random, out->n);
    size_t n = 1 + below(random, other->n - from);
    if (splitmix_next(random) & 1 && n > 4096)
        n = 4096; /* a page, as a disk loses it */
    for (size_t i = 0; i < n; i++)
        if (to + i < out->n)
            out->data[to + i] = other->data[from + i];
        else
            at_bytes_add(out, other->data + from + i, 1);
    snprintf(name, AT_DAMAGE_NAME, "%zu bytes of another file at %zu", n, to);
}

void at_damage(const struct at_bytes *good, const struct at_bytes *other, struct splitmix *random, struct at_bytes *out,
               char name[AT_DAMAGE_NAME]) {
    at_bytes_add(out, good->data, good->n);
    switch (below(random, 20)) {
    case 0:
    case 1:
        out->n = below(random, good->n);
        snprintf(name, AT_DAMAGE_NAME, "cut to %zu bytes", out->n);
        break;
    case 2:
    case 3:
        splice(other, out, random, name);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        overwrite(out, random, name);
        break;
    default:
        flip_bits(out, random, name);
    }
}
