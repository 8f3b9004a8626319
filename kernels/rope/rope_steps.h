/* What rope kernels share: the two tensors that are turned.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ROPE_STEPS_H
#define AT_ROPE_STEPS_H

#include "kernels/rotation/rotation.h"
#include "rope/rope.h"

/* One of the two tensors, [tokens heads d]. */
template <class T> struct at_rope_side {
    const T *x;
    T *y;
    int heads;
};

inline const int32_t *at_rope_positions(const struct at_problem *p) { return at_rope_indices(p, AT_ROPE_POSITIONS); }

template <class T> at_rope_side<T> at_rope_q(const struct at_problem *p) {
    return { at_activations<T>(p, AT_ROPE_Q), at_activations<T>(p, AT_ROPE_Q_OUT), (int)p->sizes.h };
}
template <class T> at_rope_side<T> at_rope_k(const struct at_problem *p) {
    return { at_activations<T>(p, AT_ROPE_K), at_activations<T>(p, AT_ROPE_K_OUT), (int)p->sizes.hk };
}

#endif
