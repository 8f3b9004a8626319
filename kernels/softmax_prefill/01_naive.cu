/* Softmax prefill, plainly: a block for each query head of a token, its whole row of scores in shared memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: q.k is one chain of fmaf; the maximum of the row is known before the first exponential; exponentials are
 * our own, within one ulp and with the same bits everywhere; P.V is one chain of fmaf a channel; one division at the
 * end.
 * Launch: grid (query heads, requests, queries of the longest request), 128 threads; shared memory 4 bytes a key. Two
 * barriers.
 * Limits: f16 or bf16; at most 56,320 keys a request.
 * Source: ours. */
#include "kernels/attention/softmax.h"

namespace {

template <class T> __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_softmax_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    const int request = (int)blockIdx.y, i = (int)blockIdx.z, token = a.query_start[request] + i;
    if (token >= a.query_start[request + 1])
        return;
    at_softmax_row(at_softmax_query<T>(a, (int)blockIdx.x, request, token, a.visible(request, i)), row);
}

const char *supports(const struct at_problem *problem) { return at_attention_declines(problem, 4, 1); }

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const dim3 grid{ (unsigned)z->h, (unsigned)z->b, (unsigned)z->max_sq };
    return at_attention_launch(launch, attend<at_f16>, attend<at_bf16>, grid, AT_DECODE_THREADS, z->capacity * 4);
}

} // namespace

AT_KERNEL(softmax_prefill, 01_naive) = {
    .summary = "a block a query, whole row of scores, one thread a key",
    .source = "ours",
    /* not tested: block: f32 rescaling is of the size that another right exponential may be off by */
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 1,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
