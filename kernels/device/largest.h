/* The largest of a row of values and its place: an order of all values as whole numbers, and reductions over warp and block.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Order: numbers and infinities as they compare, -0 equal to 0, a NaN above all; of equal ones the first place. */
#ifndef AT_DEVICE_LARGEST_H
#define AT_DEVICE_LARGEST_H

#include <string.h>

#include "kernels/device/device.h"

/* The place of x in the order: 1 or more for any value, the same for equal ones. */
__device__ inline uint32_t at_order_of(float x) {
    if (x != x)
        return 0xffffffffu;
    const float y = x == 0.0f ? 0.0f : x;
    uint32_t bits;
    memcpy(&bits, &y, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* A value's place in the order and in its row; order 0: none yet. */
struct at_largest {
    uint32_t order;
    int index;

    __device__ bool is_before(at_largest other) const {
        return order > other.order || (order == other.order && index < other.index);
    }
    __device__ void take(at_largest other) {
        if (other.is_before(*this))
            *this = other;
    }
};

/* The first of what the lanes of a warp hold, for all of them. */
__device__ inline at_largest at_warp_largest(at_largest x) {
    for (int with = 16; with > 0; with /= 2)
        x.take({ at_shuffle_xor(0xffffffffu, x.order, with), at_shuffle_xor(0xffffffffu, x.index, with) });
    return x;
}

/* The first of what the threads of a block of WARPS whole warps hold, for all threads of its first warp. `order` and `index`:
 * shared memory, an entry a warp; one barrier, so that what was in them must have been read before the last one. */
template <int WARPS>
__device__ at_largest at_block_largest(at_largest x, uint32_t (&order)[WARPS], int (&index)[WARPS]) {
    const int warp = (int)threadIdx.x / 32;
    x = at_warp_largest(x);
    if (at_lane() == 0) {
        order[warp] = x.order;
        index[warp] = x.index;
    }
    at_sync();
    if (warp > 0)
        return x;
    return at_warp_largest(at_lane() < WARPS ? at_largest{ order[at_lane()], index[at_lane()] } : at_largest{ 0, 0 });
}

#endif
