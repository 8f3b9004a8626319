/* Lightning decode with the state in registers, a head a block: what a block reads and writes lies side by side.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 05_state_in_registers has 32 columns a block, whose rows are pieces of 128 bytes; here 24 lanes take the 384 bytes of a
 * row of 96 columns, eight rows at a time, so that a pass of the block is 3 KiB without a gap. Every load of the state is
 * issued before anything is waited for. Where heads are too few for a GPU, a block has half of the columns.
 *
 * Numerically: the decay by ex2.approx; an element of the state by one fmaf; the rows of o go in turn to eight lanes, whose
 * chains of fmaf are joined in pairs: lane r and r + 4, then r + 2, then r + 1.
 * Launch: a block for a head of a request and at most 96 columns, or 48 where there are less than 132 heads; a thread
 * for 4 columns of every eighth row, 24 x 8 of them at most. q, k and the sums of the lanes are in shared memory, each in
 * turn for even and odd steps: two barriers a step.
 * Limits: d at most 256; e is a multiple of 4.
 * Source: ours, from what 001 leaves to be done: a warp a row, vector loads. */
#include "kernels/lightning_decode/lightning.h"

namespace {

constexpr int LANES = 8, EACH = 4, ACROSS = 24, COLUMNS = ACROSS * EACH, THREADS = LANES * ACROSS, MAX_D = 256;
constexpr int MANY_HEADS = 132; /* the multiprocessors of an H100 or H200 */

struct shared {
    float q[2][MAX_D], k[2][MAX_D], sums[2][LANES][COLUMNS];
};

/* Four neighbours of v. */
inline __device__ void load_v(const float *p, float (&x)[EACH]) { at_load16(p, x); }
template <class T> inline __device__ void load_v(const T *p, float (&x)[EACH]) {
    at_load_pair(p, x[0], x[1]);
    at_load_pair(p + 2, x[2], x[3]);
}

/* A column's answer from the chains of its lanes. */
inline __device__ float joined(const float (&x)[LANES][COLUMNS], int column) {
    float sum[4];
    AT_UNROLL
    for (int r = 0; r < 4; r++)
        sum[r] = x[r][column] + x[r + 4][column];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

template <class T, int ROWS> __global__ void __launch_bounds__(THREADS) decode(at_lightning_view<T> a, int columns) {
    AT_SHARED(shared, memory);
    const at_lightning_block<T> head(a, blockIdx.x);
    const int across = columns / EACH, lane = (int)threadIdx.x / across, within = (int)threadIdx.x % across * EACH;
    const int first = (int)blockIdx.y * columns, column = first + within;
    const int rows = column < head.e ? head.d : 0; /* of this thread's columns */
    float state[ROWS][EACH];
    AT_UNROLL
    for (int r = 0; r < ROWS; r++)
        if (r * LANES + lane < rows)
            at_load16(&head.kv[(r * LANES + lane) * head.e + column], state[r]);
    for (int step = 0; step < head.steps; step++) {
        float v[EACH] = {}, sum[EACH] = {};
        if (rows > 0)
            load_v(&head.v[step * head.e + column], v);
        for (int i = (int)threadIdx.x; i < head.d; i += (int)blockDim.x) {
            memory.q[step % 2][i] = at_float(head.q[step * head.d + i]);
            memory.k[step % 2][i] = at_float(head.k[step * head.d + i]);
        }
        at_sync();
        AT_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const int row = r * LANES + lane;
            if (row >= rows)
                continue;
            AT_UNROLL
            for (int c = 0; c < EACH; c++) {
                state[r][c] = head.updated(state[r][c], memory.k[step % 2][row], v[c]);
                sum[c] = fmaf(memory.q[step % 2][row], state[r][c], sum[c]);
            }
            if (step + 1 == head.steps)
                at_store16(&head.kv[row * head.e + column], state[r]);
        }
        at_store16(&memory.sums[step % 2][lane][within], sum);
        at_sync();
        for (int i = (int)threadIdx.x; i < columns && first + i < head.e; i += (int)blockDim.x)
            head.o[step * head.e + first + i] = at_round_to<T>(joined(memory.sums[step % 2], i));
    }
}

const char *supports(const struct at_problem *p) {
    if (at_lightning_own_of(p).e % EACH)
        return "rows of the state are not whole pieces of 16 bytes";
    return p->sizes.d > MAX_D ? "more rows than the registers hold" : nullptr;
}

/* The columns of a block: as few blocks as heads and columns want, each with nearly as many. */
int columns_of(int64_t heads, int64_t e) {
    const int64_t most = heads < MANY_HEADS ? COLUMNS / 2 : COLUMNS, blocks = (e + most - 1) / most;
    const int64_t each = (e + blocks - 1) / blocks;
    return (int)(each + EACH - 1) / EACH * EACH;
}

template <class T, int ROWS> int launch_rows(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t heads = p->sizes.b * p->sizes.h, e = at_lightning_own_of(p).e;
    const int columns = columns_of(heads, e);
    const dim3 grid{ (unsigned)heads, (unsigned)((e + columns - 1) / columns), 1 };
    return at_launch(decode<T, ROWS>, grid, dim3{ (unsigned)(LANES * columns / EACH), 1, 1 }, 0, launch->stream,
                     at_lightning_view<T>(p), columns);
}

int launch(const struct at_launch *launch) {
    const int64_t d = launch->problem->sizes.d;
    return at_lightning_launch(launch->problem, [=]<class T>() {
        return d <= 4 * LANES    ? launch_rows<T, 4>(launch)
               : d <= 8 * LANES  ? launch_rows<T, 8>(launch)
               : d <= 12 * LANES ? launch_rows<T, 12>(launch)
               : d <= 16 * LANES ? launch_rows<T, 16>(launch)
                                 : launch_rows<T, MAX_D / LANES>(launch);
    });
}

} // namespace

AT_KERNEL(lightning_decode, 06_whole_head) = {
    .summary = "the state in registers, a head a block: what it reads and writes lies side by side",
    .source = "ours",
    .numerics = AT_LIGHTNING_NUMERICS(1, LANES, 1, AT_TREE_BUTTERFLY),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
