/* AsyncT prefill: 04 with operands loaded from shared memory without ldmatrix.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04.
 * Launch: as 04.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 000 section 2, whose first version packs operands by hand and whose next one has ldmatrix, as 04 has. A pair
 * of K's channels is one load of 32 bits; a pair of V's keys lies in two rows: two loads of 16 bits. */
#include "kernels/asynct_prefill/asynct_mma.h"

namespace {

/* In the place of at_mma_ldmatrix. */
struct plain_loads {
    template <int STRIDE, class T, class F> static __device__ void by_row(uint32_t (&r)[4], const T *tile, F place) {
        const int g = at_lane() / 4, t = at_lane() % 4;
        for (int m = 0; m < 4; m++)
            r[m] = at_load32(tile + place(m) + g * STRIDE + 2 * t);
    }
    template <int STRIDE, class T, class F> static __device__ void by_column(uint32_t (&r)[4], const T *tile, F place) {
        const int g = at_lane() / 4, t = at_lane() % 4;
        for (int m = 0; m < 4; m++) {
            const T *first = tile + place(m) + 2 * t * STRIDE + g;
            r[m] = first[0].bits | (uint32_t)first[STRIDE].bits << 16;
        }
    }
};

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

} // namespace

AT_KERNEL(asynct_prefill, 07_mma_plain_loads) = {
    .summary = "04 with operands loaded by 32 and 16 bits, without ldmatrix",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = nullptr,
    .launch = at_mma_prefill_launch<at_bf16, 4, at_sum_f32, AT_MMA_KEYS, plain_loads>,
};
