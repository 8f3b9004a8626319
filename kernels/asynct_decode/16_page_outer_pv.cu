/* AsyncT decode: P V goes page by page, the page's place looked up once.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 10_q_in_registers up to the gates; P V has a loop over pages and in it one over the keys of the page.
 * Contiguous keys are one page.
 *
 * Numerically: as 10.
 *
 * Launch: grid (query heads, requests), 128 threads; shared memory 8 bytes a key.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; at most 28,160 keys a request.
 *
 * Source: 000 section 7.3: half as fast there; a division by 16 costs less than a loop within a loop. */
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
    const int page = a.page ? a.page : keys;
    const int64_t step = (int64_t)a.hk * D;
    for (int c = (int)threadIdx.x; c < D; c += AT_DECODE_THREADS) {
        float sum = 0.0f;
        for (int first = 0; first < keys; first += page) {
            const T *v = query.v(first) + c;
            const int n = keys - first < page ? keys - first : page;
            for (int i = 0; i < n; i++)
                if (p[first + i] != 0.0f)
                    sum = fmaf(p[first + i], at_float(v[i * step]), sum);
        }
        query.put(c, sum);
    }
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_sized_declines(problem, 8); }

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_decode_launch(launch, attend<at_f16, D>, attend<at_bf16, D>, launch->problem->sizes.capacity * 8);
    });
}

} // namespace

AT_KERNEL(asynct_decode, 16_page_outer_pv) = {
    .summary = "P.V page by page",
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
