/* New keys and values into a cache: a block a token.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: bits are copied.
 * Launch: a block of 256 threads a token, which take the elements of its key and its value in turn; no shared memory.
 * Limits: activations f32, f16 or bf16.
 * Source: 000 section 6.10. The source also makes the same launch from inside its attention call; what is launched is
 * the same. */
#include "kernels/norm/norm.h"
#include "kv_write/kv_write.h"

namespace {

template <class T>
__global__ void __launch_bounds__(AT_NORM_THREADS)
    write(const int32_t *slot_mapping, int row, const T *new_k, const T *new_v, T *k, T *v) {
    const int64_t slot = slot_mapping[blockIdx.x], from = (int64_t)blockIdx.x * row;
    if (slot < 0)
        return;
    for (int i = (int)threadIdx.x; i < row; i += AT_NORM_THREADS) {
        k[slot * row + i] = new_k[from + i];
        v[slot * row + i] = new_v[from + i];
    }
}

int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return at_norm_launch(launch, [=]<class T>() {
        return at_norm_rows(launch, p->sizes.tokens, write<T>,
                            static_cast<const int32_t *>(p->tensors[AT_KV_WRITE_SLOT_MAPPING].data),
                            (int)(p->sizes.hk * p->sizes.d), at_activations<T>(p, AT_KV_WRITE_NEW_K),
                            at_activations<T>(p, AT_KV_WRITE_NEW_V), at_activations<T>(p, AT_KV_WRITE_K),
                            at_activations<T>(p, AT_KV_WRITE_V));
    });
}

} // namespace

AT_KERNEL(kv_write, 01_block_per_token) = {
    .summary = "a block a token",
    .source = "000 6.10",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
