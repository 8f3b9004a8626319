/* Which request is which: by the ids of its tokens, which stay the same whatever happens to the values.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A capture brings them as `token_ids` i32, one for each key token, the requests in the order of key_start. They name a
 * request in any order of requests and under any noise; a capture without them leaves `attest drift` with the requests'
 * sizes and with how alike their values are. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "attest/buffer.h"
#include "verify/record/dist_source.h"

enum { IDS_AT_A_TIME = 4096 };

at_status at_dist_source_check_ids(struct at_dist_source *s) {
    s->ids = s->reader ? at_reader_find(s->reader, "token_ids") : -1;
    if (s->ids < 0)
        return AT_OK;
    const struct at_file_tensor *t = at_reader_tensor(s->reader, s->ids);
    const int64_t tokens = s->key_start[s->requests];
    if (!t->supported || t->format != AT_I32 || t->rank != 1 || t->count != tokens)
        return AT_FAIL(AT_USAGE,
                       "%s: token_ids has type %s, rank %d and %lld values, wanted i32 and the id of each of the %lld "
                       "key tokens",
                       s->name, t->type_name, t->rank, (long long)t->count, (long long)tokens);
    return AT_OK;
}

at_status at_dist_source_identity(struct at_dist_source *s, int64_t request, char *identity, size_t size) {
    int32_t ids[IDS_AT_A_TIME];
    identity[0] = 0;
    if (s->ids < 0)
        return AT_OK;
    /* Steps of one text have its keys in common, and other queries. */
    const int64_t queries = at_dist_source_queries(s, request), start = s->key_start[request],
                  end = s->key_start[request + 1];
    uint64_t hash = at_hash_bytes(&queries, sizeof queries, AT_HASH_START);
    for (int64_t at = start; at < end; at += IDS_AT_A_TIME) {
        const int64_t n = end - at < IDS_AT_A_TIME ? end - at : IDS_AT_A_TIME;
        AT_TRY(at_reader_read(s->reader, s->ids, at, n, ids));
        hash = at_hash_bytes(ids, (size_t)n * sizeof *ids, hash);
    }
    snprintf(identity, size, "%016" PRIx64, hash);
    return AT_OK;
}
