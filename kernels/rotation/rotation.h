/* What kernels with rotary position embedding share: the turn of a pair, how a head's channels lie, and launches by the formats
 * of activations and table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_ROTATION_H
#define AT_DEVICE_ROTATION_H

#include "kernels/norm/norm.h"
#include "rotation/rotation.h"

constexpr int AT_ROPE_THREADS = 256;

/* Pairs of a head, and the channels from rot on, which are copied. */
struct at_rope_head {
    int d, rot, interleaved;

    static at_rope_head of(const struct at_problem *p) {
        const struct at_rope_own own = at_rope_own_of(p);
        return { (int)p->sizes.d, (int)own.rot, own.style == AT_ROPE_INTERLEAVED };
    }
    __device__ int first(int pair) const { return interleaved ? 2 * pair : pair; }
    __device__ int second(int pair) const { return interleaved ? 2 * pair + 1 : pair + rot / 2; }
    /* A pair or a copied channel is a piece of work; the pairs come first. */
    __device__ int pieces() const { return d - rot / 2; }
};

/* x c + y s: the product with s is rounded first. FUSED: the other one and the sum are one fmaf. */
template <bool FUSED> __device__ float at_turned(float x, float c, float y, float s) {
    const float other = y * s;
    return FUSED ? fmaf(x, c, other) : x * c + other;
}

/* Piece i of the head at `head`. c and s are of the piece's pair; of no meaning for a copied channel. */
template <bool FUSED, class T>
__device__ void at_rope_piece(const at_rope_head &h, const T *x, T *y, int64_t head, int i, float c, float s) {
    if (i >= h.rot / 2) {
        const int64_t at = head + h.rot / 2 + i;
        y[at] = x[at];
        return;
    }
    const int64_t first = head + h.first(i), second = head + h.second(i);
    const float a = at_float(x[first]), b = at_float(x[second]);
    y[first] = at_round_to<T>(at_turned<FUSED>(a, c, b, -s));
    y[second] = at_round_to<T>(at_turned<FUSED>(b, c, a, s));
}

/* A tensor of indices. */
inline const int32_t *at_rope_indices(const struct at_problem *p, int tensor) {
    return static_cast<const int32_t *>(p->tensors[tensor].data);
}

/* f.operator()<T, TABLE>(table) for the formats of the problem's activations and of its table, a tensor. */
template <class F> int at_rope_launch(const struct at_launch *launch, int table, F f) {
    const struct at_problem *p = launch->problem;
    const bool is_f32 = at_rope_own_of(p).table == AT_ROPE_TABLE_F32;
    return at_norm_launch(launch, [=]<class T>() {
        return is_f32 ? f.template operator()<T, float>(at_activations<float>(p, table))
                      : f.template operator()<T, T>(at_activations<T>(p, table));
    });
}

/* A thread for each of n. */
template <class... P, class... A>
int at_rope_threads(const struct at_launch *launch, int64_t n, void (*kernel)(P...), A... args) {
    const int64_t blocks = (n + AT_ROPE_THREADS - 1) / AT_ROPE_THREADS;
    return at_launch(kernel, dim3{ (unsigned)blocks, 1, 1 }, dim3{ AT_ROPE_THREADS, 1, 1 }, 0, launch->stream, args...);
}

/* What a variant declares. */
#define AT_ROPE_NUMERICS(fused) \
    { \
        .qk_unit = AT_UNIT_F32, .qk_lanes = 1, .fir_fma = (fused), .p = AT_F32, .pv_unit = AT_UNIT_F32, .pv_chunk = 1, \
        .repeats = 1, .batch_invariant = 1 \
    }

#endif
