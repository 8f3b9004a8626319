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

#include "kernels/attention/asynct.h"
#include "kernels/attention/prefill_persistent.h"
#include "kernels/device/bits.h"

constexpr int AT_PREFILL_TAPS = 3;

/* Weights of prefill_consume.h. */
template <class T, int BJ> struct at_prefill_gate {
    using order = at_prefill_runs<BJ>;
    struct told : at_prefill_part {
        float tap[AT_PREFILL_TAPS], gamma; /* the taps times the scale */
    };
    struct result {
        float gamma;
        __device__ float of(float sum, int half) const {
            (void)half;
            return gamma * sum;
        }
    };
    static constexpr bool ONLINE = false;
    static constexpr int RUN = 2 * BJ; /* keys of a lane's run */
    float tap[AT_PREFILL_TAPS];
    float before[2][2]; /* of rows g and g + 8: the last two r that came from the lane before, the older first */

    __device__ explicit at_prefill_gate(const at_asynct_view<T> &) {}
    __device__ __forceinline__ static told tell(const at_asynct_view<T> &a, const at_prefill_part &part) {
        told p{ part, {}, a.gamma[part.head] };
        for (int j = 0; j < AT_PREFILL_TAPS; j++)
            p.tap[j] = a.scale * a.taps[p.head * AT_PREFILL_TAPS + j];
        return p;
    }
    __device__ void begin(const told &part) {
        for (int i = 0; i < AT_PREFILL_TAPS; i++)
            tap[i] = part.tap[i];
        for (int half = 0; half < 2; half++)
            before[half][0] = before[half][1] = 0.0f;
    }
    /* Scores of the N fragments after the last ones become p. */
    template <int N, bool MASKED> __device__ __forceinline__ void take(float (*s)[4], const int (&)[2]) {
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

    /* Zeros, in 4 steps of 64 keys, for keys that a row does not see: of rows g and g + 8 it sees keys[0] and keys[1] from
     * the first of these steps on. */
    __device__ __forceinline__ static void hide(const int (&keys)[2], uint32_t (*p)[4]) {
        AT_UNROLL
        for (int i = 0; i < AT_PREFILL_HALF / 16; i++) {
            AT_UNROLL
            for (int r = 0; r < 4; r++) {
                const int left = keys[r % 2] - order::key(2 * i + r / 2, 2 * (at_lane() % 4));
                p[i][r] &= at_low_bits(16 * left);
            }
        }
    }
    __device__ result end(const told &part, int) const { return { part.gamma }; }
};

/* Kinds of prefill_items.h. */
template <class Element, int HEAD, int BJ, int TURN = 0> struct at_asynct_prefill {
    using T = Element;
    using view = at_asynct_view<T>;
    using order = at_prefill_runs<BJ>;
    using weights = at_prefill_gate<T, BJ>;
    static constexpr int D = HEAD, EARLY = TURN;
    static constexpr bool VALUES_FIRST = BJ < 8;
};
template <class T, int D, int BJ> using at_asynct_prefill_in_time = at_asynct_prefill<T, D, BJ>;
template <class T, int D, int BJ> using at_asynct_prefill_early = at_asynct_prefill<T, D, BJ, 2>;

/* Declared numerics, P in format P. */
#define AT_ASYNCT_PREFILL_NUMERICS(P) \
    { \
        .qk_unit = AT_UNIT_TC_F32, .qk_lanes = 1, .scale_on = AT_SCALE_ON_TAPS, .fir_order = AT_FIR_ORDER_TAPS, \
        .fir_fma = 1, .p = P, .gamma_on = AT_GAMMA_ON_OUTPUT, .clamp = AT_CLAMP_FMINMAX, .pv_unit = AT_UNIT_TC_F32, \
        .pv_chunk = 16, .pv_spread = AT_PREFILL_HALF, .repeats = 1, .batch_invariant = 1, .tail = AT_TAIL_UNREAD, \
        .pv_zero = AT_PV_ZERO_MULTIPLIED, \
    }

/* Reasons to decline other than the format of activations. */
static inline const char *at_asynct_prefill_declines(const struct at_problem *problem) {
    const struct at_params *p = &problem->params;
    if (problem->sizes.taps != AT_PREFILL_TAPS)
        return "a filter of other than 3 taps";
    if (p->edge == AT_EDGE_SHRINK)
        return "a filter with taps of its own at the first keys";
    if (!p->relu_pre || !(p->scale >= 0.0f))
        return "the scale is in the taps, behind a ReLU that does not see it: there must be one, and the scale not "
               "negative";
    if (p->clip_min != 0.0f || p->clip_max != 1.0f)
        return "the gate is an instruction that saturates: from 0 to 1";
    return at_prefill_declines(problem);
}

#endif
