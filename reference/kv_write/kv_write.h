/* Writing new keys and values into a cache: tensor indices of the operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_KV_WRITE_H
#define AT_KV_WRITE_H

#include "cache/cache.h"

enum {
    AT_KV_WRITE_NEW_K,
    AT_KV_WRITE_NEW_V,
    AT_KV_WRITE_SLOT_MAPPING, /* i32 [tokens]: the cache's row of each token; -1: it is not written */
    AT_KV_WRITE_K,
    AT_KV_WRITE_V,
};

extern const struct at_op at_op_kv_write;

#endif
