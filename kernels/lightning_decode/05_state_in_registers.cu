/* Lightning decode with the state in registers: read once, written once, 16 bytes at a time.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the decay by ex2.approx; an element of the state by one fmaf; the rows of o go in turn to 32 lanes, whose
 * chains of fmaf are joined by a butterfly.
 * Launch: a block of 256 threads for 32 columns of a head of a request: a thread has 4 columns of every 32nd row, so that 8
 * lanes take the 128 bytes of a row together and a warp 4 rows at once. Columns know nothing of each other, so blocks do not
 * either. Two joins by shuffles, then 2 KiB of shared memory, in turn for even and odd steps: one barrier a step.
 * Limits: d at most 256; e is a multiple of 4.
 * Source: ours, from what 001 leaves to be done: a warp a row, vector loads. */
#include "kernels/lightning_decode/lightning.h"

namespace {

constexpr int THREADS = 256, LANES = 32, COLUMNS = 32, WARPS = THREADS / 32;

/* The last three joins of a column: those of lanes 4, 2 and 1 apart, which are warps. */
inline __device__ float join(const float (&x)[WARPS][COLUMNS], int column) {
    float sum[4];
    AT_UNROLL
    for (int w = 0; w < 4; w++)
        sum[w] = x[w][column] + x[w + 4][column];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* With 8 rows four blocks a multiprocessor would spill. */
template <class T, int ROWS>
__global__ void __launch_bounds__(THREADS, ROWS > 4 ? 3 : 5) decode(at_lightning_view<T> a) {
    AT_SHARED(float[2][WARPS][COLUMNS], sums);
    const at_lightning_block<T> head(a, blockIdx.x);
    const int lane = at_lane(), warp = (int)threadIdx.x / 32;
    const int first = lane / 8 * 8 + warp, within = lane % 8 * 4, column = (int)blockIdx.y * COLUMNS + within;
    const int rows = column < head.e ? head.d : 0; /* of this thread's columns */
    float state[ROWS][4];
    AT_UNROLL
    for (int r = 0; r < ROWS; r++)
        if (r * LANES + first < rows)
            at_load16(&head.kv[(r * LANES + first) * head.e + column], state[r]);
    for (int step = 0; step < head.steps; step++) {
        float v[4] = {}, sum[4] = {};
        if (rows > 0)
            at_lightning_load4(&head.v[step * head.e + column], v);
        AT_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const int row = r * LANES + first;
            if (row >= rows)
                continue;
            const float q = at_float(head.q[step * head.d + row]), k = at_float(head.k[step * head.d + row]);
            AT_UNROLL
            for (int c = 0; c < 4; c++) {
                state[r][c] = head.updated(state[r][c], k, v[c]);
                sum[c] = fmaf(q, state[r][c], sum[c]);
            }
        }
        AT_UNROLL
        for (int c = 0; c < 4; c++) {
            sum[c] += at_shuffle_xor(0xffffffffu, sum[c], 16);
            sum[c] += at_shuffle_xor(0xffffffffu, sum[c], 8);
        }
        if (lane < 8)
            at_store16(&sums[step % 2][warp][within], sum);
        at_sync();
        if (warp == 0 && (int)blockIdx.y * COLUMNS + lane < head.e)
            head.o[step * head.e + (int)blockIdx.y * COLUMNS + lane] = at_round_to<T>(join(sums[step % 2], lane));
    }
    AT_UNROLL
    for (int r = 0; r < ROWS; r++)
        if (r * LANES + first < rows)
            at_store16(&head.kv[(r * LANES + first) * head.e + column], state[r]);
}

const char *supports(const struct at_problem *p) {
    if (at_lightning_own_of(p).e % 4)
        return "rows of the state are not whole pieces of 16 bytes";
    return p->sizes.d > 8 * LANES ? "more rows than the registers hold" : nullptr;
}

template <class T, int ROWS> int launch_rows(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const dim3 grid{ (unsigned)(p->sizes.b * p->sizes.h),
                     (unsigned)((at_lightning_own_of(p).e + COLUMNS - 1) / COLUMNS), 1 };
    return at_launch(decode<T, ROWS>, grid, dim3{ THREADS, 1, 1 }, 0, launch->stream, at_lightning_view<T>(p));
}

int launch(const struct at_launch *launch) {
    const int64_t d = launch->problem->sizes.d;
    return at_lightning_launch(launch->problem, [=]<class T>() {
        return d <= LANES       ? launch_rows<T, 1>(launch)
               : d <= 3 * LANES ? launch_rows<T, 3>(launch)
               : d <= 4 * LANES ? launch_rows<T, 4>(launch)
                                : launch_rows<T, 8>(launch);
    });
}

} // namespace

AT_KERNEL(lightning_decode, 05_state_in_registers) = {
    .summary = "the state in registers, 16-byte accesses, 32 columns a block",
    .source = "ours",
    .numerics = AT_LIGHTNING_NUMERICS(1, 32, 1, AT_TREE_BUTTERFLY),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
