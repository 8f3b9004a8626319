/* What kernels of slot mappings share: the tensors, and the slot of a key.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SLOT_VIEW_H
#define AT_SLOT_VIEW_H

#include "attest/kernel.h"
#include "kernels/device/device.h"
#include "slot_mapping/slot_mapping.h"

constexpr int AT_SLOT_THREADS = 256;

struct at_slot_view {
    const int32_t *query_start, *seq_lens, *key_start, *block_table; /* one of the last two is absent */
    int32_t *slot_mapping;
    int b, tokens, page, max_pages;

    static at_slot_view of(const struct at_problem *p) {
        const auto ints = [p](int t) { return static_cast<int32_t *>(p->tensors[t].data); };
        return { ints(AT_SLOT_QUERY_START), ints(AT_SLOT_SEQ_LENS), ints(AT_SLOT_KEY_START),
                 ints(AT_SLOT_BLOCK_TABLE), ints(AT_SLOT_MAPPING),  (int)p->sizes.b,
                 (int)p->sizes.tokens,      (int)p->sizes.page,     (int)p->sizes.max_pages };
    }

    /* Of key t of request r. */
    __device__ int slot(int r, int t) const {
        if (page == 0)
            return key_start[r] + t;
        return block_table[(int64_t)r * max_pages + t / page] * page + t % page;
    }
};

#endif
