/* Rows of the problem as doubles, and the exact sums over them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softmax_attention/internal.h"

enum { ROW_ARRAYS = 6 };

void at_softmax_work_release(struct at_softmax_work *work) {
    free(work->q);
    free(work->channel);
    free(work->k);
    free(work->v);
    free(work->dot);
    *work = (struct at_softmax_work){ 0 };
}

/* n doubles, n counted in int64_t so that a product that does not fit is refused. */
static double *doubles(int64_t n, int64_t each) {
    int64_t bytes;
    if (__builtin_mul_overflow(n, each * (int64_t)sizeof(double), &bytes))
        return NULL;
    return calloc(1, (size_t)bytes + 1);
}

static at_status make_room(int64_t d, int64_t n, struct at_softmax_work *work) {
    if (work->q && work->room >= n)
        return AT_OK;
    at_softmax_work_release(work);
    work->d = d;
    work->room = n;
    work->q = doubles(1, d);
    work->channel = doubles(1, d);
    work->k = doubles(n, d);
    work->v = doubles(n, d);
    work->dot = doubles(ROW_ARRAYS, n);
    if (!work->q || !work->channel || !work->k || !work->v || !work->dot) {
        at_softmax_work_release(work);
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld keys of head size %lld", (long long)n, (long long)d);
    }
    work->abs = work->dot + n;
    work->k_abs = work->abs + n;
    work->s = work->k_abs + n;
    work->p = work->s + n;
    work->h = work->p + n;
    return AT_OK;
}

/* Elements first .. first+n-1 of a tensor. */
static void decode(const struct at_tensor *tensor, int64_t first, int64_t n, double *out) {
    const char *codes = tensor->data;
    at_decode_array(tensor->format, (size_t)n, codes + (size_t)first * at_format_info(tensor->format)->bytes, out);
}

/* Largest finite magnitude among n values and `least`: what it is used for are finite sums. */
static double largest(int64_t n, const double *x, double least) {
    for (int64_t i = 0; i < n; i++)
        if (fabs(x[i]) > least && isfinite(x[i]))
            least = fabs(x[i]);
    return least;
}

at_status at_softmax_load(const struct at_problem *problem, const struct at_attn_row *at, int64_t n,
                          struct at_softmax_work *work) {
    const int64_t d = problem->sizes.d;
    AT_TRY(make_room(d, at->keys, work)); /* n grows from row to row under a causal mask */
    int64_t query = (at->token * problem->sizes.h + at->head) * d;
    decode(&problem->tensors[AT_ATTN_Q], query, d, work->q);
    work->q_max = largest(d, work->q, 0);
    if (work->loaded == 0 || work->request != at->request || work->kv_head != at->kv_head) {
        work->loaded = 0;
        work->k_max = work->v_max = 0;
    }
    work->request = at->request;
    work->kv_head = at->kv_head;
    for (int64_t t = work->loaded; t < n; t++) {
        int64_t first = at_attn_kv_index(problem, at->request, t, at->kv_head);
        decode(&problem->tensors[AT_ATTN_K], first, d, work->k + t * d);
        decode(&problem->tensors[AT_ATTN_V], first, d, work->v + t * d);
        work->k_max = largest(d, work->k + t * d, work->k_max);
        work->v_max = largest(d, work->v + t * d, work->v_max);
        work->loaded = t + 1;
    }
    return AT_OK;
}

/* Products of values of at most 24 bits are exact in double; the d - 1 additions are accounted for in the
 * limit (limit.c, "the reference's own error"). */
void at_softmax_dots(struct at_softmax_work *work, int64_t n) {
    for (int64_t t = 0; t < n; t++) {
        const double *q = work->q, *k = work->k + t * work->d;
        double dot = 0, abs = 0, k_abs = 0;
        for (int64_t i = 0; i < work->d; i++) {
            dot += q[i] * k[i];
            abs += fabs(q[i] * k[i]);
            k_abs += fabs(k[i]);
        }
        work->dot[t] = dot;
        work->abs[t] = abs;
        work->k_abs[t] = k_abs;
    }
}

void at_softmax_mix(const struct at_softmax_work *work, int64_t n, const double *p, double *o) {
    memset(o, 0, (size_t)work->d * sizeof *o);
    for (int64_t t = 0; t < n; t++) {
        if (p[t] == 0)
            continue;
        for (int64_t c = 0; c < work->d; c++)
            o[c] += p[t] * work->v[t * work->d + c];
    }
}
