/* AsyncT prefill: as 02_multi_q, with 4 queries a block.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01: the queries share what is read, not what is added.
 * Launch: grid (query heads, requests, tiles of 4 queries), 32 threads; shared memory 8 bytes a channel and
 * 32 bytes a tap. One barrier a key.
 * Limits: f16 or bf16; d 32, 64, 96, 128 or 256.
 * Source: 000 section 1.4: more blocks yet, the fastest there; a block is one warp. */
#include "kernels/asynct_prefill/asynct_multi_q.h"

AT_KERNEL(asynct_prefill, 02_multi_q_of_4) = {
    .summary = "4 queries a block, 8 threads a query, key by key",
    .source = "000 1.4",
    .numerics = {
        .qk_unit = AT_UNIT_F32_FMA,
        .qk_lanes = 8,
        .qk_tree = AT_TREE_BUTTERFLY,
        .scale_on = AT_SCALE_ON_SCORE,
        .fir_order = AT_FIR_ORDER_TAPS,
        .fir_fma = 1,
        .p = AT_F32,
        .gamma_on = AT_GAMMA_ON_P,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_F32_FMA,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
        .tail = AT_TAIL_UNREAD,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = at_multi_q_declines,
    .workspace = nullptr,
    .launch = at_multi_q_launch<4>,
};
