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
/* Keys that a row sees under a causal mask which begins at the request's first key: query i sees keys 0 to i. It is the mask
 * meant here, which ends at the last key, where a request has as many queries as keys. `visible` without a mask. */
int64_t at_attn_visible_top_left(const struct at_problem *problem, const struct at_attn_row *row);
/* Slot of key t of a request; t < seq_lens. */
int64_t at_attn_slot(const struct at_problem *problem, int64_t request, int64_t t);
/* Element index of the first of d values of key t for kv_head, in k or v. */
int64_t at_attn_kv_index(const struct at_problem *problem, int64_t request, int64_t t, int64_t kv_head);

/* The checks both operators share: sizes positive (b, tokens, sk may be 0), hk divides h, starts
 * ascending and ending at tokens/slots, every page of every key in range, scale finite. */
at_status at_attn_check(const struct at_problem *problem);
int64_t at_attn_rows(const struct at_problem *problem);
double at_attn_row_work(const struct at_problem *problem, int64_t row);

/* ---- the rest of their descriptors ---- */

/* Shared sizes and parameters of both; an operator adds its own. */
#define AT_ATTN_USES \
    (AT_USES(b) | AT_USES(h) | AT_USES(hk) | AT_USES(d) | AT_USES(tokens) | AT_USES(slots) | AT_USES(page) | \
     AT_USES(max_pages) | AT_USES(max_sq) | AT_USES(max_sk) | AT_USES(capacity) | AT_USES(scale) | AT_USES(causal))
/* and those of the gate. */
#define AT_ATTN_GATE_USES \
    (AT_USES(taps) | AT_USES(relu_pre) | AT_USES(edge) | AT_USES(fir_form) | AT_USES(clip_min) | AT_USES(clip_max))

/* Keys of their cases, up to where the gate's and an operator's own stand, and the last ones. */
#define AT_ATTN_KEYS \
    "scenario", "shrink", "step", "dataset", "layer", "b", "h", "hk", "sq", "sk", "prefix", "d", "pad_d", "page", \
        "causal", "dtype", "data", "seed", "scale"
#define AT_ATTN_GATE_KEYS "sigma", "window", "taps", "edge", "relu_pre", "clip", "gamma"
#define AT_ATTN_LAST_KEYS "hot", "require", "expect", NULL

/* What their cases may differ in, the gate's between. */
extern const struct at_factor at_attn_decode_group, at_attn_prefill_group, at_attn_head_size, at_attn_page,
    at_attn_dtype, at_attn_data, at_attn_causal, at_attn_scale, at_attn_decode_keys, at_attn_prefill_keys, at_attn_near,
    at_attn_batch, at_attn_rows_tile, at_attn_rows_near, at_attn_queries, at_attn_lengths;
extern const struct at_factor at_attn_fir, at_attn_edge, at_attn_relu, at_attn_clip, at_attn_gamma;
#define AT_ATTN_DOMAIN \
    &at_attn_decode_group, &at_attn_prefill_group, &at_attn_head_size, &at_attn_page, &at_attn_dtype, &at_attn_data, \
        &at_attn_causal, &at_attn_scale, &at_attn_decode_keys, &at_attn_prefill_keys, &at_attn_near, &at_attn_batch, \
        &at_attn_rows_tile, &at_attn_rows_near, &at_attn_queries, &at_attn_lengths
#define AT_ATTN_GATE_DOMAIN &at_attn_fir, &at_attn_edge, &at_attn_relu, &at_attn_clip, &at_attn_gamma

/* A batch is cut by requests. Paged keys and values stay shared and whole: only the table's rows are gathered. */
void at_attn_part_sizes(const struct at_problem *problem, const int64_t *requests, int64_t n, struct at_problem *part);
unsigned at_attn_part_fill(const struct at_problem *problem, const int64_t *requests, int64_t n,
                           struct at_problem *part);
void at_attn_unit_rows(const struct at_problem *problem, int64_t request, int64_t *first, int64_t *count);
int64_t at_attn_request_of_row(const struct at_problem *problem, int64_t row);
int64_t at_attn_next_head_row(const struct at_problem *problem, int64_t row);
/* Every input but the slots that hold nobody's keys. */
int at_attn_inputs_finite(const struct at_problem *problem);
/* Both products, of visible keys alone. */
double at_attn_flops(const struct at_problem *problem);
/* `roundings` of an operator whose output `output` is a sum over keys of factor[head] p_t v_t, p_t what it traces at
 * AT_STAGE_p. */
struct at_attn_weights {
    int output;
    const double *factor; /* [h]; NULL: 1 */
    int factor_first;     /* it is applied before P is rounded */
    int has_ends;
    double ends[2]; /* values of p that stand for a whole range of scores */
};
at_status at_attn_roundings(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                            int64_t row1, const struct at_attn_weights *weights, struct at_roundings *out);
/* Of k and v: the slots that hold keys. */
int64_t at_attn_moved(const struct at_problem *problem, int tensor);

#define AT_ATTN_FUNCTIONS \
    .kind = AT_KIND_ATTENTION, .has_ledger = 1, .batch = AT_DIM_b, .part_sizes = at_attn_part_sizes, \
    .part_fill = at_attn_part_fill, .unit_rows = at_attn_unit_rows, .request_of_row = at_attn_request_of_row, \
    .next_head_row = at_attn_next_head_row, .inputs_finite = at_attn_inputs_finite, .moved = at_attn_moved

#endif
