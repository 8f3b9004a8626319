/* Lightning decode, plainly: a thread a row of the state, then a thread a column of o.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the decay by ex2.approx; decayed state, product and sum are rounded each, as the source's PyTorch has it; o is
 * one chain of fmaf a column.
 * Launch: a block of 128 threads a head of a request; no shared memory, two barriers a step.
 * Limits: none.
 * Source: 001. There it is five times slower than Triton: rows lie apart, so that no access is coalesced. */
#include "kernels/lightning_decode/lightning.h"

namespace {

template <class T> __global__ void __launch_bounds__(AT_LIGHTNING_THREADS) decode(at_lightning_view<T> a) {
    const at_lightning_block<T> head(a, blockIdx.x);
    for (int step = 0; step < head.steps; step++) {
        const T *q = head.q + step * head.d, *k = head.k + step * head.d, *v = head.v + step * head.e;
        for (int i = (int)threadIdx.x; i < head.d; i += AT_LIGHTNING_THREADS)
            for (int j = 0; j < head.e; j++) {
                float *x = &head.kv[i * head.e + j];
                const float decayed = head.decay * *x;
                *x = decayed + head.product(at_float(k[i]), at_float(v[j]));
            }
        at_sync();
        for (int j = (int)threadIdx.x; j < head.e; j += AT_LIGHTNING_THREADS) {
            float sum = 0.0f;
            for (int i = 0; i < head.d; i++)
                sum = fmaf(at_float(q[i]), head.kv[i * head.e + j], sum);
            head.o[step * head.e + j] = at_round_to<T>(sum);
        }
        at_sync(); /* before the next step changes the state */
    }
}

int launch(const struct at_launch *launch) {
    return at_lightning_launch(launch->problem, [=]<class T>() { return at_lightning_heads<T>(launch, decode<T>, 0); });
}

} // namespace

AT_KERNEL(lightning_decode, 01_naive) = {
    .summary = "a thread a row of the state, in global memory",
    .source = "001",
    .numerics = AT_LIGHTNING_NUMERICS(0, 1, 0, AT_TREE_SEQUENTIAL),
    .supports = nullptr,
    .workspace = nullptr,
    .launch = launch,
};
