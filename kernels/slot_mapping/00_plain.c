/* Slots of new tokens: one request after the other.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: whole numbers.
 * Launch: one thread; no scratch.
 * Limits: none.
 * Source: ours. */
#include "slot_mapping/slot_mapping.h"

#include "attest/kernel.h"

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_tensor *t = p->tensors;
    const int64_t page = p->sizes.page;
    int32_t *slot = t[AT_SLOT_MAPPING].data, *const end = slot + p->sizes.tokens;
    for (int64_t r = 0; r < p->sizes.b; r++) {
        const int64_t keys = at_tensor_i32(&t[AT_SLOT_SEQ_LENS], r);
        const int64_t first = at_tensor_i32(&t[AT_SLOT_QUERY_START], r);
        for (int64_t k = keys - (at_tensor_i32(&t[AT_SLOT_QUERY_START], r + 1) - first); k < keys; k++) {
            const int64_t row = r * p->sizes.max_pages;
            const int64_t at = page ? at_tensor_i32(&t[AT_SLOT_BLOCK_TABLE], row + k / page) * page + k % page
                                    : at_tensor_i32(&t[AT_SLOT_KEY_START], r) + k;
            *slot++ = (int32_t)at;
        }
    }
    while (slot < end)
        *slot++ = -1;
    return 0;
}

AT_KERNEL(slot_mapping, 00_plain) = {
    .summary = "one request after the other",
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
    .launch = launch,
};
