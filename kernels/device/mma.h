/* Accumulators of mma.sync, 16 rows by 8 columns, in f32 or in f16.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The elements of a lane 4 g + t: 0 and 1 in row g, 2 and 3 in row g + 8; columns 2 t and 2 t + 1 of each. */
#ifndef AT_DEVICE_MMA_H
#define AT_DEVICE_MMA_H

#include "attest/numerics.h"
#include "kernels/device/device.h"

/* Two elements unchanged in one register, the first in the lower half. */
template <class T> __device__ uint32_t at_pair(T low, T high) { return low.bits | (uint32_t)high.bits << 16; }

/* Two numbers rounded to T in one register, the first in the lower half. */
template <class T> __device__ uint32_t at_pack(float low, float high) {
    return at_pair(at_round_to<T>(low), at_round_to<T>(high));
}

struct at_sum_f32 {
    float x[4] = {};

    template <class T> __device__ void add(const uint32_t (&a)[4], const uint32_t (&b)[2]) {
        at_mma_16816(x, a, b, x, T{});
    }
    template <class T> __device__ void add(const uint32_t (&a)[2], const uint32_t (&b)[1]) {
        at_mma_1688(x, a, b, x, T{});
    }
    __device__ float operator[](int i) const { return x[i]; }
    __device__ void scale(float factor, int row) {
        for (int i = 2 * row; i < 2 * row + 2; i++)
            x[i] *= factor;
    }
    /* Copies row g (row = 0) or g + 8 (row = 1) from another sum. */
    __device__ void take(const at_sum_f32 &from, int row) {
        for (int i = 2 * row; i < 2 * row + 2; i++)
            x[i] = from.x[i];
    }
};

/* Sums in f16. GUARD, an at_guard of attest/numerics.h, says what becomes of a sum that overflowed in a step, or with
 * AT_GUARD_SCORE by the time it is read. (Source 004 replaces an infinity by 65500, which is 65504 in f16.) */
template <int GUARD> struct at_sum_f16 {
    uint32_t x[2] = {};

    __device__ static uint32_t guarded(uint32_t bits) {
        const uint32_t size = bits & 0x7fffu;
        if (GUARD == AT_GUARD_NAN_SAFE && size > 0x7c00u)
            return 0;
        return size == 0x7c00u ? (bits & 0x8000u) | 0x7bffu : bits;
    }
    template <class T> __device__ void add(const uint32_t (&a)[4], const uint32_t (&b)[2]) {
        at_mma_16816(x, a, b, x, T{});
        if (GUARD != AT_GUARD_NONE && GUARD != AT_GUARD_SCORE)
            for (int i = 0; i < 2; i++)
                x[i] = guarded(x[i] & 0xffffu) | guarded(x[i] >> 16) << 16;
    }
    __device__ float operator[](int i) const {
        const uint32_t bits = x[i / 2] >> 16 * (i % 2) & 0xffffu;
        return at_float(at_f16{ (uint16_t)(GUARD == AT_GUARD_SCORE ? guarded(bits) : bits) });
    }
    /* A product rounded once to f16: where the f32 product is inexact it is first rounded to odd, so that the second
     * rounding gives what one rounding of the exact product would. */
    __device__ static uint32_t scaled(uint32_t bits, float factor) {
        const float old = at_float(at_f16{ (uint16_t)bits }), product = old * factor,
                    lost = fmaf(old, factor, -product);
        uint32_t odd;
        memcpy(&odd, &product, sizeof odd);
        if (lost < 0.0f || lost > 0.0f) /* not for an infinity */
            odd = (odd - ((lost < 0.0f) != (product < 0.0f))) | 1u;
        float value;
        memcpy(&value, &odd, sizeof value);
        return at_round_to<at_f16>(value).bits;
    }
    __device__ void scale(float factor, int row) {
        x[row] = scaled(x[row] & 0xffffu, factor) | scaled(x[row] >> 16, factor) << 16;
    }
    __device__ void take(const at_sum_f16 &from, int row) { x[row] = from.x[row]; }
};

#endif
