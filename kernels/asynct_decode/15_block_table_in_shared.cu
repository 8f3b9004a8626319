/* AsyncT decode: a request's row of the block table is copied to shared memory first.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Like 10_q_in_registers, but the page of a key is looked up in that copy.
 *
 * Numerically: as 10.
 *
 * Launch: grid (query heads, requests), 128 threads; shared memory 8 bytes a key and 4 bytes a page.
 *
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; paged keys; at most 28,160 keys a request, less 1 for every two
 * pages.
 *
 * Source: 000 section 7.3: the table is short and cached, so that copying it cost more there. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 8;

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    const at_decode_query<T> query(a);
    const int keys = query.keys, thread = (int)threadIdx.x;
    float *p = row + keys;
    int *pages = reinterpret_cast<int *>(p + keys);
    if (query.absent())
        return;
    for (int i = thread; i * a.page < keys; i += AT_DECODE_THREADS)
        pages[i] = a.block_table[(int64_t)query.request * a.max_pages + i];
    at_sync();
    const auto place = [&](int t) {
        return a.key_of_page(pages[a.page_of(t)], t - a.page_of(t) * a.page, query.kv_head);
    };
    const at_query_run<D, GROUP> q(query.q());
    at_decode_scores<GROUP>(query, 0, keys, row, [&](int t) { return q.part(a.k + place(t)); });
    at_sync();
    at_decode_gates(query, row, 0, 0, keys, p);
    at_sync();
    for (int c = thread; c < D; c += AT_DECODE_THREADS) {
        float sum = 0.0f;
        for (int t = 0; t < keys; t++)
            if (p[t] != 0.0f)
                sum = fmaf(p[t], at_float(a.v[place(t) + c]), sum);
        query.put(c, sum);
    }
}

/* Shared memory for the longest request. */
int64_t shared_bytes(const struct at_sizes *z) { return z->capacity * 8 + (z->capacity + z->page - 1) / z->page * 4; }

const char *supports(const struct at_problem *problem) {
    if (problem->sizes.page == 0)
        return "contiguous keys have no block table";
    if (shared_bytes(&problem->sizes) > 220 * 1024)
        return "a request has more keys and pages than shared memory holds";
    return at_asynct_decode_sized_declines(problem, 8);
}

int launch(const struct at_launch *launch) {
    return at_with_head_size(launch->problem->sizes.d, [launch]<int D>() {
        return at_decode_launch(launch, attend<at_f16, D>, attend<at_bf16, D>, shared_bytes(&launch->problem->sizes));
    });
}

} // namespace

AT_KERNEL(asynct_decode, 15_block_table_in_shared) = {
    .summary = "the row of the block table in shared memory",
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
