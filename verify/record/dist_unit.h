/* Counting one unit, a request of a layer: from the codes of q, k and v to a layer's sums.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is counted, to the bit, whoever counts it (all in double, each +, -, *, / rounded once, no fma):
 *
 *   raw     the products' sum of at_fast_product(): exact where it can be, else compensated (Dot2)
 *   scaled  s = scale * raw
 *   fir, p  z and p of at_asynct_gate_row(); a score that is not finite makes them NaN
 *   p       (softmax) e / sum, with e_t = at_plain_exp(s_t - max), max over the visible s that are numbers (0 when
 * there is none above -inf), sum in ascending t out     sum in ascending t over the keys whose p is not 0 of (gamma
 * p_t) v_tc (asynct); of e_t v_tc, divided by the sum (softmax); 0 without a visible key row_max largest visible s, NaN
 * if one is; row_sum: sum of p (asynct) or e (softmax) in ascending t entropy H = log2(sum) - (sum of w log2 w in
 * ascending t over w != 0) / sum with w = p or e and at_plain_log2(); at least 0.  support: at_plain_exp2(H).  share0:
 * w_0 / sum.  Rows with sum 0 have none of the three, rows without a visible key no row_max and row_sum either:
 * n_empty.
 *
 * Each is rounded once, ties to even, to the code of the bins. Hidden pairs are counted as masked, nowhere else.
 * The distance of query i and key t is abs(keys - queries + i - t). */
#ifndef AT_DIST_UNIT_H
#define AT_DIST_UNIT_H

#include "fast/vector.h"
#include "verify/archive/distributions.h"

/* A unit, or a tile of its queries. Views only. */
struct at_dist_unit {
    int64_t request;
    int64_t queries, keys;     /* of the request; causal: query i sees keys t <= keys - queries + i */
    int64_t first_query, tile; /* the queries at hand: [first_query, first_query + tile); first_query % 64 is 0, and so
                                  is tile but for the last */
    int64_t d;                 /* heads are those of the shape */
    enum at_format format;     /* of q, k and v */
    const void *q, *k, *v;     /* codes: [tile h d], [keys hk d] */
    int softmax, causal;
    const struct at_asynct_head *heads; /* [h]; softmax: scale alone */
    int only_compute;                   /* 1: nothing is rounded and counted, to time the rest */
    int without_blas;                   /* 1: the same bits by compensated sums alone */
};

struct at_dist_workers; /* memory of the threads, kept from unit to unit */
at_status at_dist_workers_create(int threads, struct at_dist_workers **workers);
void at_dist_workers_destroy(struct at_dist_workers *workers);

/* Adds the unit to a layer's sums; k and v with the tile that has query 0 (or without queries). Same bits for any
 * number of threads and any cut into tiles. AT_USAGE when a sum passes 64 bits. */
at_status at_dist_count_unit(struct at_dist_workers *workers, const struct at_dist_unit *unit,
                             struct at_dist_layer *layer);

#endif
