/* One tensor-core instruction on patterns of operands: how a pattern becomes fragments, for mma.sync and wgmma alike.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warp takes 8 patterns: pattern g is row g of a, column g of b, and the element (g, g) of c and d; rows 8 to 15 of a
 * are zero. Fragments as kernels/device/device.h has them: a lane is 4 g + t, a register holds N elements. */
#ifndef AT_DEVICE_DOT_PRODUCT_ADD_H
#define AT_DEVICE_DOT_PRODUCT_ADD_H

#include "attest/kernel.h"
#include "dot_product_add/dot_product_add.h"
#include "kernels/device/device.h"

constexpr int AT_DPA_PATTERNS = 8;

struct at_dpa_view {
    int patterns;
    const uint32_t *a, *b;
    const float *c;
    float *d;

    static at_dpa_view of(const struct at_problem *p) {
        const auto words = [p](int t) { return static_cast<const uint32_t *>(p->tensors[t].data); };
        return { (int)p->sizes.tokens, words(AT_DPA_A), words(AT_DPA_B),
                 static_cast<const float *>(p->tensors[AT_DPA_C].data),
                 static_cast<float *>(p->tensors[AT_DPA_D].data) };
    }
};

/* N codes from `from` on, the first in the lowest bits. */
template <int N> __device__ uint32_t at_dpa_pack(const uint32_t *from) {
    uint32_t all = 0;
    for (int j = 0; j < N; j++)
        all |= from[j] << (32 / N * j % 32);
    return all;
}

/* Registers of a and b for this lane's pattern, `first` being that of the warp: K products, N of them a register. */
template <int K, int N, int A> __device__ void at_dpa_load_a(const at_dpa_view &v, int64_t first, uint32_t (&a)[A]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int r = 0; r < A; r++) {
        const bool wanted = r % 2 == 0 && first + g < v.patterns;
        a[r] = wanted ? at_dpa_pack<N>(&v.a[(first + g) * K + N * t + 4 * N * (r / 2)]) : 0;
    }
}
template <int K, int N, int B> __device__ void at_dpa_load_b(const at_dpa_view &v, int64_t first, uint32_t (&b)[B]) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    for (int r = 0; r < B; r++)
        b[r] = first + g < v.patterns ? at_dpa_pack<N>(&v.b[(first + g) * K + N * t + 4 * N * r]) : 0;
}

/* The addend of this lane's pattern, in the lane that holds element (g, g); 0 in the others. */
__device__ inline float at_dpa_addend(const at_dpa_view &v, int64_t first) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    return g / 2 == t && first + g < v.patterns ? v.c[first + g] : 0.0f;
}
__device__ inline void at_dpa_fill(const at_dpa_view &v, int64_t first, float (&c)[4]) {
    const float x = at_dpa_addend(v, first);
    const int odd = at_lane() / 4 % 2;
    c[0] = odd ? 0.0f : x;
    c[1] = odd ? x : 0.0f;
    c[2] = c[3] = 0.0f;
}
__device__ inline void at_dpa_fill(const at_dpa_view &v, int64_t first, uint32_t (&c)[2]) {
    const uint32_t x = at_round_to<at_f16>(at_dpa_addend(v, first)).bits;
    c[0] = x << (at_lane() / 4 % 2 * 16);
    c[1] = 0;
}

__device__ inline void at_dpa_store(const at_dpa_view &v, int64_t first, float x) {
    const int g = at_lane() / 4, t = at_lane() % 4;
    if (g / 2 == t && first + g < v.patterns)
        v.d[first + g] = x;
}
__device__ inline void at_dpa_store(const at_dpa_view &v, int64_t first, const float (&d)[4]) {
    at_dpa_store(v, first, at_lane() / 4 % 2 ? d[1] : d[0]);
}
__device__ inline void at_dpa_store(const at_dpa_view &v, int64_t first, const uint32_t (&d)[2]) {
    at_dpa_store(v, first, at_float(at_f16{ (uint16_t)(d[0] >> (at_lane() / 4 % 2 * 16)) }));
}

/* What a variant has: instructions by name, each with the launch that runs it. */
struct at_dpa_entry {
    const char *instruction;
    int (*launch)(const struct at_launch *);
};
template <int N> const at_dpa_entry *at_dpa_find(const at_dpa_entry (&table)[N], const struct at_problem *p) {
    const struct at_tc_instruction *t = at_dpa_instruction(p);
    for (const at_dpa_entry &entry : table)
        if (strcmp(entry.instruction, t->name) == 0)
            return &entry;
    return nullptr;
}

/* Launches the problem's instruction; without patterns there is nothing to launch. */
template <int N> int at_dpa_launch(const at_dpa_entry (&table)[N], const struct at_launch *launch) {
    return launch->problem->sizes.tokens == 0 ? 0 : at_dpa_find(table, launch->problem)->launch(launch);
}

#endif
