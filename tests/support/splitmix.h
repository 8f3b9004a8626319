/* Splitmix64: random words for tests that draw as they go.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEST_SPLITMIX_H
#define AT_TEST_SPLITMIX_H

#include <stdint.h>

struct splitmix {
    uint64_t state;
};

static inline uint64_t splitmix_next(struct splitmix *random) {
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
