/* Softmax decode: a block for each page and query head; what pages add to a row is added by atomics.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 03_flash_decoding, nobody keeps a part for each range and joins them: a row has one maximum and one set of sums,
 * which all its pages share. Weights want the maximum first, so a launch finds it by atomics on numbers in the order of
 * their bits; scores wait in memory for the launch that adds. Sums must be 0 before: a kernel of its own clears them.
 *
 * Atomics on global memory take subnormal terms and sums for 0. A channel therefore has two sums: of partial sums from
 * 2^-80 on, which are whole multiples of 2^-103 and stay so, and of smaller ones times 2^80, multiples of 2^-69. The sum of
 * weights is 1 or more, and has one.
 *
 * Numerically: q.k is eight chains of fmaf joined by a butterfly; weights are relative to the row's maximum, as in 01_naive;
 * P.V by one chain of fmaf a channel over a page. The pages' sums, and the warps' sums of weights, are added in f32 in the
 * order in which blocks come, which changes from launch to launch; one fma joins a channel's two sums; one division at the
 * end. Exponentials are our own, within one ulp and with the same bits everywhere.
 * Launch: grid (query heads, requests), 128 threads, to clear; grid (pages that a request can have, query heads, requests),
 * 128 threads, for the scores and their maximum, no barrier; the same grid, 4 bytes of shared memory a key of a page, one
 * barrier, to add; grid (query heads, requests), 128 threads, to divide. Scratch: 4 bytes a query head and key that a
 * request's pages can hold, and 8 (d + 1) bytes for each query head.
 * Limits: f16 or bf16; pages of at most 12,288 keys; d 32, 64, 96, 128 or 256.
 * Source: 003. */
#include "kernels/attention/softmax.h"

namespace {

constexpr int GROUP = 8;
constexpr float SMALL = 0x1p-80f;

/* Numbers as bits whose order is theirs; 0 is below them all. */
inline __device__ uint32_t ordered(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
inline __device__ float number(uint32_t of) {
    const uint32_t bits = of & 0x80000000u ? of & 0x7fffffffu : ~of;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* What blocks share of the rows, each d channels and one: sums of what is SMALL or more, and of the rest divided by SMALL;
 * behind the first the sum of weights, behind the second the maximum. Then scores, [rows, capacity]. */
struct row_sums {
    float *large, *small, *total;
    uint32_t *max;
    float *scores;

    __device__ row_sums(float *workspace, int rows, int row, int d, int capacity)
        : large(workspace + (int64_t)row * 2 * (d + 1)), small(large + d + 1), total(large + d),
          max(reinterpret_cast<uint32_t *>(small + d)),
          scores(workspace + (int64_t)rows * 2 * (d + 1) + (int64_t)row * capacity) {}
    template <class T>
    __device__ row_sums(const at_softmax_query<T> &query, float *workspace, int requests)
        : row_sums(workspace, requests * query.a.h, query.request * query.a.h + query.head, query.a.d,
                   query.a.max_pages * query.a.page) {}
};

/* A page of a row, of a grid (pages, query heads, requests). */
template <class T> struct page_of_row {
    const at_softmax_query<T> query;
    const int begin, end;
    const row_sums row;

    __device__ page_of_row(const at_softmax_view<T> &a, float *workspace)
        : query(a, (int)blockIdx.y, (int)blockIdx.z, a.query_start[blockIdx.z], a.seq_lens[blockIdx.z]),
          begin((int)blockIdx.x * a.page), end(query.keys < begin + a.page ? query.keys : begin + a.page),
          row(query, workspace, (int)gridDim.z) {}
    __device__ bool empty() const { return query.absent() || begin >= end; }
};

template <class T>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) clear(at_softmax_view<T> a, float *workspace) {
    const at_softmax_query<T> query(a);
    const row_sums row(query, workspace, (int)gridDim.y);
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS)
        row.large[c] = row.small[c] = 0.0f;
    if (threadIdx.x == 0) {
        *row.total = 0.0f;
        *row.max = ordered(-INFINITY);
    }
}

template <class T, int D>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    find_maximum(at_softmax_view<T> a, float *workspace) {
    const page_of_row<T> page(a, workspace);
    if (page.empty())
        return;
    const at_query_run<D, GROUP> q(page.query.q());
    float max = -INFINITY;
    for (int t = page.begin + (int)threadIdx.x / GROUP; t < page.end; t += AT_DECODE_THREADS / GROUP) {
        const float score = page.query.r(q.dot(page.query.k(t)));
        max = fmaxf(max, score);
        if (threadIdx.x % GROUP == 0)
            page.row.scores[t] = score;
    }
    max = at_group_max<32>(max);
    if (at_lane() == 0)
        at_atomic_max(page.row.max, ordered(max));
}

template <class T>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    add_values(at_softmax_view<T> a, float *workspace) {
    AT_SHARED_DYNAMIC(float, weights);
    const page_of_row<T> page(a, workspace);
    if (page.empty())
        return;
    const float base = at_softmax_natural::base(number(*page.row.max));
    float total = 0.0f;
    for (int t = page.begin + (int)threadIdx.x; t < page.end; t += AT_DECODE_THREADS) {
        const float weight = at_softmax_natural::weight(page.row.scores[t], base, 0);
        weights[t - page.begin] = weight;
        total += weight;
    }
    total = at_group_sum<32>(total);
    if (at_lane() == 0)
        at_atomic_add(page.row.total, total);
    at_sync();
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS) {
        const float sum = at_decode_every(page.query, weights, page.begin, page.end, c);
        if (fabsf(sum) < SMALL)
            at_atomic_add(page.row.small + c, sum / SMALL);
        else
            at_atomic_add(page.row.large + c, sum);
    }
}

template <class T>
__global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS) divide(at_softmax_view<T> a, float *workspace) {
    const at_softmax_query<T> query(a);
    const row_sums row(query, workspace, (int)gridDim.y);
    if (query.absent())
        return;
    for (int c = (int)threadIdx.x; c < a.d; c += AT_DECODE_THREADS)
        query.put(c, query.keys > 0 ? fmaf(row.small[c], SMALL, row.large[c]) / *row.total : 0.0f);
    if (threadIdx.x == 0)
        query.put_lse(at_softmax_natural::lse(number(*row.max), *row.total));
}

const char *supports(const struct at_problem *problem) {
    const char *reason = at_head_size_declines(problem);
    if (!reason && problem->sizes.page == 0)
        reason = "keys are not in pages";
    /* not reached: no case has pages so long */
    if (!reason && problem->sizes.page > 48 * 1024 / (int64_t)sizeof(float))
        reason = "a page has more keys than shared memory holds";
    return reason ? reason : at_attention_declines(problem, 0);
}

int64_t workspace(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->b * z->h * (z->max_pages * z->page + 2 * (z->d + 1)) * (int64_t)sizeof(float);
}

template <class T, int D> int launch_all(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const dim3 rows{ (unsigned)z->h, (unsigned)z->b, 1 }, block{ AT_DECODE_THREADS, 1, 1 };
    /* Where no request can have a page there is one block, which finds none. */
    const dim3 pages{ (unsigned)(z->max_pages + !z->max_pages), (unsigned)z->h, (unsigned)z->b };
    const auto view = at_softmax_view<T>::of(launch->problem);
    float *workspace = static_cast<float *>(launch->workspace);
    if (z->tokens == 0)
        return 0;
    int code = at_launch(clear<T>, rows, block, 0, launch->stream, view, workspace);
    if (!code)
        code = at_launch(find_maximum<T, D>, pages, block, 0, launch->stream, view, workspace);
    if (!code)
        code =
            at_launch(add_values<T>, pages, block, z->page * (int64_t)sizeof(float), launch->stream, view, workspace);
    return code ? code : at_launch(divide<T>, rows, block, 0, launch->stream, view, workspace);
}

int launch(const struct at_launch *launch) {
    const bool f16 = launch->problem->dtype == AT_F16;
    return at_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return f16 ? launch_all<at_f16, D>(launch) : launch_all<at_bf16, D>(launch);
    });
}

} // namespace

AT_KERNEL(softmax_decode, 05_paged_atomic) = {
    .summary = "a block for each page and query head; a row's maximum and sums by atomics",
    .source = "003",
    /* not tested: pv_unit: one rounding more of each term is less than what a limit leaves to any order */
    .numerics = {
        .free_order = 1,
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 8,
        .qk_tree = AT_TREE_BUTTERFLY,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};
