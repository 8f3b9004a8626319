/* softmax attention with f16 accumulation by the tensor-core rule; any number of queries a request, causal or not.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: q.k and P.V accumulate in f16, 16 products a step, one rounding to nearest a step, as mma.sync f16 ->
 * f16 of sm_90 does; no guard against overflow. Between them f32: scale on the score, row maximum first, expf, sum of
 * unrounded weights; P rounded to f16 and not divided by the sum, so P.V is up to sum |v| and can overflow; one
 * division at the end. The last step of a row is filled up with zeros.
 * Launch: one thread; scratch for K and V of one kv head, decoded.
 * Limits: f16 activations.
 * Source: ours; the shared body is kernels/host/tc_f16.c, the arithmetic kernels/host/tensor_f16.c. */
#include "softmax_attention/softmax_attention.h"
#include "kernels/host/tc_f16.h"

static const struct at_host_tensors tensors = AT_HOST_SOFTMAX;

static const char *supports(const struct at_problem *problem) {
    if (problem->dtype != AT_F16)
        return "f16 accumulators take f16 operands only";
    return at_host_declines(problem, 0);
}

static int launch(const struct at_launch *launch);

AT_KERNEL(softmax_prefill, 00_tc_f16) = {
    .summary = "f16 accumulation in fused steps of 16, by the tensor-core rule",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_TC_F16,
        .qk_lanes = 1,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_F16,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_TC_F16,
        .pv_chunk = 16,
        .guard = AT_GUARD_NONE,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_MULTIPLIED,
    },
    .supports = supports,
    .workspace = at_host_tc_f16_workspace,
    .launch = launch,
};

static int launch(const struct at_launch *launch) {
    return at_host_tc_f16(launch, &tensors, &at_kernel_softmax_prefill_00_tc_f16.numerics);
}
