/* What the files of softmax attention share and nobody else needs: rows brought into double, how a row is
 * cut into splits and blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SOFTMAX_INTERNAL_H
#define AT_SOFTMAX_INTERNAL_H

#include "softmax_attention/softmax_attention.h"

/* One query and the keys of its request and head as doubles; k and v are kept from row to row while request
 * and key/value head stay the same. Zero-initialised, then grown by at_softmax_load(). */
struct at_softmax_work {
    int64_t d, room; /* keys there is room for */
    int64_t request, kv_head, loaded;
    double *q;                             /* [d] */
    double *k, *v;                         /* [loaded d] */
    double *dot, *abs, *k_abs, *s, *p, *h; /* [room] */
    double *channel;                       /* [d] o of the row */
    double q_max, k_max, v_max;            /* largest magnitudes; k and v: of all loaded keys */
};
/* Loads the row's query and its first n keys. */
at_status at_softmax_load(const struct at_problem *problem, const struct at_attn_row *at, int64_t n,
                          struct at_softmax_work *work);
void at_softmax_work_release(struct at_softmax_work *work);
/* Fills dot, abs and k_abs for the first n keys, summed in ascending order in double. */
void at_softmax_dots(struct at_softmax_work *work, int64_t n);
/* o_c = sum over p_t != 0 of p_t v_tc, in ascending order. */
void at_softmax_mix(const struct at_softmax_work *work, int64_t n, const double *p, double *o);

/* Softmax arithmetic is f64: both units are. */
int at_softmax_is_f64(const struct at_numerics *numerics);
/* P is rounded to a narrower format. */
int at_softmax_rounds_p(const struct at_numerics *numerics);

#endif
