/* Other problems that hold rows of a problem: what a trial of a property launches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CERTIFY_TRIAL_H
#define AT_CERTIFY_TRIAL_H

#include "verify/judge/batch.h"

/* A problem beside another, and which of its rows are rows of that one. */
struct at_trial {
    struct at_problem problem;
    struct at_batch_part part; /* its memory, of a gathered batch */
    void *memory;              /* its memory, of pieces */
    int64_t n, *base, *other;  /* row base[i] of that problem is row other[i] of this one */
};

/* Units of any operator that has a batch, in this order; the first n_same of them are compared. AT_NO_MEMORY; AT_USAGE where the
 * operator does not take such a batch. */
at_status at_trial_units(const struct at_problem *problem, const int64_t *units, int64_t n, int64_t n_same,
                         struct at_trial *trial);

/* ---- attention: a batch made of parts of requests ---- */

/* Queries [first, first + queries) of a request and its first `keys` keys. Before them stand `lead` queries, copies of the
 * request's first one, which are not compared. request -1: padding, `queries` that nobody asked and no keys. */
struct at_piece {
    int64_t request, first, queries, keys, lead;
};
/* Where keys lie, and what is allotted. */
struct at_trial_layout {
    int64_t page;      /* keys a page; 0: contiguous */
    int64_t capacity;  /* at least; whole pages, and no less than the longest piece */
    uint64_t shuffled; /* pages are dealt in an order of this seed; 0: one after another */
};
/* 1 where a problem can be cut so: an attention whose outputs belong to queries. */
int at_trial_is_cut(const struct at_problem *problem);
/* The layout that the problem has, its pages one after another. */
struct at_trial_layout at_trial_layout_of(const struct at_problem *problem);
int64_t at_trial_queries(const struct at_problem *problem, int64_t request);
int64_t at_trial_keys(const struct at_problem *problem, int64_t request);
/* The whole of request r, and padding of one request. */
struct at_piece at_trial_request(const struct at_problem *problem, int64_t r);
struct at_piece at_trial_padding(int64_t queries);
/* problem is cut (at_trial_is_cut). Two spare pages belong to nobody. AT_NO_MEMORY. */
at_status at_trial_pieces(const struct at_problem *problem, const struct at_piece *pieces, int64_t n,
                          const struct at_trial_layout *layout, struct at_trial *trial);

void at_trial_release(struct at_trial *trial);

#endif
