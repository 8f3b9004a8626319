/* Rotary position embedding: a thread a pair, a launch for each tensor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: x1 c, x2 s and their difference, x2 c, x1 s and their sum; one rounding to
 * the activations' format. Channels from rot on are copied.
 * Launch: a thread a pair of a head of a token, and a thread a copied channel, in blocks of 256; q, then k; no shared
 * memory.
 * Limits: activations f32, f16 or bf16.
 * Source: ours. */
#include "kernels/rope/rope_steps.h"

namespace {

template <class T, class TABLE>
__global__ void __launch_bounds__(AT_ROPE_THREADS)
    rotate(at_rope_head h, const int32_t *positions, const TABLE *table, at_rope_side<T> side, int64_t pieces) {
    const int64_t at = (int64_t)blockIdx.x * AT_ROPE_THREADS + threadIdx.x;
    if (at >= pieces)
        return;
    const int64_t head = at / h.pieces();
    const int i = (int)(at % h.pieces());
    float c = 0.0f, s = 0.0f;
    if (i < h.rot / 2) {
        const int64_t row = (int64_t)positions[head / side.heads] * h.rot;
        c = at_float(table[row + i]);
        s = at_float(table[row + h.rot / 2 + i]);
    }
    at_rope_piece<false>(h, side.x, side.y, head * h.d, i, c, s);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_rope_launch(launch, AT_ROPE_COS_SIN, [=]<class T, class TABLE>(const TABLE *table) {
        const at_rope_head h = at_rope_head::of(p);
        const auto turn = [=](const at_rope_side<T> &side) {
            const int64_t pieces = p->sizes.tokens * side.heads * (h.d - h.rot / 2);
            return at_rope_threads(launch, pieces, rotate<T, TABLE>, h, at_rope_positions(p), table, side, pieces);
        };
        const int code = turn(at_rope_q<T>(p));
        return code ? code : turn(at_rope_k<T>(p));
    });
}

} // namespace

AT_KERNEL(rope, 01_thread_per_pair) = {
    .summary = "a thread a pair; q, then k",
    .source = "ours",
    .numerics = AT_ROPE_NUMERICS(0),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
