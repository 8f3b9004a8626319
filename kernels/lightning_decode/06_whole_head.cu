/* Lightning decode with the state in registers, a head a block: what a block reads and writes lies side by side.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 05_state_in_registers has 32 columns a block, whose rows are pieces of 128 bytes; here 24 lanes take the 384 bytes of a
 * row of 96 columns, eight rows at a time, so that a pass of the block is 3 KiB without a gap. Every load of the state is
 * issued before anything is waited for, and neither loads nor stores keep their lines in a cache longer than needed. Heads of
 * 96 x 96, the source's, have a kernel whose addresses are constants: a third fewer registers, and so twice the blocks at a
 * time. Where heads are few for a GPU, latency decides: then a block has 16 columns, 64 bytes of each row, and a thread waits
 * for few loads, takes q and k of its rows straight into registers, and sums meet by shuffles first: one barrier a step
 * instead of two.
 *
 * Numerically: the decay by ex2.approx; an element of the state by one fmaf; the rows of o go in turn to 32 chains of
 * fmaf, which are joined in pairs: chain c and c + 16, then c + 8, ... c + 1. Where a block has 8 lanes, each has four of
 * them: the bits do not depend on how many heads there are.
 * Launch: a block for a head of a request and at most 96 columns, 24 x 8 threads; where there are 198 heads or less, 16
 * columns, 4 x 32 threads. Shared memory holds sums (of few heads in turn for even and odd steps) and, where heads are
 * many, q and k.
 * Limits: d at most 256; e is a multiple of 4.
 * Source: ours, from what 001 leaves to be done: a warp a row, vector loads. */
#include "kernels/lightning_decode/lightning.h"

namespace {

constexpr int CHAINS = 32, EACH = 4, MAX_D = 256;
/* Of a block where heads are many, and where they are few. */
constexpr int LANES = 8, ACROSS = 24, COLUMNS = ACROSS * EACH, THREADS = LANES * ACROSS;
constexpr int PIECE = 4, PIECE_COLUMNS = PIECE * EACH, PIECE_WARPS = CHAINS * PIECE / 32;
/* On an H200 192 heads of 96 x 96 take less time by pieces, 256 by whole heads (README.md). */
constexpr int FEW_HEADS = 198;

struct shared {
    float q[MAX_D], k[MAX_D], sums[LANES][COLUMNS];
};

/* The first N of x, a power of two, joined in pairs: i and i + N / 2 first. */
template <int N> __device__ float joined(float (&x)[N]) {
    AT_UNROLL
    for (int apart = N / 2; apart > 0; apart /= 2) {
        AT_UNROLL
        for (int i = 0; i < apart; i++)
            x[i] += x[i + apart];
    }
    return x[0];
}

/* Entry [i][column] of a table of N rows for each i, joined. */
template <int N, int ACROSS_OF> __device__ float joined_column(const float (&x)[N][ACROSS_OF], int column) {
    float terms[N];
    AT_UNROLL
    for (int i = 0; i < N; i++)
        terms[i] = x[i][column];
    return joined(terms);
}

/* A block of many. D, E: the rows and columns of every head, 0: as the view has them; C: the columns of a block, 0:
 * `columns`. */
template <class T, int ROWS, int D, int E, int C>
__global__ void __launch_bounds__(THREADS, D ? 4 : 1) of_many_heads(at_lightning_view<T> a, int columns) {
    AT_SHARED(shared, memory);
    constexpr int OWN = CHAINS / LANES; /* chains of a lane */
    static_assert(OWN == 4, "the order of the join");
    const int d = D ? D : a.d, e = E ? E : a.e, each = C ? C : columns, across = each / EACH;
    const int lane = (int)threadIdx.x / across, within = (int)threadIdx.x % across * EACH;
    const int first = (int)blockIdx.y * each, column = first + within;
    const int rows = column < e ? d : 0; /* of this thread's columns */
    float *const kv = a.kv + (int64_t)blockIdx.x * d * e + lane * e + column;
    float state[ROWS][EACH];
    AT_UNROLL
    for (int r = 0; r < ROWS; r++)
        if (r * LANES + lane < rows)
            at_load16_once(&kv[r * LANES * e], state[r]);
    const at_lightning_block<T> head(a, blockIdx.x); /* behind the loads: its decay takes one of its own */
    for (int step = 0; step < head.steps; step++) {
        float v[EACH] = {}, sum[EACH], pair[EACH];
        if (rows > 0)
            at_lightning_load4(&head.v[step * e + column], v);
        for (int i = (int)threadIdx.x; i < d; i += (int)blockDim.x) {
            memory.q[i] = at_float(head.q[step * d + i]);
            memory.k[i] = at_float(head.k[step * d + i]);
        }
        at_sync();
        /* Chains in the order of the join, which wants the fewest registers: 0, 2, 1, 3. */
        AT_UNROLL
        for (int turn = 0; turn < OWN; turn++) {
            const int own = turn % 2 * 2 + turn / 2;
            float chain[EACH] = {};
            AT_UNROLL
            for (int r = own; r < ROWS; r += OWN) {
                const int row = r * LANES + lane;
                if (row >= rows)
                    continue;
                AT_UNROLL
                for (int c = 0; c < EACH; c++) {
                    state[r][c] = head.updated(state[r][c], memory.k[row], v[c]);
                    chain[c] = fmaf(memory.q[row], state[r][c], chain[c]);
                }
                if (step + 1 == head.steps)
                    at_store16_once(&kv[r * LANES * e], state[r]);
            }
            AT_UNROLL
            for (int c = 0; c < EACH; c++) {
                pair[c] = turn % 2 ? pair[c] + chain[c] : chain[c];
                if (turn % 2)
                    sum[c] = turn == 3 ? sum[c] + pair[c] : pair[c];
            }
        }
        at_store16(&memory.sums[lane][within], sum);
        at_sync();
        for (int i = (int)threadIdx.x; i < each && first + i < e; i += (int)blockDim.x)
            head.o[step * e + first + i] = at_round_to<T>(joined_column(memory.sums, i));
    }
}

/* A block of few. D and E as above. */
template <class T, int ROWS, int D, int E>
__global__ void __launch_bounds__(CHAINS *PIECE, D ? 4 : 1) of_few_heads(at_lightning_view<T> a) {
    AT_SHARED(float[2][PIECE_WARPS][PIECE_COLUMNS], sums);
    const int d = D ? D : a.d, e = E ? E : a.e, warp = (int)threadIdx.x / 32, within = at_lane() % PIECE * EACH;
    const int chain = at_lane() / PIECE * PIECE_WARPS + warp; /* chains that are joined first are of one warp */
    const int first = (int)blockIdx.y * PIECE_COLUMNS, column = first + within, rows = column < e ? d : 0;
    float *const kv = a.kv + (int64_t)blockIdx.x * d * e + chain * e + column;
    float state[ROWS][EACH];
    AT_UNROLL
    for (int r = 0; r < ROWS; r++)
        if (r * CHAINS + chain < rows)
            at_load16_once(&kv[r * CHAINS * e], state[r]);
    const at_lightning_block<T> head(a, blockIdx.x);
    for (int step = 0; step < head.steps; step++) {
        float v[EACH] = {}, sum[EACH] = {}, q[ROWS], k[ROWS];
        if (rows > 0)
            at_lightning_load4(&head.v[step * e + column], v);
        AT_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const int row = r * CHAINS + chain;
            q[r] = row < rows ? at_float(head.q[step * d + row]) : 0;
            k[r] = row < rows ? at_float(head.k[step * d + row]) : 0;
        }
        AT_UNROLL
        for (int r = 0; r < ROWS; r++) {
            if (r * CHAINS + chain >= rows)
                continue;
            AT_UNROLL
            for (int c = 0; c < EACH; c++) {
                state[r][c] = head.updated(state[r][c], k[r], v[c]);
                sum[c] = fmaf(q[r], state[r][c], sum[c]);
            }
            if (step + 1 == head.steps)
                at_store16_once(&kv[r * CHAINS * e], state[r]);
        }
        AT_UNROLL
        for (int c = 0; c < EACH; c++) {
            AT_UNROLL
            for (int apart = 16; apart >= PIECE; apart /= 2)
                sum[c] += at_shuffle_xor(0xffffffffu, sum[c], apart);
        }
        if (at_lane() < PIECE)
            at_store16(&sums[step % 2][warp][within], sum);
        at_sync(); /* the only one: warp 0 reads this half before it comes here again, and the next step writes the other */
        if (warp == 0 && at_lane() < PIECE_COLUMNS && first + at_lane() < e)
            head.o[step * e + first + at_lane()] = at_round_to<T>(joined_column(sums[step % 2], at_lane()));
    }
}

const char *supports(const struct at_problem *p) {
    if (at_lightning_own_of(p).e % EACH)
        return "rows of the state are not whole pieces of 16 bytes";
    return p->sizes.d > MAX_D ? "more rows than the registers hold" : nullptr;
}

template <class T, int ROWS, int D = 0, int E = 0> int launch_few(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t blocks = (at_lightning_own_of(p).e + PIECE_COLUMNS - 1) / PIECE_COLUMNS;
    const dim3 grid{ (unsigned)(p->sizes.b * p->sizes.h), (unsigned)blocks, 1 };
    return at_launch(of_few_heads<T, ROWS, D, E>, grid, dim3{ (unsigned)(CHAINS * PIECE), 1, 1 }, 0, launch->stream,
                     at_lightning_view<T>(p));
}

/* Columns are cut into blocks of nearly the same width. */
template <class T, int ROWS, int D = 0, int E = 0, int C = 0> int launch_many(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t e = at_lightning_own_of(p).e, blocks = (e + COLUMNS - 1) / COLUMNS;
    const int columns = (int)((e + blocks - 1) / blocks + EACH - 1) / EACH * EACH;
    const dim3 grid{ (unsigned)(p->sizes.b * p->sizes.h), (unsigned)blocks, 1 };
    return at_launch(of_many_heads<T, ROWS, D, E, C>, grid, dim3{ (unsigned)(LANES * columns / EACH), 1, 1 }, 0,
                     launch->stream, at_lightning_view<T>(p), columns);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t d = p->sizes.d;
    const bool is_96 = d == COLUMNS && at_lightning_own_of(p).e == COLUMNS,
               is_few = p->sizes.b * p->sizes.h <= FEW_HEADS;
    return at_lightning_launch(p, [=]<class T>() {
        if (is_few)
            return is_96             ? launch_few<T, COLUMNS / CHAINS, COLUMNS, COLUMNS>(launch)
                   : d <= 2 * CHAINS ? launch_few<T, 2>(launch)
                   : d <= 4 * CHAINS ? launch_few<T, 4>(launch)
                                     : launch_few<T, MAX_D / CHAINS>(launch);
        return is_96             ? launch_many<T, COLUMNS / LANES, COLUMNS, COLUMNS, COLUMNS>(launch)
               : d <= 8 * LANES  ? launch_many<T, 8>(launch)
               : d <= 16 * LANES ? launch_many<T, 16>(launch)
                                 : launch_many<T, MAX_D / LANES>(launch);
    });
}

} // namespace

AT_KERNEL(lightning_decode, 06_whole_head) = {
    .summary = "the state in registers, a head a block, its bytes side by side; of few heads 64 bytes of a row",
    .source = "ours",
    .numerics = AT_LIGHTNING_NUMERICS(1, CHAINS, 1, AT_TREE_BUTTERFLY),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
