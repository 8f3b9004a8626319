/* One row of scores after the other, as the definition has them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "attest/plain_math.h"
#include "score_counts/score_counts.h"

static void head_init(const struct at_problem *p, enum at_counts_fault fault, int64_t h, struct at_counts_head *head) {
    const struct at_params *params = &p->params;
    const int64_t other = fault == AT_COUNTS_OTHER_GAMMA ? (h + 1) % p->sizes.h : h;
    *head = (struct at_counts_head){
        .scale = fault == AT_COUNTS_NO_SCALE ? 1.0 : (double)params->scale,
        .sigma = at_tensor_get(&p->tensors[AT_COUNTS_SIGMA], h),
        .gamma = at_tensor_get(&p->tensors[AT_COUNTS_GAMMA], other),
        .clip_min = (double)params->clip_min,
        .clip_max = (double)params->clip_max,
        .taps = (int)p->sizes.taps,
        .relu_pre = params->relu_pre,
        .pooled = params->fir_form == AT_FIR_POOLED,
        .shrink = params->edge == AT_EDGE_SHRINK,
        .softmax = at_counts_own_of(p).softmax,
    };
    for (int j = 0; j < head->taps; j++)
        head->tap[j] = at_tensor_get(&p->tensors[AT_COUNTS_TAPS], h * head->taps + j);
}

/* Rows of one head of a tensor [n heads d]. */
static void decode(const struct at_tensor *t, int64_t n, int64_t heads, int64_t head, int64_t d, double *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++)
            out[i * d + c] = at_tensor_get(t, (i * heads + head) * d + c);
}

static int all_finite(int64_t d, const double *x) {
    for (int64_t c = 0; c < d; c++)
        if (!isfinite(x[c]))
            return 0;
    return 1;
}

at_status at_counts_rows_open(const struct at_problem *p, enum at_counts_fault fault, int64_t h,
                              struct at_counts_rows *rows) {
    const struct at_sizes *z = &p->sizes;
    const int64_t queries = z->tokens * z->d, keys = z->slots * z->d, kv_head = h / (z->h / z->hk);
    *rows = (struct at_counts_rows){ .problem = p, .fault = fault };
    double *memory = malloc((size_t)(queries + 2 * keys + 5 * z->slots + 1) * sizeof *memory);
    if (!memory)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld queries and %lld keys", (long long)z->tokens,
                       (long long)z->slots);
    head_init(p, fault, h, &rows->head);
    rows->memory = memory;
    rows->q = memory;
    rows->k = rows->q + queries;
    rows->v = rows->k + keys;
    rows->dot = rows->v + keys;
    rows->s = rows->dot + z->slots;
    rows->z = rows->s + z->slots;
    rows->p = rows->z + z->slots;
    rows->finite = (unsigned char *)(rows->p + z->slots);
    decode(&p->tensors[AT_ATTN_Q], z->tokens, z->h, h, z->d, rows->q);
    decode(&p->tensors[AT_ATTN_K], z->slots, z->hk, kv_head, z->d, rows->k);
    decode(&p->tensors[AT_ATTN_V], z->slots, z->hk, kv_head, z->d, rows->v);
    for (int64_t t = 0; t < z->slots; t++)
        rows->finite[t] = (unsigned char)all_finite(z->d, rows->k + t * z->d);
    return AT_OK;
}

void at_counts_rows_close(struct at_counts_rows *rows) {
    free(rows->memory);
    rows->memory = NULL;
}

/* ---- products ---- */

static double compensated(int64_t d, const double *q, const double *k) {
    double sum = q[0] * k[0], rest = 0;
    for (int64_t c = 1; c < d; c++) {
        const double product = q[c] * k[c], next = sum + product, part = next - sum;
        rest += (sum - (next - part)) + (product - part);
        sum = next;
    }
    return sum + rest;
}

static double plain(int64_t d, const double *q, const double *k) {
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += q[c] * k[c];
    return sum;
}

/* ---- AsyncT ---- */

static double gate_input(const struct at_counts_head *head, double s) {
    if (!isfinite(s))
        return (double)NAN;
    return head->relu_pre && s < 0 ? 0.0 : s;
}

static double filter(const struct at_counts_rows *rows, int64_t t) {
    const struct at_counts_head *head = &rows->head;
    const int taps = rows->fault == AT_COUNTS_TAP_DROPPED ? head->taps - 1 : head->taps;
    const int64_t first = rows->fault == AT_COUNTS_HALO_FORGOTTEN ? t / 64 * 64 : 0;
    double sum = 0;
    for (int j = 0; j < taps && t - j >= first; j++)
        sum += (head->pooled ? 1.0 : head->tap[j]) * gate_input(head, rows->s[t - j]);
    if (!head->pooled)
        return sum;
    const double keys = head->shrink && t + 1 < head->taps ? (double)(t + 1) : (double)head->taps;
    return gate_input(head, rows->s[t]) - head->sigma / keys * sum;
}

static double clamp(const struct at_counts_head *head, double z) {
    if (isnan(z))
        return z;
    double p = z > 0 ? z : 0.0;
    p = p < head->clip_max ? p : head->clip_max;
    return p > head->clip_min ? p : head->clip_min;
}

static void gate(struct at_counts_rows *rows, int64_t n) {
    for (int64_t t = 0; t < n; t++) {
        rows->z[t] = filter(rows, t);
        rows->p[t] = clamp(&rows->head, rows->z[t]);
    }
}

/* ---- softmax: e stands in z ---- */

static void weigh(struct at_counts_rows *rows, int64_t n, double max) {
    const double shift = max > -(double)INFINITY ? max : 0;
    double sum = 0;
    for (int64_t t = 0; t < n; t++) {
        rows->z[t] = at_plain_exp(rows->s[t] - shift);
        sum += rows->z[t];
    }
    for (int64_t t = 0; t < n; t++)
        rows->p[t] = rows->z[t] / sum;
}

static int64_t visible(const struct at_counts_rows *rows, int64_t i) {
    const struct at_problem *p = rows->problem;
    const int64_t keys = p->sizes.slots;
    int64_t n = p->params.causal ? keys - p->sizes.tokens - at_counts_own_of(p).behind + i + 1 : keys;
    n = n < 0 ? 0 : n;
    if (rows->fault == AT_COUNTS_LAST_KEY_DROPPED)
        n -= n > 0;
    if (rows->fault == AT_COUNTS_HIDDEN_KEY_ADDED)
        n += n < keys;
    return n;
}

struct at_counts_row at_counts_row_of(struct at_counts_rows *rows, int64_t i) {
    const int64_t d = rows->problem->sizes.d, n = visible(rows, i);
    const double *q = rows->q + i * d;
    double max = -(double)INFINITY, sum = 0;
    int has_nan = 0;
    const int finite = all_finite(d, q);
    for (int64_t t = 0; t < n; t++) {
        const double *k = rows->k + t * d;
        rows->dot[t] = finite && rows->finite[t] ? compensated(d, q, k) : plain(d, q, k);
        rows->s[t] = rows->head.scale * rows->dot[t];
        max = rows->s[t] > max ? rows->s[t] : max;
        has_nan |= isnan(rows->s[t]);
    }
    if (rows->head.softmax)
        weigh(rows, n, max);
    else
        gate(rows, n);
    for (int64_t t = 0; t < n; t++)
        sum += rows->head.softmax ? rows->z[t] : rows->p[t];
    return (struct at_counts_row){ .n = n,
                                   .dot = rows->dot,
                                   .s = rows->s,
                                   .z = rows->z,
                                   .p = rows->p,
                                   .max = has_nan ? (double)NAN : max,
                                   .sum = sum };
}

/* ---- slots ---- */

int at_counts_slot(enum at_format bins, enum at_counts_fault fault, double x) {
    const struct at_format_info *f = at_format_info(bins);
    const int infinity = (f->emax - f->emin + 2) << (f->precision - 1), nan_slot = 2 * infinity + 2;
    if (isnan(x))
        return fault == AT_COUNTS_NAN_LOST ? -1 : nan_slot;
    int size = (int)(at_encode(bins, x) & 0x7fff);
    const int negative = signbit(x) != 0;
    if (fault == AT_COUNTS_TRUNCATED && fabs(at_decode(bins, (uint64_t)size)) > fabs(x))
        size--;
    if (fault == AT_COUNTS_SUBNORMAL_LOST && size < 1 << (f->precision - 1))
        size = 0;
    if (size == infinity && isfinite(x))
        return nan_slot + 1 + negative;
    if (negative && !(fault == AT_COUNTS_NEGATIVE_ZERO_LOST && size == 0))
        return infinity - size;
    return infinity + 1 + size;
}
