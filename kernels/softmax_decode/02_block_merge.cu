/* Softmax decode: eight warps share the keys of a query, each with its own online softmax; the block joins their parts.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: unlike 01_naive, a warp takes 64 keys, 32 at a time, one a lane: its maximum, its sum of weights and its
 * sums of weights times V (a chain of fmaf a channel) are rescaled when the second 32 keys raise the maximum. The parts
 * that 64 keys leave are joined in ascending order with weights e^(own maximum - the row's); one division at the end.
 * q.k is one chain of fmaf; exponentials are our own, within one ulp and with the same bits everywhere.
 * Launch: grid (query heads, requests), 256 threads; shared memory 4 (d + 2) bytes for 64 keys; one barrier.
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256; at most 27,712 keys a request when d = 128.
 * Source: 002, optimisation 1. */
#include "kernels/softmax_decode/softmax_split.h"

namespace {

constexpr int RANGE = 64, WARPS = 8;

/* Stores the part that keys [begin, end) leave, by a warp. A lane has channels 2 lane + 64 n and the next. */
template <int D, class T>
__device__ void attend_range(const at_softmax_query<T> &query, int begin, int end, float *part) {
    constexpr int PAIRS = D / 2, OWN = (PAIRS + 31) / 32, AHEAD = 8;
    const int lane = at_lane();
    at_softmax_total all{ -INFINITY, 0.0f };
    float o[OWN][2] = {};
    for (int first = begin; first < end; first += 32) {
        const int own = first + lane, n = end - first < 32 ? end - first : 32;
        const float s = own < end ? query.r(at_chain_by_16(query.q(), query.k(own), D)) : -INFINITY;
        const float max = fmaxf(all.max, at_group_max<32>(s));
        const float factor = at_softmax_factor(all.max, max), weight = at_exp(s - at_softmax_base(max));
        all.max = max;
        all.sum = all.sum * factor + at_group_sum<32>(weight);
        for (int i = 0; i < OWN; i++) {
            o[i][0] *= factor;
            o[i][1] *= factor;
        }
        for (int key = 0; key < n; key += AHEAD) {
            float v[AHEAD][OWN][2] = {}, p[AHEAD];
            for (int j = 0; j < AHEAD; j++) { /* past the end: the last key again */
                const T *from = query.v(first + (key + j < n ? key + j : n - 1));
                p[j] = at_shuffle(0xffffffffu, weight, key + j);
                for (int i = 0; i < OWN; i++)
                    if (lane + 32 * i < PAIRS)
                        at_load_pair(from + 2 * (lane + 32 * i), v[j][i][0], v[j][i][1]);
            }
            for (int j = 0; j < AHEAD && key + j < n; j++)
                for (int i = 0; i < 2 * OWN; i++)
                    o[i / 2][i % 2] = fmaf(p[j], v[j][i / 2][i % 2], o[i / 2][i % 2]);
        }
    }
    for (int i = 0; i < OWN; i++)
        if (lane + 32 * i < PAIRS) {
            part[2 * (lane + 32 * i)] = o[i][0];
            part[2 * (lane + 32 * i) + 1] = o[i][1];
        }
    if (lane == 0) {
        part[D] = all.max;
        part[D + 1] = all.sum;
    }
}

template <class T, int D> __global__ void __launch_bounds__(32 * WARPS, 2) attend(at_softmax_view<T> a) {
    AT_SHARED_DYNAMIC(float, parts);
    const at_softmax_query<T> query(a);
    const int ranges = at_split_ranges<RANGE>(query.keys);
    if (query.absent())
        return;
    for (int i = (int)threadIdx.x / 32; i < ranges; i += WARPS) {
        const int begin = i * RANGE, end = query.keys < begin + RANGE ? query.keys : begin + RANGE;
        attend_range<D>(query, begin, end, parts + i * at_softmax_part(D));
    }
    at_sync();
    at_softmax_join<at_softmax_natural>(query, parts, ranges);
}

int64_t shared(const struct at_sizes *z) {
    return at_split_ranges<RANGE>(z->capacity) * at_softmax_part(z->d) * (int64_t)sizeof(float);
}

const char *supports(const struct at_problem *problem) {
    const char *reason = at_head_size_declines(problem);
    if (!reason)
        reason = at_attention_declines(problem, 0);
    if (!reason && shared(&problem->sizes) > 220 * 1024)
        reason = "a request has more keys than shared memory holds";
    return reason;
}

int launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const dim3 grid{ (unsigned)z->h, (unsigned)z->b, 1 };
    return at_with_head_size(z->d, [=]<int D>() {
        return at_attention_launch(launch, attend<at_f16, D>, attend<at_bf16, D>, grid, 32 * WARPS, shared(z));
    });
}

} // namespace

AT_KERNEL(softmax_decode, 02_block_merge) = {
    .summary = "256 threads over the keys; a warp keeps its own maximum and sums of 64 keys, merged over the block",
    .source = "002",
    /* not tested: block: f32 rescaling is of the size that another right exponential may be off by */
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 1,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .block = 32,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .split = RANGE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
