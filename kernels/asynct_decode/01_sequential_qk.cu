/* AsyncT decode: one thread walks the whole dot product of a key.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: q.k a chain of fmaf over d in f32, scale on the score, FIR tap by tap with fmaf, gate by fminf/fmaxf,
 * gamma on p, P in f32; P.V a chain of fmaf over all visible keys, those with p = 0 too.
 * Launch: grid (query heads, requests), 128 threads; shared memory 8 bytes a key.
 * Limits: f16 or bf16; at most 28,160 keys a request.
 * Source: 000 section 1.1. */
#include "kernels/device/asynct.h"
#include "kernels/device/asynct_decode.h"

namespace {

constexpr int THREADS = 128;

template <class T> __global__ void __launch_bounds__(THREADS) attend(at_asynct_view<T> a) {
    AT_SHARED_DYNAMIC(float, row);
    const int head = (int)blockIdx.x, request = (int)blockIdx.y, thread = (int)threadIdx.x;
    const int token = a.query_start[request], group = a.h / a.hk;
    if (a.query_start[request + 1] == token)
        return;
    const int keys = a.seq_lens[request];
    const T *q = a.q + ((int64_t)token * a.h + head) * a.d;
    float *p = row + keys;
    for (int t = thread; t < keys; t += THREADS) {
        const T *k = a.k + a.key(request, t, head / group);
        const float s = at_chain(q, k, a.d) * a.scale;
        row[t] = a.relu_pre ? fmaxf(s, 0.0f) : s;
    }
    at_sync();
    const at_asynct_gate gate = at_asynct_gate::of(a, head);
    for (int t = thread; t < keys; t += THREADS)
        p[t] = gate(row + t, t);
    at_sync();
    for (int c = thread; c < a.d; c += THREADS) {
        float sum = 0.0f;
        for (int t = 0; t < keys; t++)
            sum = fmaf(p[t], at_float(a.v[a.key(request, t, head / group) + c]), sum);
        a.o[((int64_t)token * a.h + head) * a.d + c] = at_round_to<T>(sum);
    }
}

const char *supports(const struct at_problem *problem) { return at_asynct_decode_declines(problem, 8); }

template <class T> int launch_as(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    if (p->sizes.b == 0 || p->sizes.tokens == 0)
        return 0;
    return at_launch(attend<T>, dim3{ (unsigned)p->sizes.h, (unsigned)p->sizes.b, 1 }, dim3{ THREADS, 1, 1 },
                     p->sizes.max_sk * 8, launch->stream, at_asynct_view<T>::of(p));
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? launch_as<at_f16>(launch) : launch_as<at_bf16>(launch);
}

} // namespace

AT_KERNEL(asynct_decode, 01_sequential_qk) = {
    .summary = "one thread per key walks the whole dot product",
    .source = "000 1.1",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 1,
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
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
