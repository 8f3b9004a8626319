/* AsyncT decode: a list of the keys whose p is not 0, in ascending order.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 12_sparse_p, a thread finds its place in the list by counting, in ballots, the live keys before its own.
 *
 * Numerically: as 10_q_in_registers: the order of the sum is that of the keys.
 *
 * Launch: grid (query heads, requests), 128 threads; shared memory 12 bytes a key. One barrier for every 128 keys.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; at most 18,773 keys a request.
 *
 * Source: ours. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 8, WARPS = AT_DECODE_THREADS / 32;

/* Gates of keys [0, keys), and the ascending list of those whose p is not 0: how many, for every thread. `live` has a
 * count for every warp, twice: while one half is read the other may be written, so one barrier a step is enough. */
template <class T>
__device__ int list_in_order(const at_decode_query<T> &query, const float *row, float *p, int *list,
                             int (&live)[2][WARPS]) {
    const at_asynct_gate gate = at_asynct_gate::of(query.a, query.head);
    const int thread = (int)threadIdx.x, warp = thread / 32;
    const uint32_t before = (1u << at_lane()) - 1;
    int n = 0, half = 0;
    for (int first = 0; first < query.keys; first += AT_DECODE_THREADS, half ^= 1) {
        const int t = first + thread;
        const float x = t < query.keys ? gate(row + t, t) : 0.0f;
        const uint32_t yes = at_ballot(0xffffffffu, x != 0.0f);
        if (at_lane() == 0)
            live[half][warp] = at_count_ones(yes);
        at_sync();
        int place = n + at_count_ones(yes & before);
        for (int i = 0; i < WARPS; i++) {
            place += i < warp ? live[half][i] : 0;
            n += live[half][i];
        }
        if (x != 0.0f) {
            p[t] = x;
            list[place] = t;
        }
    }
    return n;
}

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    AT_SHARED(int[2][WARPS], live);
    const at_decode_query<T> query(a);
    const int keys = query.keys;
    float *p = row + keys;
    int *list = reinterpret_cast<int *>(p + keys);
    if (query.absent())
        return;
    const at_query_run<D, GROUP> q(query.q());
    at_decode_scores<GROUP>(query, 0, keys, row, [&](int t) { return q.part(query.k(t)); });
    at_sync();
    const int n = list_in_order(query, row, p, list, live);
    at_sync();
    for (int c = (int)threadIdx.x; c < D; c += AT_DECODE_THREADS)
        query.put(c, at_decode_listed(query, p, 0, list, n, c));
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 12); }

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_decode_launch(launch, attend<at_f16, D>, attend<at_bf16, D>, launch->problem->sizes.capacity * 12);
    });
}

} // namespace

AT_KERNEL(asynct_decode, 14_sparse_p_ordered) = {
    .summary = "an ascending list of the keys with p != 0, by ballot and prefix sum",
    .source = "ours",
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
