/* Slots of new tokens in a cache of keys and values: tensor indices of the operator, and ways of being wrong.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SLOT_MAPPING_H
#define AT_SLOT_MAPPING_H

#include "attest/op.h"

enum {
    AT_SLOT_QUERY_START, /* i32 [b+1]: where a request's new tokens begin; those from query_start[b] on are padding */
    AT_SLOT_SEQ_LENS,    /* i32 [b]: keys of a request, its new tokens among them, which are the last */
    AT_SLOT_KEY_START,   /* i32 [b+1]: slot of a request's key 0; absent when paged */
    AT_SLOT_BLOCK_TABLE, /* i32 [b max_pages]; absent when contiguous; -1 in unmapped entries */
    AT_SLOT_MAPPING,     /* i32 [tokens] */
};

/* Ways of being wrong, in the order of the operator's decoys. */
enum at_slot_fault {
    AT_SLOT_RIGHT = -1,
    AT_SLOT_PADDING_MAPPED,
    AT_SLOT_PREFIX_FORGOTTEN,
    AT_SLOT_NEXT_SLOT,
    AT_SLOT_PAGE_START,
    AT_SLOT_FIRST_PAGE,
    AT_SLOT_OTHER_REQUEST,
    AT_SLOT_TABLE_IGNORED,
    AT_SLOT_FAULTS
};

extern const struct at_op at_op_slot_mapping;

#endif
