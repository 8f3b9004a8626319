/* Rotary position embedding with the write into the cache in one launch, a block a token, by accesses of 16 bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_thread_per_pair, but that the product with the cosine and the sum are one fmaf: fmaf(x1, c, -(x2 s))
 * and fmaf(x2, c, x1 s), the product with the sine rounded; one rounding to the activations' format. Channels from rot on,
 * and values, are copied.
 * Launch: a block of 256 threads a token. Its row of the table goes to shared memory once, as f32, and the vectors of all
 * heads of q and of k take it from there, a thread each in turn; then those of v. One barrier.
 * Limits: activations f32, f16 or bf16; what is rotated (half_split: each half of it) and d are whole vectors.
 * Source: ours. */
#include "kernels/rope_kv_write/rope_kv_write_steps.h"
#include "kernels/rotation/rotation_vectors.h"

namespace {

template <class T, class TABLE>
__global__ void __launch_bounds__(AT_ROPE_THREADS)
    rotate(at_rope_head h, const TABLE *table, at_rope_kv_write_tensors<T> t, int vectors) {
    AT_SHARED_DYNAMIC(float, row);
    const int64_t token = blockIdx.x, slot = t.slots[token], from = (int64_t)t.positions[token] * h.rot;
    for (int i = (int)threadIdx.x; i < h.rot; i += AT_ROPE_THREADS)
        row[i] = at_float(table[from + i]);
    at_sync();
    const T *x = t.q + token * t.h * h.d;
    T *y = t.q_out + token * t.h * h.d;
    for (int at = (int)threadIdx.x; at < t.h * vectors; at += AT_ROPE_THREADS)
        at_rope_turn_vector(h, row, x + at / vectors * h.d, y + at / vectors * h.d, at % vectors);
    if (slot < 0)
        return;
    x = t.k + token * t.hk * h.d;
    y = t.k_cache + slot * t.hk * h.d;
    for (int at = (int)threadIdx.x; at < t.hk * vectors; at += AT_ROPE_THREADS)
        at_rope_turn_vector(h, row, x + at / vectors * h.d, y + at / vectors * h.d, at % vectors);
    x = t.v + token * t.hk * h.d;
    y = t.v_cache + slot * t.hk * h.d;
    for (int at = (int)threadIdx.x * AT_ROPE_VECTOR<T>; at < t.hk * h.d; at += AT_ROPE_THREADS * AT_ROPE_VECTOR<T>) {
        T copied[AT_ROPE_VECTOR<T>];
        at_load16(&x[at], copied);
        at_store16(&y[at], copied);
    }
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_rope_launch(launch, AT_ROPE_KV_WRITE_COS_SIN, [=]<class T, class TABLE>(const TABLE *table) {
        const at_rope_head h = at_rope_head::of(p);
        return at_launch(rotate<T, TABLE>, dim3{ (unsigned)p->sizes.tokens, 1, 1 }, dim3{ AT_ROPE_THREADS, 1, 1 },
                         h.rot * sizeof(float), launch->stream, h, table, at_rope_kv_write_tensors<T>::of(p),
                         at_rope_vectors<T>(h));
    });
}

} // namespace

AT_KERNEL(rope_kv_write, 02_block_per_token_16_bytes) = {
    .summary = "one launch, a block a token, accesses of 16 bytes",
    .source = "ours",
    .numerics = AT_ROPE_NUMERICS(1),
    .supports = at_rope_vectors_decline,
    .workspace = nullptr,
    .launch = launch,
};
