/* What kernels of top_k share: the tensors, the draw from a row's ranks, launches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TOP_K_DRAW_STEP_H
#define AT_TOP_K_DRAW_STEP_H

#include "kernels/device/largest.h"
#include "kernels/norm/norm.h"
#include "top_k/top_k.h"

constexpr int AT_TOP_K_WARPS = AT_NORM_THREADS / 32, AT_TOP_K_MAX = 4096;

#define AT_TOP_K_NUMERICS \
    { \
        .qk_unit = AT_UNIT_F32, .qk_lanes = 1, .p = AT_F32, .exp = AT_EXP_EX2_APPROX, .pv_unit = AT_UNIT_F32, \
        .pv_chunk = 1, .repeats = 1, .batch_invariant = 1 \
    }

/* Of a block: its warps' largest, and what they are joined to. */
struct at_top_k_shared {
    uint32_t order[AT_TOP_K_WARPS];
    int index[AT_TOP_K_WARPS];
    at_largest found;
};

template <class T> struct at_top_k_view {
    const T *logits;
    const float *u;
    int32_t *index;
    float *cumulative;
    int vocabulary, kept;
    float factor; /* log2(e) / T */

    static at_top_k_view of(const struct at_problem *p) {
        const struct at_top_k_own z = at_top_k_own_of(p);
        return { at_activations<T>(p, AT_TOP_K_LOGITS),
                 static_cast<const float *>(p->tensors[AT_TOP_K_U].data),
                 static_cast<int32_t *>(p->tensors[AT_TOP_K_INDEX].data),
                 static_cast<float *>(p->tensors[AT_TOP_K_CUMULATIVE].data),
                 (int)z.vocabulary,
                 (int)z.kept,
                 0x1.715476p0f / z.temperature };
    }

    /* By one thread of the row's block: sums over the ranks, whose places are given, and the first above the threshold. */
    __device__ void draw(const T *row, const int *place) const {
        float *c = cumulative + (int64_t)blockIdx.x * kept, sum = 0.0f;
        const float top = at_float(row[place[0]]);
        for (int j = 0; j < kept; j++) {
            const float logit = at_float(row[place[j]]);
            sum += logit == top ? 1.0f : at_ex2_approx((logit - top) * factor);
            c[j] = sum;
        }
        const float threshold = u[blockIdx.x] * sum;
        int j = 0;
        while (top == top && j + 1 < kept && !(c[j] > threshold))
            j++;
        index[blockIdx.x] = place[j];
    }
};

static inline const char *at_top_k_declines(const struct at_problem *problem) {
    return at_top_k_own_of(problem).kept > AT_TOP_K_MAX ? "more than 4096 logits are kept" : nullptr;
}

template <class T> int at_top_k_rows(const struct at_launch *launch, void (*kernel)(at_top_k_view<T>)) {
    const struct at_problem *p = launch->problem;
    return at_launch(kernel, dim3{ (unsigned)p->sizes.tokens, 1, 1 }, dim3{ AT_NORM_THREADS, 1, 1 },
                     at_top_k_own_of(p).kept * (int64_t)sizeof(int), launch->stream, at_top_k_view<T>::of(p));
}

#endif
