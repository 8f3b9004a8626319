/* max(gate, 0) * up of one element, and what kernels declare of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RECTIFIED_H
#define AT_RECTIFIED_H

#include "kernels/gated/gated.h"

/* A NaN gives way to 0. */
__device__ inline float at_reglu(float g, float up) { return fmaxf(g, 0.0f) * up; }

#define AT_REGLU_NUMERICS(way_with_nan) \
    { \
        .qk_unit = AT_UNIT_F32, .qk_lanes = 1, .p = AT_F32, .clamp = (way_with_nan), .pv_unit = AT_UNIT_F32, \
        .pv_chunk = 1, .repeats = 1, .batch_invariant = 1 \
    }

#endif
