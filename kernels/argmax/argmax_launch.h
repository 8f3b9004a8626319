/* What kernels of argmax share: their launch, a block a row, and what they declare.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ARGMAX_LAUNCH_H
#define AT_ARGMAX_LAUNCH_H

#include "kernels/device/largest.h"
#include "kernels/norm/norm.h"

#include "argmax/argmax.h" /* which kernels/norm/norm.h has made C */

constexpr int AT_ARGMAX_WARPS = AT_NORM_THREADS / 32;

/* Nothing is rounded. */
#define AT_ARGMAX_NUMERICS \
    { \
        .qk_unit = AT_UNIT_F32, .qk_lanes = 1, .p = AT_F32, .pv_unit = AT_UNIT_F32, .pv_chunk = 1, .repeats = 1, \
        .batch_invariant = 1 \
    }

/* kernel<T>(vocabulary, logits, index) over all rows, of launch's activations. */
template <class T> int at_argmax_rows(const struct at_launch *launch, void (*kernel)(int, const T *, int32_t *)) {
    const struct at_problem *p = launch->problem;
    return at_norm_rows(launch, p->sizes.tokens, kernel, (int)at_argmax_own_of(p).vocabulary,
                        static_cast<const T *>(at_activations<T>(p, AT_ARGMAX_LOGITS)),
                        static_cast<int32_t *>(p->tensors[AT_ARGMAX_INDEX].data));
}

#endif
