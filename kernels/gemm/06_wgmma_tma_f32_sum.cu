/* A product on tensor cores: wgmma m64n256k16 on a ring of stages that a producer thread fills by TMA, by persistent
 * blocks; sums in f32.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unlike 03_wgmma_f32_sum, a block has 128 x 256 elements of d, so that each byte of shared memory serves four times as
 * many products; nobody who multiplies loads, and the loads of the next three steps, the next tile's too, are in
 * flight.
 *
 * Numerically: as 03_wgmma_f32_sum: 16 products an instruction, aligned and truncated, their sum truncated to f32; one
 * rounding for the scale, one to the format of d.
 * Launch: at most one block of 3 warpgroups a multiprocessor: one thread of the first loads, the others have 64
 * rows each; block i has tiles i, i + blocks, ... of those in groups of 8 rows of tiles. 224 KiB of dynamic shared
 * memory: 4 stages of 64 products, and two buffers of 16 x 64 elements a warp, which TMA stores.
 * Limits: sm_90a, elsewhere a launch traps; f16 or bf16; k a multiple of 8. Where d is f32 or n no multiple of 8,
 * threads store it by elements.
 * Source: ours; 004 for the shapes. */
#include "kernels/gemm/gemm_tma.h"

namespace {

/* Out: the format of a d that TMA stores; float: of any format, by elements. */
template <class T, class Out>
__global__ void __launch_bounds__(AT_GEMM_RING_THREADS, 1)
    multiply(at_gemm_view<T> v, const __grid_constant__ at_tensor_map a, const __grid_constant__ at_tensor_map b,
             const __grid_constant__ at_tensor_map d) {
    AT_SHARED_TILES(at_gemm_ring<T>, memory);
    at_gemm_ring<T> &ring = *memory;
    /* From a lane of its own: the compiler then knows that it is the same for a warp. */
    const int warp = at_shuffle(0xffffffffu, (int)threadIdx.x / 32, 0) - AT_GEMM_GROUP_WARPS;
    const int group = warp / AT_GEMM_GROUP_WARPS, tiles = at_gemm_tall(v.m) * at_gemm_wide(v.n);
    at_gemm_turn turn;
    at_gemm_ring_begin(ring, v.m);
    if (warp < 0) {
        at_registers_give<24>();
        for (int tile = (int)blockIdx.x; threadIdx.x == 0 && tile < tiles; tile += (int)gridDim.x)
            at_gemm_ring_load(ring, turn, a, b, at_gemm_place_of(tile, v.m, v.n), v.k);
        return;
    }
    at_registers_take<240>();
    if (at_gemm_ring_idle(group, v.m))
        return;
    for (int tile = (int)blockIdx.x; tile < tiles; tile += (int)gridDim.x) {
        const at_gemm_place place = at_gemm_place_of(tile, v.m, v.n);
        float sums[AT_GEMM_RING_COLUMNS / 8][4] = {};
        int before = -1; /* the stage whose products may still be in flight */
        for (int begin = 0; begin < v.k; begin += AT_GEMM_RING_STEP) {
            at_mbarrier_wait(&ring.full[turn.stage], turn.parity);
            at_wgmma_fence(sums);
            at_gemm_ring_multiply(ring.stages[turn.stage], group, sums);
            at_wgmma_commit();
            at_wgmma_wait<1>(sums); /* the tensor core never waits for the release */
            if (before >= 0)
                at_gemm_ring_release(&ring.empty[before]);
            before = turn.stage;
            turn.next();
        }
        at_wgmma_wait<0>(sums);
        at_gemm_ring_release(&ring.empty[before]);
        if constexpr (sizeof(Out) == sizeof(float)) /* its row of this warp is that of threadIdx.x: 64 rows too far */
            at_gemm_store(v, place.row - AT_GEMM_GROUP_ROWS, place.column, sums);
        else
            at_gemm_ring_store<Out>(ring.out[warp], d, { place.row + warp * AT_GEMM_OUT_ROWS, place.column }, v.scale,
                                    sums);
    }
    if (at_lane() == 0)
        at_bulk_wait<0>();
}

template <class T> int launch_of(const struct at_launch *launch) {
    const at_gemm_view<T> v = at_gemm_view<T>::of(launch->problem);
    return at_gemm_ring_launch<T>(launch, !at_gemm_stored_by_tma(v) ? multiply<T, float>
                                          : v.out == AT_F16         ? multiply<T, at_f16>
                                                                    : multiply<T, at_bf16>);
}

const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "factors are f16 or bf16";
    return at_gemm_ring_declines(problem);
}

int launch(const struct at_launch *launch) {
    return launch->problem->dtype == AT_F16 ? launch_of<at_f16>(launch) : launch_of<at_bf16>(launch);
}

} // namespace

AT_KERNEL(gemm, 06_wgmma_tma_f32_sum) = {
    .summary = "wgmma and TMA, persistent, 128 x 256 elements by two warpgroups; sums in f32",
    .source = "ours",
    .numerics = AT_GEMM_NUMERICS(AT_UNIT_TC_F32, 0, AT_GUARD_NONE),
    .supports = supports,
    .workspace = nullptr,
    .launch = launch,
};
