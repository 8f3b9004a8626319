/* A block of query rows against all their keys: memory, loading and the two matrix products; for the files
 * of this folder.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block is some queries of one request times some query heads that share a key/value head. Its rows lie query
 * by query, so that the number of visible keys never falls from one row to the next; `shared` keys are
 * visible to every row. Two matrices [rows, stride] hold, per row and key, first q.k and its sum of magnitudes,
 * then what multiplies V and |V|. */
#ifndef AT_FAST_BLOCK_H
#define AT_FAST_BLOCK_H

#include "attest/attention.h"
#include "softmax_attention/softmax_attention.h"

enum {
    AT_FAST_ROWS = 192,      /* most rows of a block, but for head groups that are larger */
    AT_FAST_PANEL = 256,     /* keys decoded, and multiplied, at a time: rows and panel stay in a cache */
    AT_FAST_EDGE = 32,       /* keys a product covers along the causal edge */
    AT_FAST_SCORES = 1 << 21 /* rows * keys of a block, unless one row has more */
};

struct at_fast_block {
    int64_t request, kv_head;
    int64_t first_query, queries; /* within the request */
    int64_t first_head, heads;
    int64_t rows;         /* queries * heads */
    int64_t keys, shared; /* visible to the last row; to the first */
};

/* How a request is cut into blocks. */
struct at_fast_cut {
    int64_t queries, heads; /* of a full block */
    int64_t query_blocks, head_blocks;
    int64_t blocks;
    int64_t stride, rows; /* of the matrices */
};
/* Doubles from one row of a matrix to the next: whole cache lines, an odd number of them, because rows a power of two
 * apart share few places in a cache and dgemm reads many rows at once. */
int64_t at_fast_stride(int64_t keys);
struct at_fast_cut at_fast_cut(const struct at_problem *problem, int64_t request);
/* Block i of a request, 0 <= i < cut.blocks. */
struct at_fast_block at_fast_block_at(const struct at_problem *problem, int64_t request, int64_t i);

/* What one row leaves for the end. */
struct at_fast_row {
    struct at_attn_row at;
    int64_t index; /* token * h + head */
    double q_max;  /* largest finite |q| */
    /* What the operator keeps from the weights for the outputs. */
    double p_max; /* AsyncT: largest p + dp */
    int64_t live; /* AsyncT: keys whose p or dp is not 0 */
    struct at_softmax_row softmax;
};

/* One thread's memory, for the largest block of a problem. */
struct at_fast_work {
    const struct at_problem *problem;
    int limits;       /* sums of magnitudes are wanted */
    int charge_zeros; /* a non-finite v counts for the limit though its weight is 0 */
    struct at_fast_block block;
    int64_t stride;
    struct at_fast_row *row;       /* [rows] */
    double *q, *q_abs;             /* [rows d] */
    double *panel, *panel_abs;     /* [AT_FAST_PANEL d] */
    double *first, *second;        /* the matrices [rows stride] */
    double *s, *z, *p, *dp;        /* [stride] scratch of a row */
    double *k_abs;                 /* [stride] sum |k_t| */
    double k_max, v_max;           /* largest finite magnitudes among the block's keys */
    double *v_sum, *v_top;         /* [d] sum and largest of the finite |v_tc| of the block's keys */
    double *o, *abs_sum, *err_sum; /* [rows d] first V, |first| |V|, second |V| */
    double *memory;                /* what all the arrays are parts of */
};

/* Bytes that a thread's work needs, *doubles of them in arrays of double. */
int64_t at_fast_work_bytes(const struct at_problem *problem, int limits);
at_status at_fast_work_init(const struct at_problem *problem, int limits, struct at_fast_work *work);
void at_fast_work_release(struct at_fast_work *work);

/* Fills row, q, and with limits q_abs; then `first` with q.k and, with limits, `second` with sum |q||k|. Entries of
 * hidden keys are undefined. */
void at_fast_scores(struct at_fast_work *work, const struct at_fast_block *block);
/* o = first V, and with limits abs_sum and err_sum; `first` is lost. Entries of hidden keys must be 0. A v that is
 * not finite meets only the weights of `first` that are not 0, as in the operators' definitions. */
void at_fast_outputs(struct at_fast_work *work);
/* Copies n values, unless they lie there already, to row i of a matrix and fills up with zeros. */
void at_fast_put_row(const struct at_fast_work *work, double *matrix, int64_t i, int64_t n, const double *values);

#endif
