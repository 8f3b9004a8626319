/* softmax attention over OpenBLAS, P in bf16; any number of queries a request, causal or not.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: q.k and P.V are f32 sums in whatever order the BLAS takes (so there is no modelled verdict); scale on
 * the finished score, row maximum first, expf, sum of unrounded weights, one division at the end. Keys hidden from a
 * query are not multiplied for it. Unlike 00_blas_p32, P (the numerator only) is rounded once to bf16 before P.V, as a
 * tensor-core kernel must.
 * Launch: one thread; scratch for K and V of one kv head and 32 rows of scores.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the shared body is kernels/host/blas.c. */
#include "softmax_attention/softmax_attention.h"
#include "kernels/host/blas.h"

static const struct at_host_tensors tensors = AT_HOST_SOFTMAX;

static const char *supports(const struct at_problem *problem) { return at_host_declines(problem, 0); }

static int launch(const struct at_launch *launch);

AT_KERNEL(softmax_prefill, 00_blas_pbf16) = {
    .summary = "OpenBLAS sgemm for q.k and P.V, P in bf16",
    .source = "ours",
    .numerics = {
        .free_order = 1,
        .qk_unit = AT_UNIT_F32, /* whether the BLAS fuses depends on the core: the looser of the two */
        .qk_lanes = 1,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_BF16,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = at_host_blas_workspace,
    .launch = launch,
};

static int launch(const struct at_launch *launch) {
    return at_host_blas(launch, &tensors, &at_kernel_softmax_prefill_00_blas_pbf16.numerics);
}
