/* Deals work of known cost to shards so that they take about as long as each other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_BALANCE_H
#define AT_BALANCE_H

#include <stdint.h>

#include "attest/status.h"

struct at_balance_item {
    double cost;  /* >= 0, in any unit */
    int64_t kind; /* items whose costs are wrong alike: each kind is spread over all shards by itself */
};

/* shard[i] = 0 .. shards - 1 for item i: of the kinds, that with the largest item first, and of a kind the largest item
 * first, each to the shard with the least until then (the first of several). Depends on the items and their order alone.
 * AT_NO_MEMORY. Takes n log(n shards). */
at_status at_balance(const struct at_balance_item *items, int64_t n, int shards, int *shard);

#endif
