/* Lightning decode with the state in registers, a head a block: what a block reads and writes lies side by side.
 * SPDX-License-Identifier: Apache-2.0
 *
 * 05_state_in_registers has 32 columns a block, whose rows are pieces of 128 bytes; here 24 lanes take the 384 bytes of a
 * row of 96 columns, eight rows at a time, so that a pass of the block is 3 KiB without a gap. Every load of the state is
 * issued before anything is waited for, and neither loads nor stores keep their lines in a cache longer than needed. Where
 * heads are too few for a GPU, a block has half of the columns. Heads of 96 x 96, the source's, have a kernel whose
 * addresses are constants: a third fewer registers, and so twice the blocks at a time.
 *
 * Numerically: the decay by ex2.approx; an element of the state by one fmaf; the rows of o go in turn to eight lanes, whose
 * chains of fmaf are joined in pairs: lane r and r + 4, then r + 2, then r + 1.
 * Launch: a block for a head of a request and at most 96 columns, or 48 where there are 66 heads or less; a thread
 * for 4 columns of every eighth row, 24 x 8 of them at most. q, k and the sums of the lanes are in shared memory, each in
 * turn for even and odd steps: two barriers a step.
 * Limits: d at most 256; e is a multiple of 4.
 * Source: ours, from what 001 leaves to be done: a warp a row, vector loads. */
#include "kernels/lightning_decode/lightning.h"

namespace {

constexpr int LANES = 8, EACH = 4, ACROSS = 24, COLUMNS = ACROSS * EACH, THREADS = LANES * ACROSS, MAX_D = 256;
constexpr int AT_ONCE = 132; /* the multiprocessors of an H100 or H200 */

struct shared {
    float q[2][MAX_D], k[2][MAX_D], sums[2][LANES][COLUMNS];
};

/* A column's answer from the chains of its lanes. */
inline __device__ float joined(const float (&x)[LANES][COLUMNS], int column) {
    float sum[LANES / 2];
    AT_UNROLL
    for (int r = 0; r < LANES / 2; r++)
        sum[r] = x[r][column] + x[r + LANES / 2][column];
    AT_UNROLL
    for (int apart = LANES / 4; apart > 0; apart /= 2) {
        AT_UNROLL
        for (int r = 0; r < apart; r++)
            sum[r] += sum[r + apart];
    }
    return sum[0];
}

/* D, E: the rows and columns of every head, 0: as the view has them; C: the columns of a block, 0: `columns`. */
template <class T, int ROWS, int D, int E, int C>
__global__ void __launch_bounds__(THREADS, D ? 4 : 1) decode(at_lightning_view<T> a, int columns) {
    AT_SHARED(shared, memory);
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
        float v[EACH] = {}, sum[EACH] = {};
        if (rows > 0)
            at_lightning_load4(&head.v[step * e + column], v);
        for (int i = (int)threadIdx.x; i < d; i += (int)blockDim.x) {
            memory.q[step % 2][i] = at_float(head.q[step * d + i]);
            memory.k[step % 2][i] = at_float(head.k[step * d + i]);
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
                at_store16_once(&kv[r * LANES * e], state[r]);
        }
        at_store16(&memory.sums[step % 2][lane][within], sum);
        at_sync();
        for (int i = (int)threadIdx.x; i < each && first + i < e; i += (int)blockDim.x)
            head.o[step * e + first + i] = at_round_to<T>(joined(memory.sums[step % 2], i));
    }
}

const char *supports(const struct at_problem *p) {
    if (at_lightning_own_of(p).e % EACH)
        return "rows of the state are not whole pieces of 16 bytes";
    return p->sizes.d > MAX_D ? "more rows than the registers hold" : nullptr;
}

/* The columns of a block: half of them where two blocks a head still find a multiprocessor each. */
int columns_of(int64_t heads, int64_t e) {
    const int64_t most = 2 * heads <= AT_ONCE ? COLUMNS / 2 : COLUMNS, blocks = (e + most - 1) / most;
    const int64_t each = (e + blocks - 1) / blocks;
    return (int)(each + EACH - 1) / EACH * EACH;
}

template <class T, int ROWS, int D = 0, int E = 0, int C = 0>
int launch_of(const struct at_launch *launch, int columns) {
    const struct at_problem *p = launch->problem;
    const int64_t blocks = (at_lightning_own_of(p).e + columns - 1) / columns;
    const dim3 grid{ (unsigned)(p->sizes.b * p->sizes.h), (unsigned)blocks, 1 };
    return at_launch(decode<T, ROWS, D, E, C>, grid, dim3{ (unsigned)(LANES * columns / EACH), 1, 1 }, 0,
                     launch->stream, at_lightning_view<T>(p), columns);
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t d = p->sizes.d, e = at_lightning_own_of(p).e;
    const int columns = columns_of(p->sizes.b * p->sizes.h, e);
    return at_lightning_launch(p, [=]<class T>() {
        if (d == COLUMNS && e == COLUMNS)
            return columns == COLUMNS ? launch_of<T, COLUMNS / LANES, COLUMNS, COLUMNS, COLUMNS>(launch, columns)
                                      : launch_of<T, COLUMNS / LANES, COLUMNS, COLUMNS, COLUMNS / 2>(launch, columns);
        return d <= 4 * LANES    ? launch_of<T, 4>(launch, columns)
               : d <= 8 * LANES  ? launch_of<T, 8>(launch, columns)
               : d <= 12 * LANES ? launch_of<T, 12>(launch, columns)
               : d <= 16 * LANES ? launch_of<T, 16>(launch, columns)
                                 : launch_of<T, MAX_D / LANES>(launch, columns);
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
