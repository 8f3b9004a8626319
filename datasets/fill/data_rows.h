/* What the data families build on: the problem they make data for, numbers of its rows, rows that a case asks to matter.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DATA_ROWS_H
#define AT_DATA_ROWS_H

#include <stdint.h>

#include "attest/format.h"
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

/* Which addend of a norm a row belongs to: x (or a, q, k), or the residual it is added to. */
enum at_norm_part { AT_NORM_X, AT_NORM_RES };

/* The sequence called `name` of this problem, and the number of a row in it. */
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
/* Is key t of the request hot, and for which query? */
int at_hot_find(const struct at_data *data, int64_t request, int64_t t, struct at_hot_target *target);

#endif
