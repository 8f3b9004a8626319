/* AsyncT prefill: 04 with blocks that stay and take their work from one counter.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 04, whoever does the work.
 * Launch: one thread that clears the counter; then as many blocks as there is work for, at most 264, 4 warps of 16
 * queries each; shared memory as 04, and 8 bytes. A tile of 64 queries costs one atomic addition and one barrier of the
 * block more than in 04. Scratch: 4 bytes.
 * Limits: bf16; d 32, 64, 96 or 128.
 * Source: 000 section 2: 264 blocks on a GPU of 132 processors, three times slower there than a block a tile. */
#include "kernels/asynct_prefill/asynct_mma.h"
#include "kernels/attention/persistent.h"

namespace {

constexpr int WARPS = 4, BLOCKS = 264;

template <class T, int D>
__global__ void __launch_bounds__(32 * WARPS, 1) attend(at_asynct_view<T> a, at_mma_work work) {
    AT_SHARED_DYNAMIC(T, memory);
    AT_SHARED(uint32_t[2], taken); /* in turn: the other one is written when all have read this one */
    for (int turn = 0;; turn = 1 - turn) {
        if (threadIdx.x == 0)
            taken[turn] = work.take();
        at_sync();
        const uint32_t item = taken[turn];
        if (item >= work.items)
            return;
        at_mma_attend<T, D, WARPS, at_sum_f32, AT_MMA_KEYS, at_mma_ldmatrix>(
            a, at_mma_shared<T, D, AT_MMA_KEYS>{ memory }, work.request(item), work.head(item), work.tile(item));
    }
}

const char *supports(const struct at_problem *problem) {
    return problem->dtype != AT_BF16 ? "activations are bf16" : at_mma_declines(problem);
}

int launch(const struct at_launch *launch) {
    const at_mma_work work(launch, WARPS * AT_MMA_ROWS);
    const int code = work.items ? work.clear(launch) : 0;
    if (code)
        return code;
    return at_mma_with_head_size(launch->problem->sizes.d, [=]<int D>() {
        return work.launch(launch, attend<at_bf16, D>, 1, BLOCKS, WARPS,
                           at_mma_shared<at_bf16, D, AT_MMA_KEYS>::bytes(WARPS, &launch->problem->sizes));
    });
}

} // namespace

AT_KERNEL(asynct_prefill, 05_mma_persistent_block) = {
    .summary = "04 with 264 blocks that take tiles of 64 queries from one counter",
    .source = "000 2",
    .numerics = AT_ASYNCT_MMA_BF16_NUMERICS,
    .supports = supports,
    .workspace = at_mma_work::bytes,
    .launch = launch,
};
