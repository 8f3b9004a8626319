/* What operators with rotary position embedding share: sizes and parameters, ways of being wrong, checks, and the turn of a
 * token's heads.
 * SPDX-License-Identifier: Apache-2.0
 *
 * In each head the first `rot` channels are pairs, and pair i of a token at position p turns by p * base^(-2 i / rot):
 *
 *   y1 = x1 cos - x2 sin     y2 = x2 cos + x1 sin
 *
 * Channels from rot on are copied, to the bit (a model that rotates a part of each head). Cosines and sines are an input, a
 * table of one row a position, which a model computes once: whoever fills it decides what an angle is, and kernels only
 * read it. `base` says what it was filled by; no kernel needs it. */
#ifndef AT_ROTATION_H
#define AT_ROTATION_H

#include "attest/op.h"

/* Which two of a head's first `rot` channels are pair i: i and i + rot/2; or 2 i and 2 i + 1. */
enum at_rope_style { AT_ROPE_HALF_SPLIT, AT_ROPE_INTERLEAVED };
/* The format of the table. */
enum at_rope_table { AT_ROPE_TABLE_F32, AT_ROPE_TABLE_INPUT };

struct at_rope_own {
    int64_t rot, max_position;
    float base;
    int32_t style, table; /* enum at_rope_style, enum at_rope_table */
};
AT_OWN_STRUCT(at_rope_own)

/* Which channels pair i of `rot` is. */
static inline int64_t at_rope_first(int32_t style, int64_t i) { return style == AT_ROPE_HALF_SPLIT ? i : 2 * i; }
static inline int64_t at_rope_second(int32_t style, int64_t rot, int64_t i) {
    return style == AT_ROPE_HALF_SPLIT ? i + rot / 2 : 2 * i + 1;
}

/* The table of these, for a descriptor, and what cases may differ in. */
enum { AT_ROPE_ROT, AT_ROPE_MAX_POSITION, AT_ROPE_BASE, AT_ROPE_STYLE, AT_ROPE_TABLE, AT_ROPE_SCALARS };
extern const struct at_scalar at_rope_scalars[AT_ROPE_SCALARS];
extern const struct at_factor at_rope_factor_style, at_rope_factor_table, at_rope_factor_base;

/* Ways of being wrong, the first of an operator's decoys. */
enum at_rope_fault {
    AT_ROPE_RIGHT = -1,
    AT_ROPE_SIN_NEGATED,
    AT_ROPE_COS_SIN_SWAPPED,
    AT_ROPE_OTHER_STYLE,
    AT_ROPE_NEXT_POSITION,
    AT_ROPE_PREFIX_DROPPED,
    AT_ROPE_POSITION_BF16,
    AT_ROPE_OTHER_BASE,
    AT_ROPE_WHOLE_HEAD,
    AT_ROPE_REST_ZEROED,
    AT_ROPE_K_COPIED,
    AT_ROPE_HEADS_OF_K,
    AT_ROPE_FAULTS
};
/* clang-format off */
#define AT_ROPE_DECOYS \
    [AT_ROPE_SIN_NEGATED]     = { "sin_negated", "pairs turn backwards" }, \
    [AT_ROPE_COS_SIN_SWAPPED] = { "cos_sin_swapped", "sines are taken for cosines, cosines for sines" }, \
    [AT_ROPE_OTHER_STYLE]     = { "other_style", "pairs of the other style" }, \
    [AT_ROPE_NEXT_POSITION]   = { "next_position", "each token turns as the one after it" }, \
    [AT_ROPE_PREFIX_DROPPED]  = { "prefix_dropped", "positions are counted from a request's first new token" }, \
    [AT_ROPE_POSITION_BF16]   = { "position_bf16", "positions are rounded to bf16, which has whole numbers up to 256" }, \
    [AT_ROPE_OTHER_BASE]      = { "other_base", "a table of 50 times the base" }, \
    [AT_ROPE_WHOLE_HEAD]      = { "whole_head", "all of a head is rotated" }, \
    [AT_ROPE_REST_ZEROED]     = { "rest_zeroed", "channels from rot on are 0" }, \
    [AT_ROPE_K_COPIED]        = { "k_copied", "keys are not rotated" }, \
    [AT_ROPE_HEADS_OF_K]      = { "heads_of_k", "as many heads of q are rotated as k has" }
/* clang-format on */

/* ---- of a descriptor ---- */

/* No case has half a pair, channels that a head lacks, or a token beyond the table. */
void at_rope_complete(struct at_problem *problem, unsigned given);
enum at_format at_rope_own_format(const struct at_problem *problem, int tensor);
/* AT_USAGE with what was found and what is wanted: rot, max_position, base, style, table; elements of every tensor; rows of the
 * table that tokens ask for. `positions` is the index of a tensor. */
at_status at_rope_check_own(const struct at_problem *problem);
at_status at_rope_check_shapes(const struct at_problem *problem);
at_status at_rope_check_positions(const struct at_problem *problem, int positions);
/* Different positions; 0 where memory lacks for a mark each. */
int64_t at_rope_used_positions(const struct at_problem *problem, int positions);

/* ---- rows ---- */

/* An evaluation of tokens. numerics NULL: limits are the reference's own error. */
struct at_rotation {
    const struct at_problem *problem;
    const struct at_numerics *numerics;
    struct at_eval *eval;
    int positions,
        table; /* tensors: i32 [tokens]; [max_position rot], of each position rot/2 cosines, then rot/2 sines */
    int modelled, fault;    /* the declared arithmetic; enum at_rope_fault */
    struct at_rope_own own; /* as the fault has it */
    int64_t run;            /* first token of the present one's request */
};

/* own as the problem has it, or as r->fault makes it. */
void at_rotation_init(struct at_rotation *r);
/* The next token; before the first one, begin. */
void at_rotation_begin(struct at_rotation *r, int64_t token);
void at_rotation_next(struct at_rotation *r, int64_t token);
/* Heads of a token in tensor `in` go to row `row` of `out`; the first `turned` of them are rotated. */
void at_rotation_heads(const struct at_rotation *r, int in, int64_t token, int out, int64_t row, int64_t heads,
                       int64_t turned);
/* n elements of `in` as they are. */
void at_rotation_keep(const struct at_rotation *r, int in, int64_t from, int out, int64_t to, int64_t n);

/* Factors on unit roundoff and underflow unit of each rounding; 1 except in the tests that show that each is needed. */
enum at_rope_stage { AT_ROPE_COS_PRODUCT, AT_ROPE_SIN_PRODUCT, AT_ROPE_SUM, AT_ROPE_STORE, AT_ROPE_STAGES };
extern double at_rope_test_u[AT_ROPE_STAGES], at_rope_test_eta[AT_ROPE_STAGES];

#endif
