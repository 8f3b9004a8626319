/* Sampling from the k largest logits of each row: the definition, tensor indices, own sizes and parameters, ways of being wrong.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of each row of logits l, kept = min(k, vocabulary) are kept, in the order of argmax: a NaN above all, -0 equal to 0, of equal
 * ones the first place first. Rank j stands at place o_j of the row. With temperature T
 *
 *   w_j     = 1 where l_j equals the largest, l_0; else exp((l_j - l_0) / T)      NaN where l_0 is one
 *   c_j     = w_0 + ... + w_j                                                     the output `cumulative`
 *   index   = o_j of the first rank j with c_j > u c_last; of the last where there is none; of rank 0 where l_0 is NaN
 *
 * u, one of [0, 1) a row, is an input, so that a draw is a function of its inputs.
 *
 * Declared arithmetic, all in f32: d = l_j - l_0, rounded; exp=libm: y = d r with r = 1 / T rounded, and an exponential within one
 * unit in the last place; exp=ex2_approx: 2^(d b) by the unit, b = log2(e) / T, both rounded once. c is one chain in the order of
 * ranks, the threshold u c_last is rounded. free_order: c is summed in any order.
 *
 * Places are whole numbers and compared as such. Where the errors of c that the declaration leaves room for let more than one
 * rank be the first above the threshold, the places of just these ranks are right (`admits`). */
#ifndef AT_TOP_K_H
#define AT_TOP_K_H

#include "attest/op.h"

enum {
    AT_TOP_K_LOGITS,     /* [tokens vocabulary] */
    AT_TOP_K_U,          /* f32 [tokens] */
    AT_TOP_K_INDEX,      /* i32 [tokens] */
    AT_TOP_K_CUMULATIVE, /* f32 [tokens kept] */
};

struct at_top_k_own {
    int64_t vocabulary, kept; /* kept: min(k, vocabulary) */
    int32_t k;
    float temperature;
};
AT_OWN_STRUCT(at_top_k_own)

/* Ways of being wrong, in the order of the operator's decoys. */
enum at_top_k_fault {
    AT_TOP_K_RIGHT = -1,
    AT_TOP_K_GREEDY,
    AT_TOP_K_NO_TEMPERATURE,
    AT_TOP_K_ONE_MORE,
    AT_TOP_K_ONE_LESS,
    AT_TOP_K_ASCENDING,
    AT_TOP_K_U_OF_NEXT_ROW,
    AT_TOP_K_RANK_FOR_PLACE,
    AT_TOP_K_NOT_NORMALISED,
    AT_TOP_K_FIRST_NOT_BELOW,
    AT_TOP_K_LAST_OF_TIES,
    AT_TOP_K_MAXIMUM_KEPT,
    AT_TOP_K_FAULTS
};

/* The ranks of one row. */
struct at_top_k_rank {
    double logit;
    int64_t place;
};
/* The `n` first of a row in order, by ascending places among equal ones, or descending. ranks: room for n. */
void at_top_k_ranks(const struct at_problem *problem, int64_t row, int64_t n, int descending_places,
                    struct at_top_k_rank *ranks);

/* c_j of a row, and what a kernel's may be: exact values with the limit of |kernel - c_j|, or the modelled ones with the least
 * and the largest right ones. Arrays of `kept`. */
struct at_top_k_sums {
    double *c, *low, *high;
};
void at_top_k_exact_sums(const struct at_problem *problem, const struct at_numerics *numerics,
                         const struct at_top_k_rank *ranks, struct at_top_k_sums *sums);
void at_top_k_modelled_sums(const struct at_problem *problem, const struct at_numerics *numerics,
                            const struct at_top_k_rank *ranks, struct at_top_k_sums *sums);

extern const struct at_op at_op_top_k;

#endif
