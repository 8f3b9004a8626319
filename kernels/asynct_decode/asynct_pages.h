/* AsyncT decode by warps that own keys: the filter and the gate on fragments of scores, and a warp's walk over its keys.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ASYNCT_PAGES_H
#define AT_ASYNCT_PAGES_H

#include "kernels/attention/asynct.h"
#include "kernels/attention/warp_pages.h"

/* The gates of a lane's two columns of scores. */
struct at_asynct_pages_gate {
    static constexpr int HELD = 3; /* taps in registers; further ones are read when they are wanted */
    float tap[2][HELD], gamma[2];
    int head[2];
    bool has[2]; /* the column is a head */

    template <class T, class Block>
    __device__ at_asynct_pages_gate(const at_asynct_view<T> &a, const Block &block, const at_pages_lane &lane) {
        AT_UNROLL
        for (int e = 0; e < 2; e++) {
            const int column = 2 * lane.t + e;
            has[e] = column < block.heads;
            head[e] = block.head + (has[e] ? column : 0);
            gamma[e] = a.gamma[head[e]];
            AT_UNROLL
            for (int j = 0; j < HELD; j++)
                tap[e][j] = j < a.n_taps ? a.taps[head[e] * a.n_taps + j] : 0.0f;
        }
    }
    /* p of key t for column e: now[i] is the lane's score of step's key g, before[i] that of the step before. */
    template <class T>
    __device__ float operator()(const at_asynct_view<T> &a, const at_pages_lane &lane, int e, float now, float before,
                                int t) const {
        const bool shrunk = a.pooled && a.shrink && t + 1 < a.n_taps; /* a shorter window has taps of its own */
        float share = 0.0f;
        if (shrunk)
            share = a.sigma[head[e]] / (float)(t + 1);
        float z = (shrunk ? 1.0f - share : tap[e][0]) * now;
        AT_UNROLL
        for (int j = 1; j < HELD; j++)
            if (j < a.n_taps)
                z = fmaf(shrunk ? -share : tap[e][j], earlier(lane, now, before, j), z);
        AT_NO_UNROLL
        for (int j = HELD; j < a.n_taps; j++)
            z = fmaf(shrunk ? -share : a.taps[head[e] * a.n_taps + j], earlier(lane, now, before, j), z);
        return gamma[e] * fmaxf(fminf(fmaxf(z, 0.0f), a.clip_max), a.clip_min);
    }

  private:
    /* The score of the key j before this lane's: four lanes a key, the last keys of the step before in front. */
    static __device__ float earlier(const at_pages_lane &lane, float now, float before, int j) {
        return at_shuffle(0xffffffffu, lane.g >= AT_PAGES_STEP - j ? before : now, at_lane() - 4 * j + 32);
    }
};

/* What the filter reads of q.k. */
template <class T>
__device__ void at_asynct_pages_scores(const at_asynct_view<T> &a, const at_sum_f32 &dots, float (&r)[4]) {
    AT_UNROLL
    for (int i = 0; i < 4; i++) {
        const float s = dots[i] * a.scale;
        r[i] = a.relu_pre ? fmaxf(s, 0.0f) : s;
    }
}

/* A warp's walk over its keys. */
template <class T, int D, int HEADS>
__device__ __forceinline__ void at_asynct_pages(const at_asynct_view<T> &a, const at_pages_shape &shape,
                                                const at_pages_block<T, HEADS> &block,
                                                const at_pages_partials<D, HEADS> &partials) {
    const at_pages_lane lane;
    const int warp = (shape.cluster > 1 ? at_cluster_rank() : 0) * shape.warps + (int)threadIdx.x / 32;
    /* Looked up before the request's length is there: where all are as long as can be, the guess is right. */
    at_pages_first page(a, block.request, at_pages_run::begin_of(shape, warp, 0, shape.range),
                        at_pages_run::begin_of(shape, warp, 1, shape.range));
    const at_asynct_pages_gate gate(a, block, lane);
    const at_pages_run first(block, shape, warp, 0), second(block, shape, warp, 1);
    const int steps = first.steps(), halo = a.n_taps - 1;
    const T *instead = block.q(a, 0); /* read in the place of rows that are not wanted */
    const auto load = [&](at_pages_k<D> &k, const at_pages_run &run, int row, int number, int t, int least) {
        const int64_t place = a.key_of_page(number, t - a.page_of(t) * a.page, block.kv_head);
        const bool wanted = lane.g >= least && t + lane.g < run.end;
        k.load(row, (wanted ? a.k + place + lane.g * a.key_step : instead) + AT_PAGES_EACH * lane.t);
        return a.v + place;
    };
    const at_pages_q<D> q(a, block, lane);
    if (block.range != shape.range && steps > 0)
        page = at_pages_first(a, block.request, first.begin, second.begin);
    at_pages_k<D> k;
    float before[4] = {}, now[4];
    const T *v[2] = {};
    if (steps > 0) {
        at_pages_k<D> behind; /* the keys before the run, whose scores the filter wants */
        const int t0 = first.begin - AT_PAGES_STEP, t1 = second.begin - AT_PAGES_STEP;
        load(behind, first, 0, page.before[0], t0, t0 < 0 ? AT_PAGES_STEP : AT_PAGES_STEP - halo);
        load(behind, second, 1, page.before[1], t1, AT_PAGES_STEP - halo);
        v[0] = load(k, first, 0, page.at[0], first.begin, 0);
        v[1] = load(k, second, 1, page.at[1], second.begin, 0);
        page.at[0] = at_pages_page(a, block.request, first.begin + AT_PAGES_STEP);
        page.at[1] = at_pages_page(a, block.request, second.begin + AT_PAGES_STEP);
        at_asynct_pages_scores(a, behind.template dots<T>(q), before);
        AT_UNROLL
        for (int i = 0; i < 2; i++)
            before[i] = t0 < 0 ? 0.0f : before[i];
    }
    if (shape.cluster > 1)
        at_cluster_wait(); /* every block of the cluster has begun: its shared memory may be written */
    at_pages_sums<D, HEADS> sums;
    int range = (2 * warp + lane.half) * shape.each, left = block.range;
    for (int step = 0; step < steps; step++) {
        const int t0 = first.begin + step * AT_PAGES_STEP, t1 = second.begin + step * AT_PAGES_STEP;
        at_asynct_pages_scores(a, k.template dots<T>(q), now);
        const T *rows = lane.half ? v[1] : v[0];
        if (step + 1 < steps) { /* the next step's K is under way from here on */
            v[0] = load(k, first, 0, page.at[0], t0 + AT_PAGES_STEP, 0);
            v[1] = load(k, second, 1, page.at[1], t1 + AT_PAGES_STEP, 0);
            page.at[0] = at_pages_page(a, block.request, t0 + 2 * AT_PAGES_STEP);
            page.at[1] = at_pages_page(a, block.request, t1 + 2 * AT_PAGES_STEP);
        }
        float p[4];
        AT_UNROLL
        for (int i = 0; i < 4; i++) {
            const int t = (i < 2 ? t0 : t1) + lane.g;
            const float x = gate(a, lane, i % 2, now[i], before[i], t);
            p[i] = gate.has[i % 2] && t < (i < 2 ? first.end : second.end) ? x : 0.0f;
            before[i] = now[i];
        }
        const uint32_t live[2] = { at_ballot(0xffffffffu, p[0] != 0.0f || p[1] != 0.0f),
                                   at_ballot(0xffffffffu, p[2] != 0.0f || p[3] != 0.0f) };
        at_pages_v<T, D> values;
        values.load(rows, a.key_step, instead, lane.half ? live[1] : live[0], lane);
        sums.add(at_pages_weights<HEADS>(p, lane), values, lane);
        left -= AT_PAGES_STEP;
        if (left == 0 || step + 1 == steps) {
            partials.put(range, sums, lane);
            sums.clear();
            range++;
            left = block.range;
        }
    }
}

static inline const char *at_asynct_pages_declines(const struct at_problem *problem) {
    const char *reason = at_pages_declines(problem);
    if (!reason && problem->sizes.taps > AT_PAGES_STEP + 1)
        reason = "more than 9 taps: the filter reaches further back than the step before";
    return reason ? reason : at_asynct_declines(problem, 0);
}

template <int D, int HEADS>
int at_asynct_pages_launch(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>, at_pages_shape),
                           void (*bf16)(at_asynct_view<at_bf16>, at_pages_shape)) {
    const struct at_problem *p = launch->problem;
    const struct at_sizes *z = &p->sizes;
    const at_pages_shape shape = at_pages_shape_of<D, HEADS>(z);
    const int64_t group = z->h / z->hk, parts = (group + HEADS - 1) / HEADS;
    const dim3 grid{ (unsigned)(z->hk * parts * shape.cluster), (unsigned)z->b, 1 },
        threads{ (unsigned)shape.warps * 32, 1, 1 };
    const int64_t shared = at_pages_partials<D, HEADS>::bytes(shape.cluster);
    const auto start = [&](auto kernel, const auto &view) {
        return shape.cluster == 1
                   ? at_launch(kernel, grid, threads, shared, launch->stream, view, shape)
                   : at_launch_cluster(kernel, grid, threads, shape.cluster, shared, launch->stream, view, shape);
    };
    if (z->tokens == 0)
        return 0;
    return p->dtype == AT_F16 ? start(f16, at_asynct_view<at_f16>::of(p)) : start(bf16, at_asynct_view<at_bf16>::of(p));
}

#endif
