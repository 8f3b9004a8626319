/* Inputs that show an order of summation: +M and -M, which swallow, among units.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of a sum over n terms, two are M and -M and the rest are units u, so small that M + (n u) = M in the accumulator. A unit
 * that meets M before -M does is lost; all others survive. So the sum is u times the number of terms outside the
 * smallest subtree that holds both. Source of the idea: FPRev. */
#ifndef AT_MASKS_H
#define AT_MASKS_H

#include "verify/fit/probe.h"

/* Two terms of a sum of n. */
struct at_pair {
    int64_t i, j;
};
/* Pair c of the n (n - 1) / 2 in order: (0, 1), (0, 2), (1, 2), (0, 3), ... */
struct at_pair at_pair_of(int64_t c);
/* Pair c of a choice that has near and far terms alike, for sums of which not all pairs are asked. */
struct at_pair at_pair_some(int64_t c, int64_t n);

/* Fills the inputs of a built problem for a probe of that kind; nothing for AT_PROBE_DRAWN. `all`: pairs in order, else some.
 * Of V, and of a second factor, only every `apart`-th term is not 0, and pairs are of those. */
void at_masks_fill(struct at_case_data *data, enum at_probe_kind kind, int all, int64_t apart);
/* How many pairs a problem of this kind has room for. */
int64_t at_masks_room(const struct at_problem *problem, enum at_probe_kind kind);
/* Of the outputs of such a problem with all pairs: how many units survived for pair c, not rounded. NaN: not to be read. */
double at_masks_survivors(const struct at_problem *problem, const struct at_outputs *got, enum at_probe_kind kind,
                          int64_t apart, int64_t c);
/* The scale that a case with masks in q.k has: one unit more is a score (softmax) or weight (a gate) that can be told. */
double at_masks_scale(const struct at_op *op, int64_t d);

#endif
