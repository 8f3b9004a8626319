/* AsyncT decode: in P V a thread takes two neighbouring channels, read by one load of 32 bits.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 10_q_in_registers up to the gates; d / 2 threads have channels in P V.
 *
 * Numerically: as 10.
 *
 * Launch: grid (query heads, requests), 128 threads; shared memory 8 bytes a key.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; at most 28,160 keys a request.
 *
 * Source: 000 section 7.3: half the threads hide less latency; slower there. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 8;

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    const at_decode_query<T> query(a);
    const int keys = query.keys;
    float *p = row + keys;
    if (query.absent())
        return;
    const at_query_run<D, GROUP> q(query.q());
    at_decode_scores<GROUP>(query, 0, keys, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    at_decode_gates(query, row, 0, 0, keys, p);
    at_sync();
    for (int c = (int)threadIdx.x * 2; c < D; c += AT_DECODE_THREADS * 2) {
        float sum0 = 0.0f, sum1 = 0.0f;
        for (int t = 0; t < keys; t++) {
            if (p[t] == 0.0f)
                continue;
            float v0, v1;
            at_load_pair(query.v(t) + c, v0, v1);
            sum0 = fmaf(p[t], v0, sum0);
            sum1 = fmaf(p[t], v1, sum1);
        }
        query.put(c, sum0);
        query.put(c + 1, sum1);
    }
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 8); }

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_decode_launch(launch, attend<at_f16, D>, attend<at_bf16, D>, launch->problem->sizes.capacity * 8);
    });
}

} // namespace

AT_KERNEL(asynct_decode, 17_two_dims_per_thread_pv) = {
    .summary = "two channels a thread in P.V",
    .source = "000 7.3",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 8,
        .qk_tree = AT_TREE_BUTTERFLY,
        .scale_on = AT_SCALE_ON_SCORE,
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
