/* AsyncT decode with the keys cut into ranges of 256, each by a block of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 02 within a range, which reads K - 1 scores to its left again; the ranges' partial outputs are f32
 * and added in ascending order. Launch: grid (query heads, requests, ranges that the longest request can have), 128
 * threads, shared memory 8 bytes a key of a range and its halo; then grid (query heads, requests), 128 threads. Limits:
 * f16 or bf16; d a multiple of 8. Source: 000 section 5.2. */
#include "kernels/device/asynct.h"
#include "kernels/device/asynct_decode.h"

namespace {

constexpr int THREADS = 128, GROUP = 8, RANGE = 256;

__host__ __device__ inline int ranges_of(int64_t keys) { return (int)((keys + RANGE - 1) / RANGE); }

/* Channels [0, d) of partial `range` of a request's query head. */
template <class T> __device__ float *partial_of(const at_asynct_view<T> &a, float *partials, int ranges, int range) {
    return partials + (((int64_t)blockIdx.y * a.h + blockIdx.x) * ranges + range) * a.d;
}

template <class T> __global__ void __launch_bounds__(THREADS) attend_range(at_asynct_view<T> a, float *partials) {
    AT_SHARED_DYNAMIC(float, row);
    const int head = (int)blockIdx.x, request = (int)blockIdx.y, range = (int)blockIdx.z, thread = (int)threadIdx.x;
    const int token = a.query_start[request], kv_head = head / (a.h / a.hk);
    const int keys = a.seq_lens[request], begin = range * RANGE, end = keys < begin + RANGE ? keys : begin + RANGE;
    if (a.query_start[request + 1] == token || begin >= keys)
        return;
    const int halo = begin < a.n_taps - 1 ? begin : a.n_taps - 1, first = begin - halo;
    const T *q = a.q + ((int64_t)token * a.h + head) * a.d;
    float *p = row + RANGE + a.n_taps;
    for (int t = first + thread / GROUP; t < end; t += THREADS / GROUP) {
        const float s = at_group_dot<GROUP>(q, a.k + a.key(request, t, kv_head), a.d) * a.scale;
        if (thread % GROUP == 0)
            row[t - first] = a.relu_pre ? fmaxf(s, 0.0f) : s;
    }
    at_sync();
    const at_asynct_gate gate = at_asynct_gate::of(a, head);
    for (int t = begin + thread; t < end; t += THREADS)
        p[t - begin] = gate(row + (t - first), t);
    at_sync();
    float *partial = partial_of(a, partials, (int)gridDim.z, range);
    for (int c = thread; c < a.d; c += THREADS) {
        float sum = 0.0f;
        for (int t = begin; t < end; t++)
            sum = fmaf(p[t - begin], at_float(a.v[a.key(request, t, kv_head) + c]), sum);
        partial[c] = sum;
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS) add_ranges(at_asynct_view<T> a, float *partials, int most_ranges) {
    const int head = (int)blockIdx.x, request = (int)blockIdx.y;
    const int token = a.query_start[request], ranges = ranges_of(a.seq_lens[request]);
    if (a.query_start[request + 1] == token)
        return;
    for (int c = (int)threadIdx.x; c < a.d; c += THREADS) {
        float sum = ranges > 0 ? partial_of(a, partials, most_ranges, 0)[c] : 0.0f;
        for (int i = 1; i < ranges; i++)
            sum += partial_of(a, partials, most_ranges, i)[c];
        a.o[((int64_t)token * a.h + head) * a.d + c] = at_round_to<T>(sum);
    }
}

const char *supports(const struct at_problem *problem) {
    return problem->sizes.d % GROUP ? "d is no multiple of 8" : at_asynct_decode_declines(problem, 0);
}

int64_t workspace(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->b * z->h * ranges_of(z->max_sk) * z->d * (int64_t)sizeof(float);
}

template <class T> int launch_as(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const unsigned h = (unsigned)p->sizes.h, b = (unsigned)p->sizes.b, ranges = (unsigned)ranges_of(p->sizes.max_sk);
    const at_asynct_view<T> a = at_asynct_view<T>::of(p);
    float *partials = static_cast<float *>(launch->workspace);
    int code = 0;
    if (b == 0 || p->sizes.tokens == 0)
        return 0;
    if (ranges > 0)
        code = at_launch(attend_range<T>, dim3{ h, b, ranges }, dim3{ THREADS, 1, 1 },
                         (2 * (RANGE + p->sizes.taps)) * (int64_t)sizeof(float), launch->stream, a, partials);
    return code ? code
                : at_launch(add_ranges<T>, dim3{ h, b, 1 }, dim3{ THREADS, 1, 1 }, 0, launch->stream, a, partials,
                            (int)ranges);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? launch_as<at_f16>(launch) : launch_as<at_bf16>(launch);
}

} // namespace

AT_KERNEL(asynct_decode, 07_split_k) = {
    .summary = "ranges of 256 keys, a block each; partial outputs added in order",
    .source = "000 5.2",
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
        .split = RANGE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};
