/* Counting one unit, a request of a layer: from the codes of q, k and v to a layer's sums.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is counted is defined, to the bit, in reference/score_counts/score_counts.h, with no queries behind those of the
 * unit. The host takes raw from at_fast_product(), which is exact where it can be and Dot2 elsewhere, and z and p from
 * at_asynct_gate_row(). Each value is rounded once, ties to even, to the code of the bins. Beyond that definition, a
 * statistic's n_empty counts the rows that have none, and hidden pairs are counted as masked. */
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
