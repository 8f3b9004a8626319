/* The online softmax of the persistent prefill kernels: 128 keys a step, by the special-function unit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SOFTMAX_PREFILL_WEIGHTS_H
#define AT_SOFTMAX_PREFILL_WEIGHTS_H

#include "kernels/attention/prefill_persistent.h"
#include "kernels/attention/softmax_mma.h"

/* Weights of prefill_consume.h. Hidden scores are -infinity before the maximum is taken, so that packed P needs no mask. */
template <class T> struct at_softmax_prefill_weights {
    using exponential = at_softmax_ex2<AT_DIVIDE_RCP_APPROX_FTZ>;
    using told = at_prefill_part;
    struct result {
        float divisor[2]; /* what sums are multiplied by; 0 where a row sees no key */
        __device__ float of(float sum, int half) const { return exponential::quotient(sum, divisor[half]); }
    };
    static constexpr bool ONLINE = true;
    const at_softmax_view<T> &a;
    at_online_rows<exponential> rows;
    float factor[2];

    __device__ explicit at_softmax_prefill_weights(const at_softmax_view<T> &view)
        : a(view), rows(view.scale), factor{ 1.0f, 1.0f } {}
    __device__ static told tell(const at_softmax_view<T> &, const at_prefill_part &part) { return part; }
    __device__ void begin(const told &) { rows = at_online_rows<exponential>(a.scale); }
    template <int N, bool MASKED> __device__ __forceinline__ void take(float (*of)[4], const int (&keys)[2]) {
        float(&s)[N][4] = reinterpret_cast<float(&)[N][4]>(*of);
        if constexpr (MASKED) {
            const int first = 2 * (at_lane() % 4);
            AT_UNROLL
            for (int n = 0; n < N; n++)
                for (int i = 0; i < 4; i++)
                    s[n][i] = 8 * n + first + i % 2 < keys[i / 2] ? s[n][i] : -INFINITY;
        }
        factor[0] = rows.update(s, 0);
        factor[1] = rows.update(s, 1);
    }
    __device__ __forceinline__ void rescale(float (&o)[4]) const {
        for (int i = 0; i < 4; i++)
            o[i] *= factor[i / 2];
    }
    __device__ static void hide(const int (&)[2], uint32_t (*)[4]) {}
    /* Stores the lse, too. */
    __device__ result end(const told &part, int first) const {
        result result;
        AT_UNROLL
        for (int half = 0; half < 2; half++) {
            const int row = first + at_lane() / 4 + 8 * half;
            const float sum = rows.total(half);
            result.divisor[half] = part.visible(row) > 0 ? rows.exp.divisor(sum) : 0.0f;
            if (at_lane() % 4 == 0 && row < part.rows)
                a.lse[(int64_t)(part.token + row) * a.h + part.head] = rows.exp.lse(rows.max[half], sum);
        }
        return result;
    }
};

/* A kind of prefill_items.h. */
template <class Element, int HEAD, int BJ> struct at_softmax_prefill {
    using T = Element;
    using view = at_softmax_view<T>;
    using order = at_prefill_ascending<BJ>;
    using weights = at_softmax_prefill_weights<T>;
    static constexpr int D = HEAD, EARLY = 0;
    static constexpr bool VALUES_FIRST = false;
};

/* Declared numerics, P in format P. */
#define AT_SOFTMAX_PREFILL_NUMERICS(P) AT_SOFTMAX_EX2_NUMERICS(P, AT_PREFILL_KEYS, 0, AT_DIVIDE_RCP_APPROX_FTZ, 0)

/* Reasons to decline other than the format of activations. */
static inline const char *at_softmax_prefill_declines(const struct at_problem *problem) {
    const char *reason = at_prefill_declines(problem);
    return reason ? reason : at_softmax_ex2_declines(problem);
}

#endif
