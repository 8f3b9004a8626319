/* One thread's memory and counts while it works on a unit; for the files dist_*.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_WORKER_H
#define AT_DIST_WORKER_H

#include <pthread.h>

#include "fast/score_rows.h"
#include "verify/record/dist_unit.h"

enum {
    AT_DIST_SLOTS = 65536,
    AT_DIST_PANEL = 256,    /* keys decoded at a time */
    AT_DIST_ROWS = 192,     /* most query rows of a block */
    AT_DIST_ROW_STATS = 5,  /* row_max .. share0 */
    AT_DIST_HOLD = 1 << 18, /* scores of a block, unless that is less than AT_DIST_FEW rows */
    AT_DIST_FEW = 64,
    AT_DIST_MAX = 1 << 24 /* scores of a block in any case, unless one row has more */
};

/* Rows of queries of one head against all keys that they see. */
struct at_dist_block {
    int64_t head, kv_head;
    int64_t first, rows; /* queries, by their number in the request */
    int64_t keys;        /* visible to the last row */
};

/* Sums of one head (or key/value head), 32-bit counts of what has not been given to the layer. */
struct at_dist_local {
    uint32_t *counts[AT_DIST_COUNT]; /* [AT_DIST_SLOTS]; NULL: not wanted */
    struct at_dist_tally tally[AT_DIST_COUNT];
    uint64_t mass[AT_DIST_MAX_DISTANCES];
    uint64_t zero[AT_DIST_ZERO_COUNT];
    struct at_ledger_row ledger[AT_DIST_STAGES];
    int mass_overflow;
};

struct at_dist_worker {
    struct at_dist_local local;
    struct at_fast_codes codes;
    uint32_t *slots_memory;
    /* blocks: sizes they were made for, and one allocation */
    int64_t rows, stride, d, pages, group_rows;
    double *memory;
    double *q, *panel, *turned; /* [rows d], [PANEL d], [d PANEL] */
    double *scores;             /* [rows stride]: q.k, then what multiplies v */
    double *s, *z, *p, *live;   /* [stride] */
    double *o;                  /* [rows max(d, 16)] */
    double *row_sum;            /* [rows] */
    double *stat;               /* [AT_DIST_ROW_STATS rows] */
    int64_t stats[AT_DIST_ROW_STATS];
    int32_t *q_span, *k_span; /* [rows], [PANEL] */
    uint16_t *mask;           /* [rows pages] */
    uint16_t *tile;           /* [pages] keys of the current tile with a p that is not 0 */
    uint16_t *group;          /* [group_rows pages] the same of each query over the heads of a group */
    uint32_t *slots;          /* [max(stride, rows)] */
};

struct at_dist_workers {
    int n;
    pthread_mutex_t lock; /* of the layer's sums */
    struct at_dist_worker *worker;
};

/* Makes room for blocks of these sizes and histograms of the shape's quantities. */
at_status at_dist_worker_fit(struct at_dist_worker *w, const struct at_dist_shape *shape, int64_t rows, int64_t keys,
                             int64_t d, int64_t group_rows);
void at_dist_worker_release(struct at_dist_worker *w);

/* n values into the local counts of a quantity. */
void at_dist_worker_count(struct at_dist_worker *w, enum at_dist_what what, int64_t n, const double *x);
/* Key/value head: k, v, and zero shares of a group. Head: the rest. Adds the local sums to the layer and clears them;
 * the caller holds the lock. AT_USAGE when a sum passes 64 bits. */
at_status at_dist_worker_flush(struct at_dist_worker *w, int kv, int64_t head, int64_t request,
                               struct at_dist_layer *layer);

/* One block: scores, rows, outputs; counted. */
void at_dist_block_run(struct at_dist_worker *w, const struct at_dist_unit *unit, const struct at_dist_shape *shape,
                       const struct at_dist_block *block, int64_t group_first);
/* Visible keys of query i of the request. */
int64_t at_dist_visible(const struct at_dist_unit *unit, int64_t i);

#endif
