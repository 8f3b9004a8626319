/* New keys and values into a cache: a copy a token.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: bits are copied.
 * Launch: one thread; no scratch.
 * Limits: none.
 * Source: ours. */
#include "kv_write/kv_write.h"

#include <string.h>

#include "attest/kernel.h"

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const size_t row = (size_t)(p->sizes.hk * p->sizes.d) * at_format_info(p->dtype)->bytes;
    for (int which = 0; which < 2; which++) {
        const char *from = p->tensors[AT_KV_WRITE_NEW_K + which].data;
        char *to = p->tensors[AT_KV_WRITE_K + which].data;
        for (int64_t token = 0; token < p->sizes.tokens; token++) {
            const int64_t slot = at_tensor_i32(&p->tensors[AT_KV_WRITE_SLOT_MAPPING], token);
            if (slot >= 0)
                memcpy(to + (size_t)slot * row, from + (size_t)token * row, row);
        }
    }
    return 0;
}

AT_KERNEL(kv_write, 00_memcpy) = {
    .summary = "a copy a token",
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
