/* Slots of new tokens: where each goes, and what is a mapping.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cache/cache.h"

#include <stdlib.h>

int64_t at_cache_slot_of(const struct at_problem *p, int mapping, int fault, int64_t token) {
    const int64_t slot = at_tensor_i32(&p->tensors[mapping], token), page = p->sizes.page;
    if (slot < 0)
        return fault == AT_CACHE_PADDING_WRITTEN ? p->sizes.slots - 1 : -1;
    if (fault == AT_CACHE_NEXT_SLOT)
        return (slot + 1) % p->sizes.slots;
    return fault == AT_CACHE_PAGE_START && page > 0 ? slot / page * page : slot;
}

at_status at_cache_check_sizes(const struct at_problem *p) {
    const struct at_sizes *s = &p->sizes;
    if (s->tokens < 0 || s->slots < 0 || s->page < 0)
        return AT_FAIL(AT_USAGE, "%s: tokens, slots, page are %lld, %lld, %lld, wanted 0 or more", p->op->name,
                       (long long)s->tokens, (long long)s->slots, (long long)s->page);
    if (s->page > 0 && s->slots % s->page)
        return AT_FAIL(AT_USAGE, "%s: %lld slots are not whole pages of %lld", p->op->name, (long long)s->slots,
                       (long long)s->page);
    return AT_OK;
}

/* With two tokens for one slot the result would depend on which is written last. */
at_status at_cache_check_mapping(const struct at_problem *p, int mapping) {
    at_status status = AT_OK;
    char *taken = calloc((size_t)p->sizes.slots + 1, 1);
    if (!taken)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for a map of %lld slots", p->op->name, (long long)p->sizes.slots);
    for (int64_t token = 0; token < p->sizes.tokens; token++) {
        const int64_t slot = at_tensor_i32(&p->tensors[mapping], token);
        if (slot < -1 || slot >= p->sizes.slots)
            AT_FAIL_OUT(AT_USAGE, "%s: slot_mapping[%lld] is %lld, wanted -1 to %lld", p->op->name, (long long)token,
                        (long long)slot, (long long)p->sizes.slots - 1);
        if (slot >= 0 && taken[slot]++)
            AT_FAIL_OUT(AT_USAGE, "%s: slot_mapping[%lld] is %lld, as that of a token before it; wanted each once",
                        p->op->name, (long long)token, (long long)slot);
    }
out:
    free(taken);
    return status;
}
