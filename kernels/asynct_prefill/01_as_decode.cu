/* AsyncT prefill as decode: every query token is taken for a request of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A first kernel lists each token's request and how many keys it sees; a second has a block for each token and head,
 * which computes scores, gates and P V with the steps of the decode kernels.
 *
 * Numerically: as asynct_decode/03_pv_zero_skip for each token: q.k is eight chains of fmaf joined by a butterfly, P is
 * f32, keys with p = 0 are left out of P V.
 *
 * Launch: grid (requests), 128 threads, for the list in the workspace; then grid (tokens, query heads), 128 threads;
 * shared memory 8 bytes a key. Workspace: 8 bytes a token.
 *
 * Limits: f16 or bf16; d a multiple of 8; at most 28,160 keys a request.
 *
 * Source: 000 section 1.2: no kernel for prefill had to be written; keys and values are read again for every token. */
#include "kernels/attention/asynct_decode.h"

namespace {

constexpr int GROUP = 8;

/* What a token's query sees: keys [0, keys) of a request. */
struct seen_by_token {
    int request, keys;
};

template <class T>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) list(at_asynct_view<T> a, seen_by_token *seen) {
    const int request = (int)blockIdx.x, first = a.query_start[request], end = a.query_start[request + 1];
    for (int token = first + (int)threadIdx.x; token < end; token += AT_DECODE_THREADS)
        seen[token] = { request, a.visible(request, token - first) };
}

template <class T>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    attend(at_asynct_view<T> a, seen_by_token *seen) {
    AT_SHARED_DYNAMIC(float, row);
    const int token = (int)blockIdx.x, keys = seen[token].keys;
    const at_decode_query<T> query(a, (int)blockIdx.y, seen[token].request, token, keys);
    float *p = row + keys;
    at_decode_scores<GROUP>(query, 0, keys, row,
                            [&](int t) { return at_group_part<GROUP>(query.q(), query.k(t), a.d); });
    at_sync();
    at_decode_gates(query, row, 0, 0, keys, p);
    at_sync();
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS)
        query.put(c, at_decode_live(query, p, 0, keys, c));
}

const char *supports(const struct at_problem *problem) {
    return problem->sizes.d % GROUP ? "d is no multiple of 8" : at_asynct_declines(problem, 8);
}

int64_t workspace(const struct at_problem *problem) {
    return problem->sizes.tokens * (int64_t)sizeof(struct seen_by_token);
}

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const dim3 requests{ (unsigned)z->b, 1, 1 }, rows{ (unsigned)z->tokens, (unsigned)z->h, 1 };
    auto *seen = static_cast<seen_by_token *>(launch->workspace);
    const int code = at_attention_launch(launch, list<at_f16>, list<at_bf16>, requests, AT_DECODE_THREADS, 0, seen);
    return code ? code
                : at_attention_launch(launch, attend<at_f16>, attend<at_bf16>, rows, AT_DECODE_THREADS, z->capacity * 8,
                                      seen);
}

} // namespace

AT_KERNEL(asynct_prefill, 01_as_decode) = {
    .summary = "every query token is taken for a decode request",
    .source = "000 1.2",
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
    .workspace = workspace,
    .launch = launch,
};
