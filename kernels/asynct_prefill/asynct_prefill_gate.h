/* The gate of the persistent prefill kernels, on scores in fragments whose keys are permuted.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of a group of 8 BJ keys, lane q of a quad has, of rows g and g + 8, the 2 BJ keys from 2 BJ q on: fragment j has keys 2 j
 * and 2 j + 1 of them. The filter of three taps runs along them within the lane; what the first two need comes from the
 * lane before, and for lane 0 from lane 3 and the group before.
 *
 * p = sat(w2 r2 + (w1 r1 + w0 r0)), w the taps times the scale, r = max(q.k, 0): the scale, which is not negative, passes
 * through the ReLU; keys before the first count as r = 0. */
#ifndef AT_ASYNCT_PREFILL_GATE_H
#define AT_ASYNCT_PREFILL_GATE_H

#include "kernels/asynct_prefill/asynct_prefill_items.h"

template <int BJ> struct at_prefill_gate {
    static constexpr int GROUP = 8 * BJ, RUN = 2 * BJ; /* keys of a group and of a lane's run */
    float tap[AT_PREFILL_TAPS];
    float before[2][2]; /* of rows g and g + 8: the last two r that came from the lane before, the older first */

    __device__ void begin(const at_prefill_part &part) {
        for (int i = 0; i < AT_PREFILL_TAPS; i++)
            tap[i] = part.tap[i];
        for (int half = 0; half < 2; half++)
            before[half][0] = before[half][1] = 0.0f;
    }
    /* The key, counted from the tile's first, of column n of fragment J. */
    __device__ static int key(int J, int n) { return J / BJ * GROUP + n / 2 * RUN + 2 * (J % BJ) + n % 2; }

    /* Scores of N fragments, those of the keys after the last ones, become p. */
    template <int N> __device__ __forceinline__ void take(float (*s)[4]) {
        const int from = (at_lane() & ~3) | ((at_lane() + 3) & 3);
        AT_UNROLL
        for (int begin = 0; begin < N; begin += BJ) {
            AT_UNROLL
            for (int half = 0; half < 2; half++) {
                float(&last)[4] = s[begin + BJ - 1];
                const float older = at_shuffle(0xffffffffu, fmaxf(last[2 * half], 0.0f), from);
                const float newer = at_shuffle(0xffffffffu, fmaxf(last[2 * half + 1], 0.0f), from);
                float r2 = at_lane() % 4 ? older : before[half][0], r1 = at_lane() % 4 ? newer : before[half][1];
                before[half][0] = older;
                before[half][1] = newer;
                AT_UNROLL
                for (int i = 0; i < RUN; i++) {
                    float &x = s[begin + i / 2][2 * half + i % 2];
                    const float r0 = fmaxf(x, 0.0f);
                    x = at_fma_sat(tap[2], r2, fmaf(tap[1], r1, tap[0] * r0));
                    r2 = r1;
                    r1 = r0;
                }
            }
        }
    }

    /* P of 8 steps of 16 keys, or of 4, as operands. */
    template <class T, int STEPS> __device__ __forceinline__ static void pack(const float (*s)[4], uint32_t (*p)[4]) {
        AT_UNROLL
        for (int i = 0; i < STEPS; i++) {
            AT_UNROLL
            for (int r = 0; r < 4; r++) {
                const float(&x)[4] = s[2 * i + r / 2];
                p[i][r] = at_pack<T>(x[2 * (r % 2)], x[2 * (r % 2) + 1]);
            }
        }
    }
    /* Zeros, in 4 steps of 64 keys, for keys that a row does not see: of rows g and g + 8 it sees keys[0] and keys[1] from
     * the first of these steps on. */
    __device__ __forceinline__ static void hide(const int (&keys)[2], uint32_t (*p)[4]) {
        AT_UNROLL
        for (int i = 0; i < AT_PREFILL_HALF / 16; i++) {
            AT_UNROLL
            for (int r = 0; r < 4; r++) {
                const int left = keys[r % 2] - key(2 * i + r / 2, 2 * (at_lane() % 4));
                p[i][r] &= left >= 2 ? 0xffffffffu : left == 1 ? 0xffffu : 0u;
            }
        }
    }
};

#endif
