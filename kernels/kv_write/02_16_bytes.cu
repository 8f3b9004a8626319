/* New keys and values into a cache by accesses of 16 bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: bits are copied.
 * Launch: a block of 256 threads a token, which take pieces of 16 bytes of its key and its value in turn; no shared
 * memory.
 * Limits: activations f32, f16 or bf16; hk * d values are whole pieces of 16 bytes.
 * Source: ours. */
#include "kernels/norm/norm.h"
#include "kv_write/kv_write.h"

namespace {

template <class T> constexpr int PIECE = 16 / (int)sizeof(T);

template <class T> __device__ void copy_piece(T *to, const T *from) {
    T piece[PIECE<T>];
    at_load16(from, piece);
    at_store16(to, piece);
}

/* Without a number of blocks ptxas spills. */
template <class T>
__global__ void __launch_bounds__(AT_NORM_THREADS, 4)
    write(const int32_t *slot_mapping, int row, const T *new_k, const T *new_v, T *k, T *v) {
    const int64_t slot = slot_mapping[blockIdx.x], from = (int64_t)blockIdx.x * row;
    if (slot < 0)
        return;
    for (int i = (int)threadIdx.x * PIECE<T>; i < row; i += AT_NORM_THREADS * PIECE<T>) {
        copy_piece(&k[slot * row + i], &new_k[from + i]);
        copy_piece(&v[slot * row + i], &new_v[from + i]);
    }
}

const char *declines(const struct at_problem *p) {
    const int64_t bytes = p->sizes.hk * p->sizes.d * (int64_t)at_format_info(p->dtype)->bytes;
    return bytes % 16 ? "a row of the cache is not whole pieces of 16 bytes" : nullptr;
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

AT_KERNEL(kv_write, 02_16_bytes) = {
    .summary = "accesses of 16 bytes",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = declines,
    .workspace = nullptr,
    .launch = launch,
};
