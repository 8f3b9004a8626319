/* What rope_kv_write kernels share: the tensors of a launch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ROPE_KV_WRITE_STEPS_H
#define AT_ROPE_KV_WRITE_STEPS_H

#include "kernels/rotation/rotation.h"
#include "rope_kv_write/rope_kv_write.h"

/* q, k, v [tokens heads d] and where they go: q_out [tokens h d], the caches [slots hk d]. */
template <class T> struct at_rope_kv_write_tensors {
    const int32_t *positions, *slots;
    const T *q, *k, *v;
    T *q_out, *k_cache, *v_cache;
    int h, hk;

    static at_rope_kv_write_tensors of(const struct at_problem *p) {
        return { at_rope_indices(p, AT_ROPE_KV_WRITE_POSITIONS),
                 at_rope_indices(p, AT_ROPE_KV_WRITE_SLOT_MAPPING),
                 at_activations<T>(p, AT_ROPE_KV_WRITE_Q),
                 at_activations<T>(p, AT_ROPE_KV_WRITE_K),
                 at_activations<T>(p, AT_ROPE_KV_WRITE_V),
                 at_activations<T>(p, AT_ROPE_KV_WRITE_Q_OUT),
                 at_activations<T>(p, AT_ROPE_KV_WRITE_K_CACHE),
                 at_activations<T>(p, AT_ROPE_KV_WRITE_V_CACHE),
                 (int)p->sizes.h,
                 (int)p->sizes.hk };
    }
};

#endif
