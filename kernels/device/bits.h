/* Words of bits.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_low_bits(n)   the n lowest bits set: none where n is below 0, all from 32 on */
#ifndef AT_BITS_H
#define AT_BITS_H

#include "kernels/device/device.h"

#ifdef __CUDACC__
__device__ inline uint32_t at_low_bits(int n) {
    uint32_t bits;
    asm("bmsk.clamp.b32 %0, 0, %1;" : "=r"(bits) : "r"(n > 0 ? n : 0)); /* one instruction: it clamps, too */
    return bits;
}
#else
static inline uint32_t at_low_bits(int n) { return n <= 0 ? 0 : n >= 32 ? 0xffffffffu : (1u << n) - 1; }
#endif

#endif
