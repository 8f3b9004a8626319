/* Sums over groups of neighbouring lanes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_GROUP_H
#define AT_DEVICE_GROUP_H

#include "kernels/device/device.h"

/* The lanes of this lane's group of GROUP neighbours, a power of two, at most 32. */
template <int GROUP> __device__ uint32_t at_group_mask() {
    return 0xffffffffu >> (32 - GROUP) << (at_lane() / GROUP * GROUP);
}

/* The sum of what the lanes of a group hold, for all of them: a butterfly over the group's own lanes, because groups of
 * a warp may have different trip counts. */
template <int GROUP> __device__ float at_group_sum(float sum) {
    const uint32_t mask = at_group_mask<GROUP>();
    for (int with = GROUP / 2; with > 0; with /= 2)
        sum += at_shuffle_xor(mask, sum, with);
    return sum;
}

/* The largest of them, likewise; NaNs give way to numbers. */
template <int GROUP> __device__ float at_group_max(float most) {
    const uint32_t mask = at_group_mask<GROUP>();
    for (int with = GROUP / 2; with > 0; with /= 2)
        most = fmaxf(most, at_shuffle_xor(mask, most, with));
    return most;
}

#endif
