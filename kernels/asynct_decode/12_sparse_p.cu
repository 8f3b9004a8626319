/* AsyncT decode: P V walks a list of the keys whose p is not 0, filled by an atomic counter.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 10_q_in_registers up to the gates. A thread whose p is not 0 takes the next place in the list; P V then reads
 * the listed rows of V only.
 *
 * Numerically: unlike 10, P V adds in the order in which threads reached the counter: not declared, and other bits
 * each time (14_sparse_p_ordered keeps the order).
 *
 * Launch: grid (query heads, requests), 128 threads; shared memory 12 bytes a key.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; at most 18,773 keys a request.
 *
 * Source: 000 section 7.4. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 8;

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    AT_SHARED(uint32_t, live);
    const at_decode_query<T> query(a);
    const int keys = query.keys;
    float *p = row + keys;
    int *list = reinterpret_cast<int *>(p + keys);
    if (query.absent())
        return;
    if (threadIdx.x == 0)
        live = 0;
    const at_query_run<D, GROUP> q(query.q());
    at_decode_scores<GROUP>(query, 0, keys, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    at_decode_gates_listed(query, row, 0, 0, keys, p, list, &live);
    at_sync();
    for (int c = (int)threadIdx.x; c < D; c += AT_DECODE_THREADS)
        query.put(c, at_decode_listed(query, p, 0, list, (int)live, c));
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 12); }

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_decode_launch(launch, attend<at_f16, D>, attend<at_bf16, D>, launch->problem->sizes.capacity * 12);
    });
}

} // namespace

AT_KERNEL(asynct_decode, 12_sparse_p) = {
    .summary = "a list of the keys with p != 0, filled by an atomic",
    .source = "000 7.4",
    /* not tested: gamma_on: on p or on the output is one rounding of f32, which a limit does not resolve */
    .numerics = {
        .free_order = 1,
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
        .repeats = 0,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
