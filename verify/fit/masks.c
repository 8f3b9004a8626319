/* +M and -M among units, in V, in K or in the second factor of a product, and what survived of the units.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/fit/masks.h"

#include <math.h>

#include "attest/attention.h"

/* Of q.k in every format: n 2^-18 is below what an accumulator of f32, or a tensor core's of 25 bits, keeps beside 2^15. */
static const double QK_M = 0x1p15, QK_U = 0x1p-18;

struct at_pair at_pair_of(int64_t c) {
    int64_t j = (int64_t)((1 + sqrt(1 + 8 * (double)c)) / 2);
    while (j * (j - 1) / 2 > c)
        j--;
    while ((j + 1) * j / 2 <= c)
        j++;
    return (struct at_pair){ c - j * (j - 1) / 2, j };
}

struct at_pair at_pair_some(int64_t c, int64_t n) {
    const int64_t apart = (INT64_C(1) << c % 11) % n, i = c * 7919 % n;
    const int64_t j = (i + (apart ? apart : 1)) % n;
    return (struct at_pair){ i < j ? i : j, i < j ? j : i };
}

static struct at_pair pair(int64_t c, int64_t n, int all) {
    if (!all)
        return at_pair_some(c, n);
    return c < n * (n - 1) / 2 ? at_pair_of(c) : (struct at_pair){ -1, -1 };
}

static double term(struct at_pair p, int64_t t, double m, double u) { return t == p.i ? m : t == p.j ? -m : u; }

/* The same where only every `apart`-th term is not 0. */
static double sparse(struct at_pair p, int64_t t, int64_t apart, double m, double u) {
    return t % apart ? 0 : term(p, t / apart, m, u);
}

static int is_softmax(const struct at_op *op) { return op->weights == AT_WEIGHTS_SOFTMAX; }

/* M and the unit of sums of n terms whose first factor is 1. What comes out in f16 must still be readable: beyond 128 terms,
 * or divided by their number, units may add up to something beside M, and sums show less of their order. */
static void pv_terms(const struct at_problem *p, int64_t n, double *m, double *u) {
    *m = 0x1p15;
    *u = p->dtype != AT_F16 ? 0x1p-30 : n <= 128 ? 0x1p-17 : is_softmax(p->op) ? 0x1p-11 : 0x1p-22;
}

static void product_terms(enum at_format format, double *m, double *u) {
    const int narrow = at_format_info(format)->bytes == 1;
    *m = narrow ? (format == AT_E4M3 ? 0x1p8 : 0x1p15) : 0x1p15;
    *u = format == AT_F16 ? 0x1p-22 : !narrow ? 0x1p-30 : format == AT_E4M3 ? 0x1p-9 : 0x1p-16;
}

double at_masks_scale(const struct at_op *op, int64_t d) {
    return is_softmax(op) ? 3.2 / (double)d / QK_U : 1 / (double)d / QK_U;
}

static void fill(const struct at_tensor *t, double value) {
    for (int64_t i = 0, n = at_tensor_count(t); i < n; i++)
        at_store(t->format, t->data, (size_t)i, value);
}

/* q is 1 in every channel; key 0 is 0, a score to set the others against; of the others each has a pair, and its V is 1 in the
 * channel of the key's number. */
static void fill_qk(struct at_problem *p, int all) {
    const struct at_tensor *k = &p->tensors[AT_ATTN_K], *v = &p->tensors[AT_ATTN_V];
    int64_t c = 0;
    fill(&p->tensors[AT_ATTN_Q], 1);
    for (int64_t r = 0; r < p->sizes.b; r++)
        for (int64_t g = 0; g < p->sizes.hk; g++)
            for (int64_t t = 0, keys = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r); t < keys; t++) {
                const int64_t at = at_attn_kv_index(p, r, t, g);
                const struct at_pair two = t ? pair(c++, p->sizes.d, all) : (struct at_pair){ -1, -1 };
                for (int64_t i = 0; i < p->sizes.d; i++) {
                    at_store(k->format, k->data, (size_t)(at + i), two.j < 0 ? 0 : term(two, i, QK_M, QK_U));
                    at_store(v->format, v->data, (size_t)(at + i), i == t);
                }
            }
}

/* Every score is 1, or the scale, so that weights are 1; each column of V has a pair. */
static void fill_pv(struct at_problem *p, int all, int64_t apart) {
    const struct at_tensor *q = &p->tensors[AT_ATTN_Q], *k = &p->tensors[AT_ATTN_K], *v = &p->tensors[AT_ATTN_V];
    int64_t c = 0;
    fill(q, 0);
    for (int64_t i = 0, n = at_tensor_count(q); i < n; i += p->sizes.d)
        at_store(q->format, q->data, (size_t)i, 1);
    for (int64_t r = 0; r < p->sizes.b; r++)
        for (int64_t g = 0; g < p->sizes.hk; g++) {
            const int64_t keys = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r);
            double m, u;
            pv_terms(p, keys / apart, &m, &u);
            for (int64_t i = 0; i < p->sizes.d; i++, c++)
                for (int64_t t = 0; t < keys; t++) {
                    const size_t at = (size_t)(at_attn_kv_index(p, r, t, g) + i);
                    at_store(k->format, k->data, at, i == 0);
                    at_store(v->format, v->data, at, sparse(pair(c, keys / apart, all), t, apart, m, u));
                }
        }
}

static const struct at_tensor *second_factor(const struct at_problem *p, int *by_rows) {
    const int rows = at_op_filled_index(p->op, AT_FILL_RIGHT),
              columns = at_op_filled_index(p->op, AT_FILL_RIGHT_COLUMNS);
    *by_rows = rows >= 0 && at_tensor_count(&p->tensors[rows]) > 0;
    return &p->tensors[*by_rows ? rows : columns];
}

static void fill_product(struct at_problem *p, int all, int64_t apart) {
    const struct at_tensor *a = &p->tensors[at_op_filled_index(p->op, AT_FILL_LEFT)];
    int by_rows;
    const struct at_tensor *b = second_factor(p, &by_rows);
    const int64_t k = b->shape[by_rows], n = b->shape[!by_rows];
    double m, u;
    product_terms(b->format, &m, &u);
    fill(a, 1);
    for (int64_t c = 0; c < n; c++)
        for (int64_t t = 0; t < k; t++)
            at_store(b->format, b->data, (size_t)(by_rows ? c * k + t : t * n + c),
                     sparse(pair(c, k / apart, all), t, apart, m, u));
}

/* Keys from an eighth to twice what they were. */
static void fill_rising(struct at_problem *p) {
    const struct at_tensor *k = &p->tensors[AT_ATTN_K];
    for (int64_t r = 0; r < p->sizes.b; r++)
        for (int64_t g = 0; g < p->sizes.hk; g++)
            for (int64_t t = 0, keys = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r); t < keys; t++)
                for (int64_t i = 0; i < p->sizes.d; i++) {
                    const size_t at = (size_t)(at_attn_kv_index(p, r, t, g) + i);
                    at_store(k->format, k->data, at,
                             at_load(k->format, k->data, at) * (0.125 + 1.875 * (double)t / (double)keys));
                }
}

/* Sums of 64 products of N(0,1), which are then of the order of 2^15. */
static void enlarge(const struct at_tensor *t) {
    for (int64_t i = 0, n = at_tensor_count(t); i < n; i++)
        at_store(t->format, t->data, (size_t)i, 64 * at_load(t->format, t->data, (size_t)i));
}

static void fill_large(struct at_problem *p) {
    static const enum at_fill factors[] = { AT_FILL_QUERIES, AT_FILL_KEYS, AT_FILL_LEFT, AT_FILL_RIGHT,
                                            AT_FILL_RIGHT_COLUMNS };
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        const int t = at_op_filled_index(p->op, factors[i]);
        if (t >= 0)
            enlarge(&p->tensors[t]);
    }
}

/* Channel 0 takes log(keys) from every score. */
static void fill_centred(struct at_problem *p) {
    const struct at_tensor *q = &p->tensors[AT_ATTN_Q], *k = &p->tensors[AT_ATTN_K];
    static const double QUERY = 8;
    for (int64_t i = 0, n = at_tensor_count(q); i < n; i += p->sizes.d)
        at_store(q->format, q->data, (size_t)i, QUERY);
    for (int64_t r = 0; r < p->sizes.b; r++)
        for (int64_t g = 0; g < p->sizes.hk; g++)
            for (int64_t t = 0, keys = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r); t < keys; t++)
                at_store(k->format, k->data, (size_t)at_attn_kv_index(p, r, t, g),
                         -log((double)keys) / QUERY / (double)p->params.scale);
}

void at_masks_fill(struct at_case_data *data, enum at_probe_kind kind, int all, int64_t apart) {
    struct at_problem *p = &data->problem;
    if (kind == AT_PROBE_RISING)
        fill_rising(p);
    if (kind == AT_PROBE_LARGE)
        fill_large(p);
    if (kind == AT_PROBE_CENTRED && is_softmax(p->op))
        fill_centred(p);
    if (kind == AT_PROBE_QK)
        fill_qk(p, all);
    if (kind == AT_PROBE_PV || kind == AT_PROBE_PARTS)
        fill_pv(p, all, apart);
    if (kind == AT_PROBE_PRODUCT)
        fill_product(p, all, apart);
}

int64_t at_masks_room(const struct at_problem *p, enum at_probe_kind kind) {
    int by_rows;
    if (kind == AT_PROBE_PRODUCT)
        return second_factor(p, &by_rows)->shape[!by_rows];
    const int64_t of_heads = p->sizes.b * p->sizes.hk;
    return of_heads * (kind == AT_PROBE_QK ? p->sizes.max_sk - 1 : p->sizes.d);
}

/* Element `channel` of the output of request r's last query in the first head that reads key/value head g. */
static double output(const struct at_problem *p, const struct at_outputs *got, int64_t r, int64_t g, int64_t channel) {
    const int o = at_op_tensor_index(p->op, "o");
    const int64_t token = at_tensor_i32(&p->tensors[AT_ATTN_QUERY_START], r + 1) - 1;
    const int64_t row = token * p->sizes.h + g * (p->sizes.h / p->sizes.hk);
    return at_tensor_get(&got->tensors[o], row * p->sizes.d + channel);
}

double at_masks_survivors(const struct at_problem *p, const struct at_outputs *got, enum at_probe_kind kind,
                          int64_t apart, int64_t c) {
    double m, u;
    if (kind == AT_PROBE_PRODUCT) {
        int by_rows;
        product_terms(second_factor(p, &by_rows)->format, &m, &u);
        return at_tensor_get(&got->tensors[at_op_tensor_index(p->op, "d")], c) / u;
    }
    const int64_t each = kind == AT_PROBE_PV ? p->sizes.d : p->sizes.max_sk - 1, head = c / each;
    const int64_t r = head / p->sizes.hk, g = head % p->sizes.hk;
    const int64_t keys = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r);
    if (kind == AT_PROBE_PV) {
        pv_terms(p, keys / apart, &m, &u);
        return output(p, got, r, g, c % each) / u * (is_softmax(p->op) ? (double)keys : 1);
    }
    const double one = (double)p->params.scale * QK_U, weight = output(p, got, r, g, 1 + c % each);
    return is_softmax(p->op) ? log(weight / output(p, got, r, g, 0)) / one : weight / one;
}
