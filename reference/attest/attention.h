/* What AsyncT and softmax attention share: tensor indices, the layout of requests, and which keys a
 * query sees.
 * SPDX-License-Identifier: Apache-2.0
 *
 * q [tokens h d], k and v [slots hk d]; request r owns query tokens query_start[r] .. query_start[r+1]
 * and seq_lens[r] keys. Contiguous (page = 0): key t of request r is slot key_start[r] + t. Paged: slot
 * block_table[r][t / page] * page + t % page. "Prefill" and "decode" are shapes of one problem. */
#ifndef AT_ATTENTION_H
#define AT_ATTENTION_H

#include "attest/op.h"

/* The first tensors of both attention operators, in this order. */
enum {
    AT_ATTN_Q,
    AT_ATTN_K,
    AT_ATTN_V,
    AT_ATTN_QUERY_START, /* i32 [b+1] */
    AT_ATTN_SEQ_LENS,    /* i32 [b] */
    AT_ATTN_KEY_START,   /* i32 [b+1]; absent when paged */
    AT_ATTN_BLOCK_TABLE, /* i32 [b max_pages]; absent when contiguous; -1 in unmapped entries */
    AT_ATTN_COMMON
};

/* One row of work: a query token and a query head. */
struct at_attn_row {
    int64_t request, query, token, head, kv_head;
    int64_t keys;    /* sk of the request */
    int64_t visible; /* keys 0 .. visible-1 count; 0: none */
};

/* Row index = token * h + head. Finds the request by binary search. */
struct at_attn_row at_attn_row(const struct at_problem *problem, int64_t row);
/* Slot of key t of a request; t < seq_lens. */
int64_t at_attn_slot(const struct at_problem *problem, int64_t request, int64_t t);
/* Element index of the first of d values of key t for kv_head, in k or v. */
int64_t at_attn_kv_index(const struct at_problem *problem, int64_t request, int64_t t, int64_t kv_head);

/* The checks both operators share: sizes positive (b, tokens, sk may be 0), hk divides h, starts
 * ascending and ending at tokens/slots, every page of every key in range, scale finite. */
at_status at_attn_check(const struct at_problem *problem);
int64_t at_attn_rows(const struct at_problem *problem);
double at_attn_row_work(const struct at_problem *problem, int64_t row);

#endif
