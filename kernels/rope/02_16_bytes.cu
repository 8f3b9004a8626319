/* Rotary position embedding by accesses of 16 bytes, a launch for each tensor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_thread_per_pair, but that the product with the cosine and the sum are one fmaf: fmaf(x1, c, -(x2 s))
 * and fmaf(x2, c, x1 s), the product with the sine rounded; one rounding to the activations' format. Channels from rot on
 * are copied.
 * Launch: a thread a vector, in blocks of 256; q, then k; no shared memory. half_split: a thread takes a vector of each
 * half, whose elements are pairs across; interleaved: one vector, whose neighbours are pairs. A copied vector is a thread's,
 * too.
 * Limits: activations f32, f16 or bf16; what is rotated (half_split: each half of it) and d are whole vectors.
 * Source: ours. */
#include "kernels/rope/rope_steps.h"
#include "kernels/rotation/rotation_vectors.h"

namespace {

template <class T, class TABLE>
__global__ void __launch_bounds__(AT_ROPE_THREADS) rotate(at_rope_head h, const int32_t *positions, const TABLE *table,
                                                          at_rope_side<T> side, int vectors, int64_t all) {
    const int64_t at = (int64_t)blockIdx.x * AT_ROPE_THREADS + threadIdx.x;
    if (at >= all)
        return;
    const int64_t head = at / vectors;
    const TABLE *row = table + (int64_t)positions[head / side.heads] * h.rot;
    at_rope_turn_vector(h, row, side.x + head * h.d, side.y + head * h.d, (int)(at % vectors));
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_rope_launch(launch, AT_ROPE_COS_SIN, [=]<class T, class TABLE>(const TABLE *table) {
        const at_rope_head h = at_rope_head::of(p);
        const auto turn = [=](const at_rope_side<T> &side) {
            const int vectors = at_rope_vectors<T>(h);
            const int64_t all = p->sizes.tokens * side.heads * vectors;
            return at_rope_threads(launch, all, rotate<T, TABLE>, h, at_rope_positions(p), table, side, vectors, all);
        };
        const int code = turn(at_rope_q<T>(p));
        return code ? code : turn(at_rope_k<T>(p));
    });
}

} // namespace

AT_KERNEL(rope, 02_16_bytes) = {
    .summary = "accesses of 16 bytes; q, then k",
    .source = "ours",
    .numerics = AT_ROPE_NUMERICS(1),
    .supports = at_rope_vectors_decline,
    .workspace = nullptr,
    .launch = launch,
};
