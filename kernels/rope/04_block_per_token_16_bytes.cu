/* Rotary position embedding of q and k in one launch, a block a token, by accesses of 16 bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02_16_bytes: f32, fmaf(x1, c, -(x2 s)) and fmaf(x2, c, x1 s), the product with the sine rounded; one
 * rounding to the activations' format. Channels from rot on are copied.
 * Launch: a block of 256 threads a token. Its row of the table goes to shared memory once, as f32, and the vectors of all
 * heads of q and of k (02_16_bytes) take it from there, a thread each in turn; one barrier.
 * Limits: activations f32, f16 or bf16; what is rotated (half_split: each half of it) and d are whole vectors.
 * Source: ours. */
#include "kernels/rope/rope_steps.h"
#include "kernels/rotation/rotation_vectors.h"

namespace {

template <class T, class TABLE>
__global__ void __launch_bounds__(AT_ROPE_THREADS) rotate(at_rope_head h, const int32_t *positions, const TABLE *table,
                                                          at_rope_side<T> q, at_rope_side<T> k, int vectors) {
    AT_SHARED_DYNAMIC(float, row);
    const int64_t token = blockIdx.x, from = (int64_t)positions[token] * h.rot;
    for (int i = (int)threadIdx.x; i < h.rot; i += AT_ROPE_THREADS)
        row[i] = at_float(table[from + i]);
    at_sync();
    const T *x = q.x + token * q.heads * h.d;
    T *y = q.y + token * q.heads * h.d;
    for (int at = (int)threadIdx.x; at < q.heads * vectors; at += AT_ROPE_THREADS)
        at_rope_turn_vector(h, row, x + at / vectors * h.d, y + at / vectors * h.d, at % vectors);
    x = k.x + token * k.heads * h.d;
    y = k.y + token * k.heads * h.d;
    for (int at = (int)threadIdx.x; at < k.heads * vectors; at += AT_ROPE_THREADS)
        at_rope_turn_vector(h, row, x + at / vectors * h.d, y + at / vectors * h.d, at % vectors);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_rope_launch(launch, AT_ROPE_COS_SIN, [=]<class T, class TABLE>(const TABLE *table) {
        const at_rope_head h = at_rope_head::of(p);
        return at_launch(rotate<T, TABLE>, dim3{ (unsigned)p->sizes.tokens, 1, 1 }, dim3{ AT_ROPE_THREADS, 1, 1 },
                         h.rot * sizeof(float), launch->stream, h, at_rope_positions(p), table, at_rope_q<T>(p),
                         at_rope_k<T>(p), at_rope_vectors<T>(h));
    });
}

} // namespace

AT_KERNEL(rope, 04_block_per_token_16_bytes) = {
    .summary = "q and k in one launch, a block a token, accesses of 16 bytes",
    .source = "ours",
    .numerics = AT_ROPE_NUMERICS(1),
    .supports = at_rope_vectors_decline,
    .workspace = nullptr,
    .launch = launch,
};
