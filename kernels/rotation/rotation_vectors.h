/* Rotations by accesses of 16 bytes: what kernels that take vectors share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_ROTATION_VECTORS_H
#define AT_DEVICE_ROTATION_VECTORS_H

#include "kernels/rotation/rotation.h"

template <class T> constexpr int AT_ROPE_VECTOR = 16 / (int)sizeof(T);

/* Channels by which a head is done: those of the first half, or all that are rotated; then those that are copied. */
__device__ inline int at_rope_turned_by(const at_rope_head &h) { return h.interleaved ? h.rot : h.rot / 2; }

/* Vectors of a head that are a thread's each. */
template <class T> int at_rope_vectors(const at_rope_head &h) {
    return (h.d - (h.interleaved ? 0 : h.rot / 2)) / AT_ROPE_VECTOR<T>;
}

/* The vector at channel i of the first half, and its like of the second. */
template <class T, class TABLE>
__device__ void at_rope_turn_halves(const at_rope_head &h, const TABLE *row, const T *x, T *y, int i) {
    T a[AT_ROPE_VECTOR<T>], b[AT_ROPE_VECTOR<T>];
    at_load16(&x[i], a);
    at_load16(&x[i + h.rot / 2], b);
    for (int j = 0; j < AT_ROPE_VECTOR<T>; j++) {
        const float c = at_float(row[i + j]), s = at_float(row[h.rot / 2 + i + j]);
        const float first = at_float(a[j]), second = at_float(b[j]);
        a[j] = at_round_to<T>(at_turned<true>(first, c, second, -s));
        b[j] = at_round_to<T>(at_turned<true>(second, c, first, s));
    }
    at_store16(&y[i], a);
    at_store16(&y[i + h.rot / 2], b);
}

/* The vector at channel i, of pairs side by side. */
template <class T, class TABLE>
__device__ void at_rope_turn_neighbours(const at_rope_head &h, const TABLE *row, const T *x, T *y, int i) {
    T a[AT_ROPE_VECTOR<T>];
    at_load16(&x[i], a);
    for (int j = 0; j < AT_ROPE_VECTOR<T>; j += 2) {
        const float c = at_float(row[(i + j) / 2]), s = at_float(row[(h.rot + i + j) / 2]);
        const float first = at_float(a[j]), second = at_float(a[j + 1]);
        a[j] = at_round_to<T>(at_turned<true>(first, c, second, -s));
        a[j + 1] = at_round_to<T>(at_turned<true>(second, c, first, s));
    }
    at_store16(&y[i], a);
}

/* Vector `v` of the head at x, whose token's row of the table is `row`. */
template <class T, class TABLE>
__device__ void at_rope_turn_vector(const at_rope_head &h, const TABLE *row, const T *x, T *y, int v) {
    const int i = v * AT_ROPE_VECTOR<T>;
    if (i >= at_rope_turned_by(h)) {
        const int channel = i - at_rope_turned_by(h) + h.rot;
        T copied[AT_ROPE_VECTOR<T>];
        at_load16(&x[channel], copied);
        at_store16(&y[channel], copied);
    } else if (h.interleaved) {
        at_rope_turn_neighbours(h, row, x, y, i);
    } else {
        at_rope_turn_halves(h, row, x, y, i);
    }
}

inline const char *at_rope_vectors_decline(const struct at_problem *p) {
    const struct at_rope_own own = at_rope_own_of(p);
    const int64_t vector = 16 / (int64_t)at_format_info(p->dtype)->bytes;
    if (p->sizes.d % vector)
        return "d is not whole vectors of 16 bytes";
    if (own.rot % (own.style == AT_ROPE_INTERLEAVED ? vector : 2 * vector))
        return "what is rotated is not whole vectors of 16 bytes";
    return nullptr;
}

#endif
