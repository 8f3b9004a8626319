/* The two matrix products of a block, panel by panel over its keys.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Products skip what causality hides: one covers the keys that all rows see, then strips of AT_FAST_EDGE keys
 * cover the rows from the first that sees one of them. A v that is not finite is taken out of the panel (0 * NaN
 * would reach rows that do not read it) and given to the rows one by one. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "fast/block.h"
#include "fast/vector.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* d values at an element index of q, k or v. */
static void decode(const struct at_fast_work *work, int tensor, int64_t index, double *out) {
    const struct at_tensor *t = &work->problem->tensors[tensor];
    const char *codes = (const char *)t->data + (size_t)index * at_format_info(t->format)->bytes;
    at_fast_decode(t->format, work->problem->sizes.d, codes, out);
}

/* Element index of key t of the block, in k and in v. The next keys are asked for from memory meanwhile: with
 * several heads they are not contiguous, and the processor prefetches only what is. */
static int64_t locate(const struct at_fast_work *work, int tensor, int64_t t) {
    enum { AHEAD = 6, LINE = 64 };
    const struct at_fast_block *block = &work->block;
    if (t + AHEAD < block->keys) {
        const struct at_tensor *x = &work->problem->tensors[tensor];
        const int64_t bytes = at_format_info(x->format)->bytes;
        const char *ahead =
            (const char *)x->data + at_attn_kv_index(work->problem, block->request, t + AHEAD, block->kv_head) * bytes;
        for (int64_t i = 0; i < work->problem->sizes.d * bytes; i += LINE)
            __builtin_prefetch(ahead + i);
    }
    return at_attn_kv_index(work->problem, block->request, t, block->kv_head);
}

/* Largest finite magnitude among x and `so_far`. */
static double larger(double so_far, double x) {
    x = fabs(x);
    return isfinite(x) && x > so_far ? x : so_far;
}

static void load_queries(struct at_fast_work *work) {
    const struct at_fast_block *block = &work->block;
    const int64_t d = work->problem->sizes.d, h = work->problem->sizes.h;
    const int64_t start = at_tensor_i32(&work->problem->tensors[AT_ATTN_QUERY_START], block->request);
    for (int64_t i = 0; i < block->rows; i++) {
        struct at_fast_row *row = &work->row[i];
        row->index = (start + block->first_query + i / block->heads) * h + block->first_head + i % block->heads;
        row->at = at_attn_row(work->problem, row->index);
        row->q_max = 0;
        double *q = work->q + i * d;
        decode(work, AT_ATTN_Q, row->index * d, q);
        for (int64_t c = 0; work->limits && c < d; c++) {
            work->q_abs[i * d + c] = fabs(q[c]);
            row->q_max = larger(row->q_max, q[c]);
        }
    }
}

static void load_keys(struct at_fast_work *work, int64_t k0, int64_t k1) {
    const int64_t d = work->problem->sizes.d;
    for (int64_t t = k0; t < k1; t++) {
        double *k = work->panel + (t - k0) * d;
        decode(work, AT_ATTN_K, locate(work, AT_ATTN_K, t), k);
        if (!work->limits)
            continue;
        work->k_abs[t] = 0;
        for (int64_t c = 0; c < d; c++) {
            work->panel_abs[(t - k0) * d + c] = fabs(k[c]);
            work->k_abs[t] += fabs(k[c]);
            work->k_max = larger(work->k_max, k[c]);
        }
    }
}

/* First row that sees key t. */
static int64_t first_row(const struct at_fast_work *work, int64_t t) {
    int64_t i = 0;
    while (i < work->block.rows && work->row[i].at.visible <= t)
        i++;
    return i;
}

/* A product of rows [i0, rows) with keys [k0, k1) of the panel that starts at `base`. */
struct strip {
    int64_t i0, k0, k1, base;
};

static void scores_of(const struct at_fast_work *work, struct strip x, const double *q, const double *panel,
                      double *matrix) {
    const int64_t d = work->problem->sizes.d;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)(work->block.rows - x.i0), (int)(x.k1 - x.k0), (int)d, 1,
                q + x.i0 * d, (int)d, panel + (x.k0 - x.base) * d, (int)d, 0, matrix + x.i0 * work->stride + x.k0,
                (int)work->stride);
}

static void sums_of(const struct at_fast_work *work, struct strip x, const double *matrix, const double *panel,
                    double *sums) {
    const int64_t d = work->problem->sizes.d;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(work->block.rows - x.i0), (int)d, (int)(x.k1 - x.k0),
                1, matrix + x.i0 * work->stride + x.k0, (int)work->stride, panel + (x.k0 - x.base) * d, (int)d, 1,
                sums + x.i0 * d, (int)d);
}

/* The next strip of the panel [base, end), from key k0 on; 0 when there is none. */
static int next_strip(const struct at_fast_work *work, int64_t base, int64_t end, struct strip *x) {
    const int64_t k0 = x->k1, shared = work->block.shared;
    if (k0 >= end)
        return 0;
    *x = (struct strip){ 0, k0, least(end, k0 < shared ? shared : k0 + AT_FAST_EDGE), base };
    if (k0 >= shared)
        x->i0 = first_row(work, k0);
    return 1;
}

void at_fast_scores(struct at_fast_work *work, const struct at_fast_block *block) {
    work->block = *block;
    work->stride = at_fast_stride(block->keys);
    work->k_max = 0;
    load_queries(work);
    for (int64_t base = 0; base < block->keys; base += AT_FAST_PANEL) {
        const int64_t end = least(block->keys, base + AT_FAST_PANEL);
        load_keys(work, base, end);
        struct strip x = { .k1 = base };
        while (next_strip(work, base, end, &x)) {
            scores_of(work, x, work->q, work->panel, work->first);
            if (work->limits)
                scores_of(work, x, work->q_abs, work->panel_abs, work->second);
        }
    }
}

/* Gives one v that is not finite to the rows that see its key. */
static void add_special(struct at_fast_work *work, int64_t t, int64_t c, double v) {
    const int64_t d = work->problem->sizes.d;
    for (int64_t i = first_row(work, t); i < work->block.rows; i++) {
        double weight = work->first[i * work->stride + t];
        if (weight != 0)
            work->o[i * d + c] += weight * v;
        if (!work->limits)
            continue;
        double error = work->second[i * work->stride + t];
        if (weight != 0)
            work->abs_sum[i * d + c] += fabs(weight * v);
        if (error != 0 || work->charge_zeros)
            work->err_sum[i * d + c] += error * fabs(v);
    }
}

static void load_values(struct at_fast_work *work, int64_t k0, int64_t k1) {
    const int64_t d = work->problem->sizes.d;
    for (int64_t t = k0; t < k1; t++) {
        double *v = work->panel + (t - k0) * d;
        decode(work, AT_ATTN_V, locate(work, AT_ATTN_V, t), v);
        const int special = !at_fast_all_finite(d, v);
        for (int64_t c = 0; special && c < d; c++)
            if (!isfinite(v[c])) {
                add_special(work, t, c, v[c]);
                v[c] = 0;
            }
        for (int64_t c = 0; work->limits && c < d; c++) {
            double size = fabs(v[c]);
            work->panel_abs[(t - k0) * d + c] = size;
            work->v_sum[c] += size;
            work->v_top[c] = size > work->v_top[c] ? size : work->v_top[c];
        }
    }
}

static void clear(const struct at_fast_work *work, double *array, int64_t count) {
    if (work->limits || array == work->o)
        memset(array, 0, (size_t)count * sizeof *array);
}

void at_fast_outputs(struct at_fast_work *work) {
    const int64_t d = work->problem->sizes.d, keys = work->block.keys, count = work->block.rows * d;
    clear(work, work->o, count);
    clear(work, work->abs_sum, count);
    clear(work, work->err_sum, count);
    clear(work, work->v_sum, d);
    clear(work, work->v_top, d);
    for (int64_t base = 0; base < keys; base += AT_FAST_PANEL) {
        const int64_t end = least(keys, base + AT_FAST_PANEL);
        load_values(work, base, end);
        struct strip x = { .k1 = base };
        while (next_strip(work, base, end, &x)) {
            sums_of(work, x, work->first, work->panel, work->o);
            if (!work->limits)
                continue;
            for (int64_t i = x.i0; i < work->block.rows; i++)
                for (int64_t t = x.k0; t < x.k1; t++)
                    work->first[i * work->stride + t] = fabs(work->first[i * work->stride + t]);
            sums_of(work, x, work->first, work->panel_abs, work->abs_sum);
            sums_of(work, x, work->second, work->panel_abs, work->err_sum);
        }
    }
    work->v_max = 0;
    for (int64_t c = 0; work->limits && c < d; c++)
        work->v_max = larger(work->v_max, work->v_top[c]);
}
