/* What operators that write new keys and values into the slots of a cache share: where a token goes, ways of being wrong, and
 * what is a mapping.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CACHE_H
#define AT_CACHE_H

#include "attest/op.h"

/* Ways of being wrong, beside each other in an operator's decoys. */
enum at_cache_fault {
    AT_CACHE_RIGHT = -1,
    AT_CACHE_NOT_WRITTEN,
    AT_CACHE_NEXT_SLOT,
    AT_CACHE_PAGE_START,
    AT_CACHE_PADDING_WRITTEN,
    AT_CACHE_K_AND_V_SWAPPED,
    AT_CACHE_FAULTS
};
/* clang-format off */
#define AT_CACHE_DECOYS(first) \
    [(first) + AT_CACHE_NOT_WRITTEN]     = { "not_written", "the cache stays as it was" }, \
    [(first) + AT_CACHE_NEXT_SLOT]       = { "next_slot", "each token goes to the slot after its own" }, \
    [(first) + AT_CACHE_PAGE_START]      = { "page_start", "each token goes to the first slot of its page" }, \
    [(first) + AT_CACHE_PADDING_WRITTEN] = { "padding_written", "a token of slot -1 goes to the last slot" }, \
    [(first) + AT_CACHE_K_AND_V_SWAPPED] = { "k_and_v_swapped", "keys go to v, values to k" }
/* clang-format on */

/* Where a token goes, right or wrong; -1: nowhere. `mapping` is the index of a tensor, i32 [tokens]. */
int64_t at_cache_slot_of(const struct at_problem *problem, int mapping, int fault, int64_t token);
/* AT_USAGE with what was found and what is wanted: tokens, slots, page; each slot named once at most. */
at_status at_cache_check_sizes(const struct at_problem *problem);
at_status at_cache_check_mapping(const struct at_problem *problem, int mapping);

#endif
