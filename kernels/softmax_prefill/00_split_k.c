/* softmax attention with the keys of a row cut into ranges of 256; any number of queries a request, causal or not.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: plain f32, every order declared: q.k a chain of fmaf, scale on the score; ranges of 256 keys, each with
 * its own maximum and sum; P.V a chain of fmaf over the keys of a range whose weight is not 0; partial results joined
 * in ascending order, each weighted with exp(its maximum - the row's), and one division at the end.
 * Launch: one thread; scratch for the partial results of one row.
 * Limits: activations f32, f16 or bf16.
 * Source: ours; the shared body is kernels/host/split_k.c. */
#include "softmax_attention/softmax_attention.h"
#include "kernels/host/split_k.h"

static const struct at_host_tensors tensors = AT_HOST_SOFTMAX;

static const char *supports(const struct at_problem *problem) { return at_host_declines(problem, 0); }

static int64_t workspace(const struct at_problem *problem);
static int launch(const struct at_launch *launch);

AT_KERNEL(softmax_prefill, 00_split_k) = {
    .summary = "f32 fmaf chains over ranges of 256 keys, joined in order",
    .source = "ours",
    /* not tested: block: f32 rescaling is of the size that another right exponential may be off by */
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 1,
        .scale_on = AT_SCALE_ON_SCORE,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .split = 256,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};

static int64_t workspace(const struct at_problem *problem) {
    return at_host_split_k_workspace(problem, &at_kernel_softmax_prefill_00_split_k.numerics);
}

static int launch(const struct at_launch *launch) {
    return at_host_split_k(launch, &tensors, &at_kernel_softmax_prefill_00_split_k.numerics);
}
