/* Rotary position embedding with the write into the cache in one launch, a thread a pair.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32, one rounding an operation: x1 c, x2 s and their difference, x2 c, x1 s and their sum; one rounding to
 * the activations' format. Channels from rot on, and values, are copied.
 * Launch: a thread a pair or a copied channel of a head of q or k, and a thread a channel of v, in blocks of 256; no shared
 * memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 sections 6.9 and 6.10: one node of each layer for both; the kernel is ours. */
#include "kernels/rope_kv_write/rope_kv_write_steps.h"

namespace {

/* Work of a token: pieces of its heads of q, then of k, then channels of v. */
inline __device__ int of_token(const at_rope_head &h, int heads, int kv_heads) {
    return (heads + kv_heads) * h.pieces() + kv_heads * h.d;
}

template <class T, class TABLE>
__global__ void __launch_bounds__(AT_ROPE_THREADS)
    rotate(at_rope_head h, const TABLE *table, at_rope_kv_write_tensors<T> t, int64_t all) {
    const int64_t at = (int64_t)blockIdx.x * AT_ROPE_THREADS + threadIdx.x;
    if (at >= all)
        return;
    const int64_t token = at / of_token(h, t.h, t.hk), slot = t.slots[token];
    const int work = (int)(at % of_token(h, t.h, t.hk)), pieces = h.pieces(), turned = (t.h + t.hk) * pieces;
    const bool is_q = work < t.h * pieces;
    if (!is_q && slot < 0)
        return;
    const int64_t from = token * t.hk * h.d, to = slot * t.hk * h.d;
    if (work >= turned) {
        t.v_cache[to + work - turned] = t.v[from + work - turned];
        return;
    }
    const int head = work / pieces, i = work % pieces;
    float c = 0.0f, s = 0.0f;
    if (i < h.rot / 2) {
        const int64_t row = (int64_t)t.positions[token] * h.rot;
        c = at_float(table[row + i]);
        s = at_float(table[row + h.rot / 2 + i]);
    }
    if (is_q)
        at_rope_piece<false>(h, t.q, t.q_out, (token * t.h + head) * h.d, i, c, s);
    else
        at_rope_piece<false>(h, t.k + from, t.k_cache + to, (int64_t)(head - t.h) * h.d, i, c, s);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_rope_launch(launch, AT_ROPE_KV_WRITE_COS_SIN, [=]<class T, class TABLE>(const TABLE *table) {
        const at_rope_head h = at_rope_head::of(p);
        const auto t = at_rope_kv_write_tensors<T>::of(p);
        const int64_t all = p->sizes.tokens * ((t.h + t.hk) * (h.d - h.rot / 2) + t.hk * h.d);
        return at_rope_threads(launch, all, rotate<T, TABLE>, h, table, t, all);
    });
}

} // namespace

AT_KERNEL(rope_kv_write, 01_thread_per_pair) = {
    .summary = "one launch, a thread a pair",
    .source = "000 6.9, 6.10",
    .numerics = AT_ROPE_NUMERICS(0),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
