/* Data families: what the rows of q, k, v and of the norms' inputs look like, and their table.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A family is a set of functions that each write one row. A row depends on the problem's shape, the seed and
 * the row's own coordinates, never on its neighbours, so rows can be made on any thread. Rows are named by
 * request and key, not by where a page lies: a paged and a contiguous problem hold the same values. */
#ifndef AT_DATA_H
#define AT_DATA_H

#include "datasets/fill/data_rows.h"

enum at_data_use {
    AT_DATA_ATTENTION = 1,
    AT_DATA_NORM = 2,
    AT_DATA_HOT = 4,
    AT_DATA_PRODUCT = 8,
    AT_DATA_ELEMENTS = 16,
    AT_DATA_COPY = 32,      /* of activations that are moved, all or in part */
    AT_DATA_CHOICE = 128,   /* of logits, where the largest lies and what it is like */
    AT_DATA_CONTINUOUS = 64 /* drawn from smooth densities: what is rounded to nearest errs to both sides alike */
};

struct at_data_family {
    const char *name, *meaning;
    unsigned uses; /* of enum at_data_use; HOT: hot= works with it */
    int exact;
    void (*query)(const struct at_data *data, int64_t request, int64_t i, int64_t head, double *row);
    void (*key)(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head, double *row);
    void (*value)(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head, double *row);
    /* n values of row `row`; `stream` differs from tensor to tensor, and is shared by the x and res of one sum. */
    void (*norm)(const struct at_data *data, uint64_t stream, enum at_norm_part part, int64_t row, int64_t n,
                 double *out);
    /* Row i of the first factor of a product and of the second, d values each: a request and head of 0. */
    void (*left)(const struct at_data *data, int64_t request, int64_t i, int64_t head, double *row);
    void (*right)(const struct at_data *data, int64_t request, int64_t i, int64_t head, double *row);
    /* Elements [first, first + n) of an elementwise function's argument. */
    void (*elements)(const struct at_data *data, int64_t first, int64_t n, double *out);
    /* Elements [first, first + n) of a copied tensor as codes of its format, of which a double would not keep all bits;
     * in place of `norm`. */
    void (*codes)(const struct at_data *data, uint64_t stream, enum at_format format, int64_t first, int64_t n,
                  void *codes);
};

/* n numbers of [0, 1) to draw by, whole multiples of 2^-24. Of every eight one is 0, one the largest, and 1/2 and 1/4 are there,
 * which sums of equal weights meet. */
void at_choice_uniforms(const struct at_data *data, int64_t n, float *out);

int at_data_count(void);
const struct at_data_family *at_data_at(int i);
const struct at_data_family *at_data_find(const char *name);

/* One row of q, k or v with the case's hot rows in place. row: d values. */
void at_data_query(const struct at_data_family *family, const struct at_data *data, int64_t request, int64_t i,
                   int64_t head, double *row);
void at_data_key(const struct at_data_family *family, const struct at_data *data, int64_t request, int64_t t,
                 int64_t kv_head, double *row);
void at_data_value(const struct at_data_family *family, const struct at_data *data, int64_t request, int64_t t,
                   int64_t kv_head, double *row);

#endif
