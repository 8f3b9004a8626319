/* AsyncT attention over OpenBLAS, P in f32; one query a request.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the baseline itself: f32 sums of q.k and P.V in whatever order the BLAS takes (so no modelled
 * verdict), scale on the finished score, FIR tap by tap with fmaf, gate by fminf/fmaxf (a NaN becomes an
 * ordinary number), gamma on p, P not rounded. Keys hidden from a query are not multiplied for it.
 * Launch: one thread; scratch for K and V of one kv head and 32 rows of scores.
 * Limits: activations f32, f16 or bf16; at most one query a request.
 * Source: ours; the shared body is kernels/host/blas.c. */
#include "asynct_attention/asynct_attention.h"
#include "kernels/host/blas.h"

static const struct at_host_tensors tensors = AT_HOST_ASYNCT;

static const char *supports(const struct at_problem *problem) { return at_host_declines(problem, 1); }

static int launch(const struct at_launch *launch);

AT_KERNEL(asynct_decode, 00_blas_p32) = {
    .summary = "OpenBLAS sgemm for q.k and P.V, P in f32",
    .source = "ours",
    /* not tested: gamma_on: on p or on the output is one rounding of f32, which a limit does not resolve */
    .numerics = {
        .free_order = 1,
        .qk_unit = AT_UNIT_F32, /* whether the BLAS fuses depends on the core: the looser of the two */
        .qk_lanes = 1,
        .scale_on = AT_SCALE_ON_SCORE,
        .fir_order = AT_FIR_ORDER_TAPS,
        .fir_fma = 1,
        .p = AT_F32,
        .gamma_on = AT_GAMMA_ON_P,
        .clamp = AT_CLAMP_FMINMAX,
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
    return at_host_blas(launch, &tensors, &at_kernel_asynct_decode_00_blas_p32.numerics);
}
