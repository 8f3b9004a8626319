/* Decode by warps that own keys: a warp's walk over them, and the launch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_WARP_PAGES_WALK_H
#define AT_WARP_PAGES_WALK_H

#include "kernels/attention/warp_pages.h"

/* A warp's walk over its keys. Op makes weights of dot products and puts sums away:
 *   BEHIND, behind()              whether it wants the dot products of keys before the run, and of how many
 *   begin(dots, first)            those of a step before the run; first: the first half has no keys before its own
 *   weights(x, t, run, sums)      makes weights of the lane's share of dot products, those of the halves' keys t[0] and t[1]
 *                                 on; 0 where there is no head or no such key
 *   end(ranges, sums)             the sums of a range of each half, ranges[0] and ranges[1], are complete */
template <class T, int D, int HEADS, class Op>
__device__ __forceinline__ void at_pages_walk(const at_attention_view<T> &a, const at_pages_shape &shape,
                                              const at_pages_block<T, HEADS> &block, const at_pages_lane &lane,
                                              Op &op) {
    const int warp = (shape.cluster > 1 ? at_cluster_rank() : 0) * shape.warps + (int)threadIdx.x / 32;
    /* Looked up before the request's length is there: where all are as long as can be, the guess is right. */
    at_pages_first page(a, block.request, at_pages_run::begin_of(shape, warp, 0, shape.range),
                        at_pages_run::begin_of(shape, warp, 1, shape.range));
    op.prepare();
    const at_pages_run run[2] = { at_pages_run(block, shape, warp, 0), at_pages_run(block, shape, warp, 1) };
    const int steps = run[0].steps();
    const T *instead = block.q(a, 0); /* read in the place of rows that are not wanted */
    const auto load = [&](at_pages_k<D> &k, int row, int number, int t, int least) {
        const int64_t place = a.key_of_page(number, t - a.page_of(t) * a.page, block.kv_head);
        const bool wanted = lane.g >= least && t + lane.g < run[row].end;
        k.load(row, (wanted ? a.k + place + lane.g * a.key_step : instead) + AT_PAGES_EACH * lane.t);
        return a.v + place;
    };
    const at_pages_q<D> q(a, block, lane);
    if (block.range != shape.range && steps > 0)
        page = at_pages_first(a, block.request, run[0].begin, run[1].begin);
    at_pages_k<D> k;
    const T *v = nullptr; /* the rows of V of the step that is under way, of the lane's half */
    const auto load_both = [&](int t0, int t1) {
        const T *const of[2] = { load(k, 0, page.at[0], t0, 0), load(k, 1, page.at[1], t1, 0) };
        page.at[0] = at_pages_page(a, block.request, t0 + AT_PAGES_STEP);
        page.at[1] = at_pages_page(a, block.request, t1 + AT_PAGES_STEP);
        v = lane.half ? of[1] : of[0];
    };
    if (steps > 0) {
        at_pages_k<D> behind;
        AT_UNROLL
        for (int i = 0; i < 2 && Op::BEHIND; i++) {
            const int t = run[i].begin - AT_PAGES_STEP;
            load(behind, i, page.before[i], t, t < 0 ? AT_PAGES_STEP : AT_PAGES_STEP - op.behind());
        }
        load_both(run[0].begin, run[1].begin);
        if (Op::BEHIND)
            op.begin(behind.template dots<T>(q), run[0].begin == 0);
    }
    if (shape.cluster > 1)
        at_cluster_wait(); /* every block of the cluster has begun: its shared memory may be written */
    at_pages_sums<D, HEADS> sums;
    int range = 2 * warp * shape.each, left = block.range; /* the first half's */
    for (int step = 0; step < steps; step++) {
        const int t[2] = { run[0].begin + step * AT_PAGES_STEP, run[1].begin + step * AT_PAGES_STEP };
        const at_sum_f32 dots = k.template dots<T>(q);
        const T *rows = v;
        if (step + 1 < steps) /* the next step's K is under way from here on */
            load_both(t[0] + AT_PAGES_STEP, t[1] + AT_PAGES_STEP);
        float p[at_pages_share<HEADS>::COUNT];
        at_pages_share<HEADS>::take(dots, lane, p);
        op.weights(p, t, run, sums);
        at_pages_v<T, D> values;
        values.load(rows, a.key_step, instead, at_pages_share<HEADS>::live(p, lane), lane);
        sums.add(p, values, lane);
        left -= AT_PAGES_STEP;
        if (left == 0 || step + 1 == steps) {
            op.end({ range, range + shape.each }, sums);
            sums.clear();
            range++;
            left = block.range;
        }
    }
}

/* Reasons to decline that all kernels on these steps share. */
static inline const char *at_pages_declines(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    if (z->d != 32 && z->d != 64 && z->d != 96 && z->d != 128 && z->d != 256)
        return "d is none of 32, 64, 96, 128, 256";
    return z->page % AT_PAGES_STEP ? "pages do not hold a multiple of 8 keys: a step of a warp lies in one page"
                                   : nullptr;
}

/* Blocks and warps of a row: as many warps as there are ranges for, over several blocks where rows are few. */
template <int D, int HEADS> at_pages_shape at_pages_shape_of(const struct at_sizes *z) {
    constexpr int PROCESSORS = 132; /* the multiprocessors of an H100 or H200 */
    const int64_t group = z->h / z->hk, rows = z->b * z->hk * ((group + HEADS - 1) / HEADS);
    const int64_t ranges = (z->capacity + AT_PAGES_STEP - 1) / AT_PAGES_STEP;
    int warps = 1, cluster = 1;
    while (warps < (rows <= PROCESSORS ? 16 : 8) && 2 * warps < ranges)
        warps *= 2;
    while (cluster < 8 && cluster < warps &&
           (2 * cluster * rows <= PROCESSORS || warps / cluster * 32 > AT_PAGES_THREADS<D, HEADS> ||
            at_pages_partials<D, HEADS>::bytes(cluster) > 220 * 1024))
        cluster *= 2;
    return { warps / cluster, cluster, AT_PAGES_RANGES / 2 / warps, at_pages_range(z->capacity) };
}

/* A kernel on grid (blocks of a cluster x groups of heads, requests), with `more` bytes beside the partial sums. */
template <int D, int HEADS, template <class> class View>
int at_pages_launch(const struct at_launch *launch, void (*f16)(View<at_f16>, at_pages_shape),
                    void (*bf16)(View<at_bf16>, at_pages_shape), int64_t more = 0) {
    const struct at_problem *p = launch->problem;
    const struct at_sizes *z = &p->sizes;
    const at_pages_shape shape = at_pages_shape_of<D, HEADS>(z);
    const int64_t group = z->h / z->hk, parts = (group + HEADS - 1) / HEADS;
    const dim3 grid{ (unsigned)(z->hk * parts * shape.cluster), (unsigned)z->b, 1 },
        threads{ (unsigned)shape.warps * 32, 1, 1 };
    const int64_t shared = at_pages_partials<D, HEADS>::bytes(shape.cluster) + more;
    const auto start = [&](auto kernel, const auto &view) {
        return shape.cluster == 1
                   ? at_launch(kernel, grid, threads, shared, launch->stream, view, shape)
                   : at_launch_cluster(kernel, grid, threads, shape.cluster, shared, launch->stream, view, shape);
    };
    if (z->tokens == 0)
        return 0;
    return p->dtype == AT_F16 ? start(f16, View<at_f16>::of(p)) : start(bf16, View<at_bf16>::of(p));
}

/* f.operator()<D, HEADS>() for the head size and the query heads of a kv head. */
template <class F> int at_pages_with_sizes(const struct at_sizes *z, F f) {
    const int64_t group = z->h / z->hk;
    const auto with_heads = [&]<int D>() {
        return group <= 1   ? f.template operator()<D, 1>()
               : group <= 2 ? f.template operator()<D, 2>()
               : group <= 4 ? f.template operator()<D, 4>()
                            : f.template operator() < D,
               D <= 128 ? 8 : 4 > (); /* d 256: four and four, for want of registers */
    };
    return z->d == 32    ? with_heads.template operator()<32>()
           : z->d == 64  ? with_heads.template operator()<64>()
           : z->d == 96  ? with_heads.template operator()<96>()
           : z->d == 128 ? with_heads.template operator()<128>()
                         : with_heads.template operator()<256>();
}

#endif
