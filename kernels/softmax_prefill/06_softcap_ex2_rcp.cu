/* Softmax prefill with a softcap and ALiBi's biases, plainly: a block for each query head of a token; tanh by ex2 and rcp.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: q.k is one chain of fmaf; a score is cap tanh(y), y = q.k (scale / cap), with tanh(y) by
 * 1 - 2 rcp.approx(1 + ex2.approx(2 log2(e) y)): 2^-21 off, and near 0 much of the result; without a cap q.k scale. The bias
 * comes by one fmaf. The maximum of the row is known before the first exponential, ex2.approx.ftz of (score - maximum)
 * log2(e); 128 partial sums of weights are joined by a butterfly; P.V is one chain of fmaf a channel; one division at the end;
 * lse by lg2.approx.ftz.
 * Launch: grid (query heads, requests, queries of the longest request), 128 threads; shared memory 4 bytes a key. Two
 * barriers.
 * Limits: f16 or bf16; at most 56,320 keys a request.
 * Source: ours; what it can do that the others decline is in 004 3.2. */
#include "kernels/attention/softmax_capped.h"

namespace {

template <class T> __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) attend(at_capped_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    const int request = (int)blockIdx.y, i = (int)blockIdx.z;
    if (a.query_start[request] + i >= a.query_start[request + 1])
        return;
    at_capped_row(at_capped_query<T, at_tanh_by_ex2>(a, (int)blockIdx.x, request, i, a.visible(request, i)), row);
}

const char *supports(const struct at_problem *problem) { return at_attention_sizes_decline(problem, 4, 1); }

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const dim3 grid{ (unsigned)z->h, (unsigned)z->b, (unsigned)z->max_sq };
    return at_attention_launch(launch, attend<at_f16>, attend<at_bf16>, grid, AT_DECODE_THREADS, z->capacity * 4);
}

} // namespace

AT_KERNEL(softmax_prefill, 06_softcap_ex2_rcp) = {
    .summary = "a block a query, softcap and ALiBi, tanh by ex2 and rcp",
    .source = "ours",
    .numerics = AT_CAPPED_NUMERICS(AT_TANH_EX2_RCP),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
