/* AsyncT decode: one block for two query heads of a kv head, each key and row of V read once for both.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 03_pv_zero_skip, which has a block for each query head. A row of V is read when either p is not 0, and
 * multiplied for the heads whose p is not 0.
 *
 * Numerically: as 03: the chains of the two heads are interleaved, not mixed.
 *
 * Launch: grid (kv heads, requests, pairs of query heads of a kv head; the last of an odd number is alone), 128
 * threads; shared memory 16 bytes a key.
 *
 * Limits: f16 or bf16; d a multiple of 8; at most 14,080 keys a request.
 *
 * Source: 000 section 5.1: half the blocks with twice the state each, slower there. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 8;

template <class T> __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row0);
    const int thread = (int)threadIdx.x, group = a.h / a.hk;
    const int one = (int)blockIdx.z * 2, two = one + 1 < group ? one + 1 : one;
    const at_decode_query<T> query(a, (int)blockIdx.x * group + one), other(a, (int)blockIdx.x * group + two);
    const int keys = query.keys, run = a.d / GROUP, channel = thread % GROUP * run;
    const bool alone = two == one;
    float *p0 = row0 + keys, *row1 = p0 + keys, *p1 = row1 + keys;
    const T *q0 = query.q() + channel, *q1 = other.q() + channel;
    if (query.absent())
        return;
    for (int t = thread / GROUP; t < keys; t += AT_DECODE_THREADS / GROUP) {
        const T *k = query.k(t) + channel;
        float sum0 = 0.0f, sum1 = 0.0f;
        for (int i = 0; i < run; i++) {
            const float x = at_float(k[i]);
            sum0 = fmaf(at_float(q0[i]), x, sum0);
            sum1 = fmaf(at_float(q1[i]), x, sum1);
        }
        const float r0 = query.r(at_group_sum<GROUP>(sum0)), r1 = query.r(at_group_sum<GROUP>(sum1));
        if (thread % GROUP == 0) {
            row0[t] = r0;
            row1[t] = r1;
        }
    }
    at_sync();
    at_decode_gates(query, row0, 0, 0, keys, p0);
    at_decode_gates(other, row1, 0, 0, keys, p1);
    at_sync();
    for (int c = thread; c < a.d; c += AT_DECODE_THREADS) {
        float sum0 = 0.0f, sum1 = 0.0f;
        for (int t = 0; t < keys; t++) {
            if (p0[t] == 0.0f && p1[t] == 0.0f)
                continue;
            const float x = at_float(query.v(t)[c]);
            if (p0[t] != 0.0f)
                sum0 = fmaf(p0[t], x, sum0);
            if (p1[t] != 0.0f)
                sum1 = fmaf(p1[t], x, sum1);
        }
        query.put(c, sum0);
        if (!alone)
            other.put(c, sum1);
    }
}

const char *supports(const struct at_problem *problem) {
    return problem->sizes.d % GROUP ? "d is no multiple of 8" : at_asynct_declines(problem, 16);
}

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    return at_decode_launch_grid(launch, attend<at_f16>, attend<at_bf16>, z->hk, (z->h / z->hk + 1) / 2,
                                 z->capacity * 16);
}

} // namespace

AT_KERNEL(asynct_decode, 04_gqa_pair) = {
    .summary = "a block takes two query heads of a kv head",
    .source = "000 5.1",
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
