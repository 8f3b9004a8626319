/* Counting scores: counts are in shared memory, in windows of codes around the data, and persistent blocks add to them
 * over many tiles of a head.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the definition (reference/score_counts/score_counts.h). Pairs whose norms and lowest bits allow it by
 * tensor cores in doubles, which round nothing there; the others one by one. The FIR runs along the keys in registers, over
 * the edge of a tile by a halo of raw scores. Outputs and sums of rows are chains of fma, by tensor cores in doubles too, tile by
 * tile: p that are 0 add nothing, and p times 1 is rounded as a sum. Values that are not finite go one by one.
 * Launch: grid (query heads, blocks: as many as give each of 132 multiprocessors one), 512 threads, 256 with other than three
 * taps; 227 KiB of shared memory. A group of threads has a tile of 64 queries at a time: two groups of 256 a block, which do
 * not wait for each other, or one that has rows and outputs, too. They share the counts of the block.
 * Limits: f16 or bf16; asynct; with outputs d at most 128.
 * Source: ours. */
#include "kernels/score_counts/score_counts_group_close.h"

namespace {

constexpr int MULTIPROCESSORS = 132;
constexpr int64_t SHARED = 225 * 1024; /* dynamic; 2 KiB are static */
constexpr int OUT = AT_COUNTS_TILE * AT_COUNTS_CHANNELS_OUT;

/* Sums of outputs wait in shared memory while scores are counted, which wants all registers; in global memory where codes are
 * f16, whose windows gain more by the place: eight binades instead of four. */
inline bool out_there(const struct at_problem *p) {
    return at_counts_own_of(p).bins == AT_F16 && at_counts_own_of(p).what >> AT_COUNTS_OF_OUT & 1;
}

template <class T, int TAPS, bool FULL>
__global__ void __launch_bounds__(at_counts_shape<TAPS, FULL>::GROUPS *at_counts_shape<TAPS, FULL>::THREADS, 1)
    shared_counts(at_counts_view<T> a, int size, int codes, int words) { /* size: doubles of a group */
    using group = at_counts_tile_group<T, TAPS, FULL>;
    constexpr int GROUPS = group::shape::GROUPS, ALL = GROUPS * group::THREADS;
    AT_SHARED_DYNAMIC(double, dynamic);
    AT_SHARED(at_counts_group_fields[GROUPS], fields);
    AT_SHARED(at_counts_block_fields, block);
    const int head = (int)blockIdx.x, thread = (int)threadIdx.x, number = thread / group::THREADS;
    const at_counts_bins bins{ reinterpret_cast<uint32_t *>(dynamic + GROUPS * size), block.window, block.spare,
                               codes };
    for (int i = thread; i < words; i += ALL)
        bins.words[i] = 0;
    for (int i = thread; i < GROUPS * 2 * AT_COUNTS_DISTANCES; i += ALL)
        fields[i / (2 * AT_COUNTS_DISTANCES)].mass[i % (2 * AT_COUNTS_DISTANCES)] = 0;
    for (int i = thread; i < GROUPS * AT_COUNTS_STAGES * AT_COUNTS_W_MAX; i += ALL)
        fields[i % GROUPS].rare.field[i / GROUPS / AT_COUNTS_W_MAX][i / GROUPS % AT_COUNTS_W_MAX] = 0;
    if (thread < 2)
        block.sample[thread] = 0;
    if (thread < 32)
        block.spare[thread] = 0;
    if (thread < a.n_taps)
        block.tap[thread] = (double)a.taps[head * a.n_taps + thread];
    if (thread == 0) {
        block.sigma = (double)a.sigma[head];
        block.share = (double)a.sigma[head] / (double)a.n_taps;
    }
    at_sync();
    at_counts_sample(a, head, head / (a.h / a.hk), block.sample);
    at_sync();
    if (thread == 0)
        at_counts_place_windows(a, bins, block.sample);
    at_sync();
    const int groups = (int)gridDim.y * GROUPS, mine = (int)blockIdx.y * GROUPS + number;
    const typename group::memory memory(dynamic + number * size, TAPS ? TAPS : a.n_taps);
    int steps = 0;
    for (int round = 0; round * groups < a.tiles; round++) { /* alternating direction, the longest tiles first */
        const int i = round * groups + (round % 2 ? groups - 1 - mine : mine);
        if (i < a.tiles)
            steps = group(a, memory, block, bins, fields[number], number, a.tiles - 1 - i).work(steps);
    }
    at_sync(); /* every score is counted */
    at_counts_give_bins(a, bins, head);
}

/* Sums of outputs come first: a part for each block of the grid. */
int64_t out_bytes(const struct at_problem *p) {
    return out_there(p) ? (p->sizes.h > MULTIPROCESSORS ? p->sizes.h : MULTIPROCESSORS) * OUT * (int64_t)sizeof(double)
                        : 0;
}

template <class T, int TAPS, bool FULL>
int put(const struct at_launch *launch, at_counts_view<T> a, at_counts_kind<TAPS, FULL>) {
    using group = at_counts_tile_group<T, TAPS, FULL>;
    constexpr int GROUPS = group::shape::GROUPS;
    const int64_t rows = (int64_t)a.h * a.queries + 2 * (int64_t)a.hk * a.keys;
    const int code =
        at_launch(at_counts_norm_spans<T>, dim3{ (unsigned)((rows + AT_COUNTS_BLOCK - 1) / AT_COUNTS_BLOCK), 1, 1 },
                  dim3{ AT_COUNTS_BLOCK, 1, 1 }, 0, launch->stream, a);
    if (code)
        return code;
    int counted = 0;
    for (int i = 0; i < AT_COUNTS_BINNED; i++)
        counted += a.what >> (AT_COUNTS_OF_RAW + i) & 1;
    a.out = out_there(launch->problem) ? static_cast<double *>(launch->workspace) : nullptr;
    const int size = group::memory::size(a.n_taps, a.out ? 0 : a.what >> AT_COUNTS_OF_OUT & 1);
    const int64_t tiles = GROUPS * size * (int64_t)sizeof(double);
    const int codes = at_counts_bins::codes_of(SHARED - tiles, counted, a.codes.shift), words = counted * (codes + 1);
    const int blocks = MULTIPROCESSORS / a.h, most = (a.tiles + GROUPS - 1) / GROUPS;
    return at_launch(shared_counts<T, TAPS, FULL>,
                     dim3{ (unsigned)a.h,
                           (unsigned)(blocks < 1      ? 1
                                      : blocks < most ? blocks
                                                      : most),
                           1 },
                     dim3{ GROUPS * group::THREADS, 1, 1 }, tiles + words * (int64_t)sizeof(uint32_t), launch->stream,
                     a, size, codes, words);
}

int launch(const struct at_launch *launch) {
    struct at_launch rest = *launch;
    rest.workspace = static_cast<char *>(launch->workspace) + out_bytes(launch->problem);
    return at_counts_launch_tiles(&rest, [launch](const auto &a, auto kind) { return put(launch, a, kind); });
}

int64_t workspace(const struct at_problem *problem) {
    return out_bytes(problem) + at_counts_view<float>::workspace(problem);
}

} // namespace

AT_KERNEL(score_counts, 03_shared_counts) = {
    .summary = "counts in shared memory, in windows of codes, by persistent blocks of a head",
    .source = "ours",
    .numerics = AT_COUNTS_NUMERICS,
    .supports = at_counts_tiles_decline,
    .workspace = workspace,
    .launch = launch,
};
