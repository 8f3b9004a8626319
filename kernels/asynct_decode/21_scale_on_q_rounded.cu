/* AsyncT decode: a scaled q is rounded to its own format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 21_scale_on_q, q goes back to its own 16 bits, as it must where a tensor core is to multiply it
 * (asynct_prefill/23_mma_q_rounded): what that costs by itself. With a scale that is a power of two it costs nothing.
 *
 * Numerically: unlike 21_scale_on_q, the scaled q is rounded to f16 or bf16.
 *
 * Launch: grid (query heads, requests), 128 threads; shared memory 8 bytes a key.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; at most 28,160 keys a request.
 *
 * Source: ours. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 8;

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    const at_decode_scaled_query<T> query(a);
    const int keys = query.keys;
    float *p = row + keys;
    if (query.absent())
        return;
    at_query_run<D, GROUP> q(query.q());
    q.map([&](float x) { return at_float(at_round_to<T>(x * a.scale)); });
    at_decode_scores<GROUP>(query, 0, keys, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    at_decode_gates(query, row, 0, 0, keys, p);
    at_sync();
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS)
        query.put(c, at_decode_live(query, p, 0, keys, c));
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 8); }

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_decode_launch(launch, attend<at_f16, D>, attend<at_bf16, D>, launch->problem->sizes.capacity * 8);
    });
}

} // namespace

AT_KERNEL(asynct_decode, 21_scale_on_q_rounded) = {
    .summary = "q in registers; the scale multiplies q once, rounded to the format of activations",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 8,
        .qk_tree = AT_TREE_BUTTERFLY,
        .scale_on = AT_SCALE_ON_Q_ROUNDED,
        .fir_order = AT_FIR_ORDER_TAPS,
        .fir_fma = 1,
        .p = AT_F32,
        .gamma_on = AT_GAMMA_ON_P,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
