/* Rotary position embedding of q and k in one launch, a block a token.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_16_bytes: f32, fmaf(x1, c, -(x2 s)) and fmaf(x2, c, x1 s), the product with the sine rounded; one
 * rounding to the activations' format. Channels from rot on are copied.
 * Launch: a block of 256 threads a token. Its row of the table goes to shared memory once, as f32, and all heads of q and of
 * k take it from there, a pair or a copied channel a thread in turn; one barrier.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 sections 6.9 and 7.1: a layer has one node for this, not one a tensor; the kernel is ours. */
#include "kernels/rope/rope_steps.h"

namespace {

template <class T, class TABLE>
__global__ void __launch_bounds__(AT_ROPE_THREADS)
    rotate(at_rope_head h, const int32_t *positions, const TABLE *table, at_rope_side<T> q, at_rope_side<T> k) {
    AT_SHARED_DYNAMIC(float, row);
    const int64_t token = blockIdx.x, from = (int64_t)positions[token] * h.rot;
    for (int i = (int)threadIdx.x; i < h.rot; i += AT_ROPE_THREADS)
        row[i] = at_float(table[from + i]);
    at_sync();
    const int pieces = h.pieces();
    for (int at = (int)threadIdx.x; at < (q.heads + k.heads) * pieces; at += AT_ROPE_THREADS) {
        const int head = at / pieces, i = at % pieces;
        const bool turns = i < h.rot / 2;
        const float c = turns ? row[i] : 0.0f, s = turns ? row[h.rot / 2 + i] : 0.0f;
        if (head < q.heads)
            at_rope_piece<true>(h, q.x, q.y, (token * q.heads + head) * h.d, i, c, s);
        else
            at_rope_piece<true>(h, k.x, k.y, (token * k.heads + head - q.heads) * h.d, i, c, s);
    }
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_rope_launch(launch, AT_ROPE_COS_SIN, [=]<class T, class TABLE>(const TABLE *table) {
        const at_rope_head h = at_rope_head::of(p);
        return at_launch(rotate<T, TABLE>, dim3{ (unsigned)p->sizes.tokens, 1, 1 }, dim3{ AT_ROPE_THREADS, 1, 1 },
                         h.rot * sizeof(float), launch->stream, h, at_rope_positions(p), table, at_rope_q<T>(p),
                         at_rope_k<T>(p));
    });
}

} // namespace

AT_KERNEL(rope, 03_block_per_token) = {
    .summary = "q and k in one launch, a block a token",
    .source = "000 6.9, 7.1",
    .numerics = AT_ROPE_NUMERICS(1),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
