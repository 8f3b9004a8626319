/* Decode by warps that own keys: a warp's walk over them, and the launch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_WARP_PAGES_WALK_H
#define AT_WARP_PAGES_WALK_H

#include "kernels/attention/warp_pages.h"

/* A warp's number among those of its row, and the pages of its lanes' halves, looked up by a guess at
 * their places that is right where all requests are as long as can be. */
struct at_pages_start {
    int warp, half, page, page_behind;

    template <class T>
    __device__ at_pages_start(const at_attention_view<T> &a, const at_pages_shape &shape, const at_pages_lane &lane)
        : warp((int)blockIdx.x * shape.warps + (int)threadIdx.x / 32), half(2 * warp + lane.half) {
        const int t = half * shape.each * shape.range;
        page = at_pages_page(a, (int)blockIdx.z, t);
        page_behind = at_pages_page(a, (int)blockIdx.z, t - AT_PAGES_STEP);
    }
};

/* The kernel behind may begin, and waits here, too, until the kernels before it have ended. Meanwhile the lines in which a
 * request is looked up first are on their way to L2. */
template <class T> __device__ void at_pages_await_turn(const at_attention_view<T> &a, const at_pages_shape &shape) {
    const int request = (int)blockIdx.z, warp = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int column = a.page_of(2 * warp * shape.each * shape.range);
    at_dependency_trigger();
    if (threadIdx.x == 0) {
        at_prefetch_l2(a.query_start + request);
        at_prefetch_l2(a.seq_lens + request);
    }
    if (threadIdx.x % 32 == 0)
        at_prefetch_l2(a.rows + request * a.row_stride + (column < a.row_stride ? column : 0));
    at_dependency_wait();
}

/* A warp's walk over its keys. Op makes weights of dot products and puts sums away:
 *   BEHIND, behind()        whether it wants the dot products of keys before the run, and of how many
 *   begin(dots, first)      those of the step before the run, of the lane's half; first: it has no keys before its own
 *   weights(x, t, end, sums)   makes weights of the lane's share of dot products with the 8 keys from t on; 0 where there
 *                           is no head, and from key `end` on
 *   EVERY                   rows of V are read before it is known who needs them
 *   end(range, sums)        the sums of a range of the lane's half are complete; < 0: it has no keys */
template <class T, int D, int HEADS, class Op>
__device__ __forceinline__ void at_pages_walk(const at_attention_view<T> &a, const at_pages_shape &shape,
                                              const at_pages_block<T, HEADS> &block, const at_pages_start &start,
                                              const at_pages_lane &lane, Op &op) {
    using share = at_pages_share<HEADS>;
    const int warp = start.warp, half = start.half;
    int page = start.page, page_behind = start.page_behind;
    const int run = shape.each * block.range, begin = half * run;
    const int end = begin + run < block.keys ? begin + run : block.keys;
    const int first = 2 * warp * run,
              here = block.keys - first < run ? block.keys - first : run; /* of the first half */
    int steps = here > 0 ? (here + AT_PAGES_STEP - 1) / AT_PAGES_STEP : 0;
    const int channel = at_pages_v<T, D>::channel(lane);
    const T *instead = block.q(a, 0); /* read in the place of rows that are not wanted */
    const at_pages_q<D> q(a, block, lane);
    const auto load_row = [&](at_pages_k<D> &k, int row, int64_t place, int from, int least) {
        const int n = 4 * row + lane.g % 4;
        const bool wanted = n >= least && from + n < end;
        k.load(row, (wanted ? a.k + place + n * a.key_step : instead) + AT_PAGES_EACH * lane.t);
    };
    const auto place_of = [&](int in_page, int from) {
        return a.key_of_page(in_page, from - a.page_of(from) * a.page, block.kv_head);
    };
    const auto load = [&](at_pages_k<D> &k, int in_page, int from) {
        const int64_t place = place_of(in_page, from);
        load_row(k, 0, place, from, 0);
        load_row(k, 1, place, from, 0);
        return a.v + place + channel;
    };
    if (block.range != shape.range && steps > 0) {
        page = at_pages_page(a, block.request, begin);
        page_behind = at_pages_page(a, block.request, begin - AT_PAGES_STEP);
    }
    at_pages_k<D> k;
    const T *v = nullptr; /* the rows of V of the step that is under way */
    int t = begin;
    if (steps > 0) {
        at_pages_k<D> behind;
        if (Op::BEHIND) {
            const int from = t - AT_PAGES_STEP, least = t > 0 ? AT_PAGES_STEP - op.behind() : AT_PAGES_STEP;
            const int64_t place = place_of(page_behind, from);
            load_row(behind, 1, place, from, least);
            if (op.behind() > AT_PAGES_STEP / 2)
                load_row(behind, 0, place, from, least);
            else /* nobody asks for these: anything will do that is there */
                behind.repeat();
        }
        v = load(k, page, t);
        page = at_pages_page(a, block.request, t + AT_PAGES_STEP);
        if (Op::BEHIND)
            op.begin(behind.template dots<T>(q), t == 0);
    }
    if (shape.log_cluster > 0)
        at_cluster_wait(); /* every block of the cluster has begun: its shared memory may be written */
    at_pages_sums<D, HEADS> sums;
    int range = half * shape.each; /* the one in which t lies */
    for (; steps > 0; steps--, t += AT_PAGES_STEP) {
        float p[share::COUNT];
        at_pages_v<T, D> values;
        if constexpr (Op::EVERY)
            values.load(v, a.key_step, instead + channel, [=](int i) { return t + i < end; });
        share::take(k.template dots<T>(q), lane, p);
        const T *rows = v;
        if (steps > 1) { /* the next step's K is under way from here on */
            v = load(k, page, t + AT_PAGES_STEP);
            page = at_pages_page(a, block.request, t + 2 * AT_PAGES_STEP);
        }
        op.weights(p, t, end, sums);
        if constexpr (!Op::EVERY) {
            const uint32_t live = share::live(p, lane);
            values.load(rows, a.key_step, instead + channel, [=](int i) { return share::is_live(live, i); });
        }
        sums.add(p, values);
        if (t + AT_PAGES_STEP == (range + 1) * block.range || steps == 1) {
            op.end(range * block.range < block.keys ? range : -1, sums);
            sums.clear();
            range++;
        }
    }
}

/* Blocks and warps of a row: up to 16 warps with 32 ranges and 128 with 256, as many as there are ranges for and as are
 * at work at a time on a GPU: half as many where a warp has the registers of four heads, but for 256 ranges, which win by it
 * at some shapes and lose at others. Over several blocks where rows are few, and where one has not the room: 16, which is more
 * than a GPU other than Hopper need have, where each has enough to do. Beside the sums a kernel has `more` bytes for each
 * range and head, and for each head.
 *
 * The kernel may begin early where there is a multiprocessor for every block. With several after each other it loses by that
 * (103.3 us for 102.4, 128 requests of 2048 keys), and clusters of 16 are placed worse beside blocks that are still at work
 * (33.0 us for 30.3, softmax, one request of 32768). */
static inline at_pages_shape at_pages_shape_of(const struct at_sizes *z, int log_ranges, int64_t more) {
    constexpr int PROCESSORS = 132; /* the multiprocessors of an H100 or H200 */
    constexpr int MAX_LOG_CLUSTER = 4, SHARED = 227 * 1024;
    const int64_t group = z->h / z->hk;
    const int heads = at_pages_heads(z->d, group), max_warps = at_pages_threads(z->d, heads) / 32;
    const int at_a_time = heads > 2 && log_ranges < 8 ? 8 : 16; /* warps of each */
    const int64_t parts = (group + heads - 1) / heads, rows = z->b * z->hk * parts;
    const int64_t ranges = (z->capacity + AT_PAGES_STEP - 1) / AT_PAGES_STEP;
    const int64_t most = ranges < 1 << log_ranges ? ranges : 1 << log_ranges;
    int warps = 1, log_cluster = 0;
    const auto bytes_in = [&](int log_blocks) {
        const int64_t sums = at_pages_pieces(z->d, heads, log_blocks) * AT_PAGES_EACH * (int64_t)sizeof(float);
        return most * sums + (most + 1) * more * heads;
    };
    const auto bytes = [&] { return bytes_in(log_cluster); };
    /* The sums of 256 ranges have room in 8 blocks whatever the heads are, those of 512 in 16, which want as many warps; where two
     * blocks have none, one is to be larger. */
    const int least = 2 * bytes() <= SHARED ? 4 : bytes_in(3) <= SHARED ? 8 : 64;
    while (4 * warps <= 1 << log_ranges && 2 * warps < ranges && warps < max_warps << MAX_LOG_CLUSTER &&
           (warps < least || 2 * rows * warps <= PROCESSORS * at_a_time))
        warps *= 2;
    /* Of blocks of eight warps of four heads a multiprocessor holds one: clusters of four that want nearly all have to wait. */
    const auto waits = [&] {
        return at_a_time == 8 && log_cluster == 2 && warps >> log_cluster > 4 && rows << log_cluster > PROCESSORS - 12;
    };
    while (log_cluster < MAX_LOG_CLUSTER && warps >> log_cluster > (log_cluster < 3 ? 1 : 4) &&
           (rows << (log_cluster + 1) <= PROCESSORS || warps >> log_cluster > max_warps || bytes() > SHARED || waits()))
        log_cluster++;
    return { .warps = warps >> log_cluster,
             .cluster = 1 << log_cluster,
             .each = ((int)most + 2 * warps - 1) / (2 * warps),
             .log_cluster = log_cluster,
             .group = (int)group,
             .heads = heads,
             .parts = (int)parts,
             .log_ranges = log_ranges,
             .most = (int)most,
             .early = rows << log_cluster <= PROCESSORS && log_cluster < MAX_LOG_CLUSTER,
             .bytes = bytes(),
             .range = at_pages_range((int)z->capacity, log_ranges) };
}

/* Reasons to decline that all kernels on these steps share. */
static inline const char *at_pages_declines(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    if (z->d != 32 && z->d != 64 && z->d != 96 && z->d != 128 && z->d != 256)
        return "d is none of 32, 64, 96, 128, 256";
    if (!AT_ALL_INSTANCES && (z->d != 64 || problem->dtype != AT_BF16))
        return AT_LEFT_OUT;
    return z->page % AT_PAGES_STEP ? "pages do not hold a multiple of 8 keys: a step of a warp lies in one page"
                                   : nullptr;
}

/* kernel.operator()<T>() on grid (blocks of a cluster, groups of heads, requests); more: as above. */
template <template <class> class View, class F>
int at_pages_launch(const struct at_launch *launch, F kernel, int log_ranges, int64_t more) {
    const struct at_problem *p = launch->problem;
    const struct at_sizes *z = &p->sizes;
    const at_pages_shape shape = at_pages_shape_of(z, log_ranges, more);
    const dim3 grid{ (unsigned)shape.cluster, (unsigned)(z->hk * shape.parts), (unsigned)z->b },
        threads{ (unsigned)shape.warps * 32, 1, 1 };
    const auto start = [&]<class T>(const View<T> &view) {
        const auto of = kernel.template operator()<T>();
        return shape.early
                   ? at_launch_dependent(of, grid, threads, shape.cluster, shape.bytes, launch->stream, view, shape)
                   : at_launch_cluster(of, grid, threads, shape.cluster, shape.bytes, launch->stream, view, shape);
    };
    if (z->tokens == 0)
        return 0;
    if constexpr (AT_ALL_INSTANCES)
        if (p->dtype == AT_F16)
            return start(View<at_f16>::of(p));
    return start(View<at_bf16>::of(p));
}

/* f.operator()<D, HEADS>() for the head size and the query heads of a block. */
template <class F> int at_pages_with_sizes(const struct at_sizes *z, F f) {
    const int heads = at_pages_heads(z->d, z->h / z->hk);
    const auto with_heads = [&]<int D>() {
        return heads == 1   ? f.template operator()<D, 1>()
               : heads == 2 ? f.template operator()<D, 2>()
               : heads == 4 ? f.template operator()<D, 4>()
                            : f.template operator()<D, at_pages_heads(D, 8)>();
    };
    if constexpr (!AT_ALL_INSTANCES)
        return with_heads.template operator()<64>();
    else
        return z->d == 32    ? with_heads.template operator()<32>()
               : z->d == 64  ? with_heads.template operator()<64>()
               : z->d == 96  ? with_heads.template operator()<96>()
               : z->d == 128 ? with_heads.template operator()<128>()
                             : with_heads.template operator()<256>();
}

#endif
