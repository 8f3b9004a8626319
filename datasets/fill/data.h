/* Data families: what the rows of q, k, v and of the norms' inputs look like.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A family is a set of functions that each write one row. A row depends on the problem's shape, the seed and
 * the row's own coordinates, never on its neighbours, so rows can be made on any thread. Rows are named by
 * request and key, not by where a page lies: a paged and a contiguous problem hold the same values. */
#ifndef AT_DATA_H
#define AT_DATA_H

#include <stdint.h>

#include "attest/format.h"
#include "attest/status.h"
#include "datasets/fill/random.h"

/* Rows that a case asks to matter (key hot=): bits. */
enum at_hot { AT_HOT_LAST_KEY = 1, AT_HOT_HIDDEN_KEY = 2, AT_HOT_CLIP = 4, AT_HOT_HALO = 8 };
enum { AT_HOT_COUNT = 4, AT_DATA_MAX_D = 4096 };
/* Name and meaning of bit i; NULL past the end. */
const char *at_hot_name(int i);
const char *at_hot_meaning(int i);

/* What families need to know of the problem they make data for. */
struct at_data {
    uint64_t seed;
    enum at_format dtype;
    int asynct, causal, edge, pooled; /* operator and FIR; pooled: taps come from sigma */
    int64_t b, h, hk, d;              /* d without padding */
    double scale;                     /* of the scores, as the problem has it */
    int window;                       /* K */
    const float *taps;                /* [h window], pooled or given */
    const float *sigma;               /* [h], 0 when taps are given */
    double clip_min, clip_max;
    unsigned hot;
    const int64_t *query_start, *key_start; /* [b+1], logical: request r has key_start[r+1]-key_start[r] keys */
    int rms, has_res;                       /* norms: a mean square is taken; x is added to a residual */
    enum at_format out;                     /* products: their format */
};

enum at_data_use {
    AT_DATA_ATTENTION = 1,
    AT_DATA_NORM = 2,
    AT_DATA_HOT = 4,
    AT_DATA_PRODUCT = 8,
    AT_DATA_ELEMENTS = 16
};

/* Which addend of a norm a row belongs to: x (or a, q, k), or the residual it is added to. */
enum at_norm_part { AT_NORM_X, AT_NORM_RES };

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
};

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

/* For families: the sequence called `name` of this problem, and the number of a row in it. */
struct at_random at_data_random(const struct at_data *data, const char *name);
uint64_t at_data_query_row(const struct at_data *data, int64_t request, int64_t i, int64_t head);
uint64_t at_data_key_row(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head);
/* Queries, keys, and keys that query i sees (causal or all; may be 0 or less) of a request. */
int64_t at_data_sq(const struct at_data *data, int64_t request);
int64_t at_data_sk(const struct at_data *data, int64_t request);
int64_t at_data_visible(const struct at_data *data, int64_t request, int64_t i);

/* A key that is to score high for one query. */
struct at_hot_target {
    int64_t query;
    double score; /* after the scale */
    double value; /* what the key's V row is multiplied with */
};
/* Is key t of the request hot, and for whom? */
int at_hot_find(const struct at_data *data, int64_t request, int64_t t, struct at_hot_target *target);

#endif
