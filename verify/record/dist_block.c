/* A block of query rows of one head: scores, weights, outputs and statistics, each row counted while it is warm.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "attest/plain_math.h"
#include "verify/record/dist_worker.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t at_dist_visible(const struct at_dist_unit *unit, int64_t i) {
    if (!unit->causal)
        return unit->keys;
    const int64_t visible = unit->keys - unit->queries + i + 1;
    return visible < 0 ? 0 : visible;
}

/* Everything the steps of a block share. */
struct run {
    struct at_dist_worker *w;
    const struct at_dist_unit *unit;
    const struct at_dist_shape *shape;
    const struct at_dist_block *block;
    const struct at_asynct_head *head;
    int64_t group_first;
};

/* ---- loading ---- */

static void decode(const struct at_dist_unit *u, const void *codes, int64_t first, double *out) {
    const char *at = (const char *)codes + (size_t)first * at_format_info(u->format)->bytes;
    at_fast_decode(u->format, u->d, at, out);
}

static void load_queries(const struct run *x) {
    const int64_t d = x->unit->d, first = x->block->first - x->unit->first_query;
    for (int64_t i = 0; i < x->block->rows; i++)
        decode(x->unit, x->unit->q, ((first + i) * x->shape->h + x->block->head) * d, x->w->q + i * d);
    at_fast_spans(x->block->rows, d, x->w->q, x->w->q_span);
}

/* Keys [t0, t0 + n) of k or v. */
static void load_panel(const struct run *x, const void *codes, int64_t t0, int64_t n) {
    const int64_t d = x->unit->d;
    for (int64_t t = 0; t < n; t++)
        decode(x->unit, codes, ((t0 + t) * x->shape->hk + x->block->kv_head) * d, x->w->panel + t * d);
}

/* ---- scores ---- */

static void score(const struct run *x) {
    struct at_dist_worker *w = x->w;
    for (int64_t t0 = 0; t0 < x->block->keys; t0 += AT_DIST_PANEL) {
        const int64_t n = least(AT_DIST_PANEL, x->block->keys - t0);
        load_panel(x, x->unit->k, t0, n);
        at_fast_spans(n, x->unit->d, w->panel, w->k_span);
        const struct at_fast_product product = { .rows = x->block->rows,
                                                 .keys = n,
                                                 .d = x->unit->d,
                                                 .q = w->q,
                                                 .k = w->panel,
                                                 .q_span = w->q_span,
                                                 .k_span = w->k_span,
                                                 .narrow = x->unit->format != AT_F64,
                                                 .scratch = w->turned,
                                                 .out = w->scores + t0,
                                                 .stride = w->stride,
                                                 .use_blas = !x->unit->without_blas };
        at_fast_product(&product);
    }
}

/* ---- one row ---- */

static void ledger(const struct run *x, int stage, int64_t query, int64_t n, const double *values, int step_k) {
    const struct at_place first = { x->unit->request, x->block->head, query, step_k ? 0 : -1, -1 };
    at_fast_ledger_row(n, values, &first, step_k, &x->w->local.ledger[stage]);
}

static void count_row(const struct run *x, enum at_dist_what what, int stage, int64_t query, int64_t n,
                      const double *values) {
    x->w->local.tally[what].masked += (uint64_t)(x->unit->keys - n);
    at_dist_worker_count(x->w, what, n, values);
    ledger(x, stage, query, n, values, 1);
}

/* Values of p (or e) that are not 0, in order; their number. */
static int64_t gather(const uint16_t *mask, int64_t n, const double *p, double *live) {
    int64_t m = 0;
    for (int64_t page = 0; page * AT_DIST_PAGE < n; page++) {
        if (mask[page] == 0xffff) {
            memcpy(live + m, p + page * AT_DIST_PAGE, AT_DIST_PAGE * sizeof *live);
            m += AT_DIST_PAGE;
            continue;
        }
        for (uint32_t bits = mask[page]; bits; bits &= bits - 1)
            live[m++] = p[page * AT_DIST_PAGE + __builtin_ctz(bits)];
    }
    return m;
}

/* Mass of the keys [t0, t1), which exist. */
static void add_mass(const struct run *x, int fits, int64_t bin, int64_t t0, int64_t t1, const double *p) {
    enum { PIECE = 4096 };
    struct at_dist_local *local = &x->w->local;
    for (int64_t t = t0; fits && t < t1; t += PIECE)
        local->mass_overflow |=
            __builtin_add_overflow(local->mass[bin], at_fast_mass(least(PIECE, t1 - t), p + t), &local->mass[bin]);
    for (int64_t t = t0; !fits && t < t1; t++) {
        const double units = nearbyint(fabs(p[t]) * 0x1p24);
        if (!isfinite(p[t])) /* counted with p */
            continue;
        local->mass_overflow |=
            !(units < 0x1p63) || __builtin_add_overflow(local->mass[bin], (uint64_t)units, &local->mass[bin]);
    }
}

static void count_mass(const struct run *x, int64_t query, int64_t n, const double *p) {
    const int64_t here = x->unit->keys - x->unit->queries + query;
    const int fits = at_fast_mass_fits(n, p);
    if (here >= 0 && here < n)
        add_mass(x, fits, 0, here, here + 1, p);
    for (int64_t bin = 1; bin < x->shape->n_distances; bin++) {
        const int64_t near = (int64_t)1 << (bin - 1), far = 2 * near - 1;
        const int64_t left = here - far > 0 ? here - far : 0, left_end = least(here - near + 1, n);
        const int64_t right = here + near > 0 ? here + near : 0, right_end = least(here + far + 1, n);
        if (left < left_end)
            add_mass(x, fits, bin, left, left_end, p);
        if (right < right_end)
            add_mass(x, fits, bin, right, right_end, p);
    }
}

static void close_tile(const struct run *x, int64_t n) {
    struct at_dist_worker *w = x->w;
    const int64_t pages = (n + AT_DIST_PAGE - 1) / AT_DIST_PAGE;
    for (int64_t i = 0; i < pages; i++)
        w->local.zero[AT_DIST_ZERO_tile_zero] += w->tile[i] == 0;
    w->local.zero[AT_DIST_ZERO_tile_total] += (uint64_t)pages;
    memset(w->tile, 0, (size_t)w->pages * sizeof *w->tile);
}

static void count_zeros(const struct run *x, int64_t query, int64_t n, int64_t live, const uint16_t *mask) {
    struct at_dist_worker *w = x->w;
    const int64_t pages = (n + AT_DIST_PAGE - 1) / AT_DIST_PAGE;
    uint16_t *group = w->group + (query - x->group_first) * w->pages;
    w->local.zero[AT_DIST_ZERO_element_zero] += (uint64_t)(n - live);
    w->local.zero[AT_DIST_ZERO_element_total] += (uint64_t)n;
    for (int64_t i = 0; i < pages; i++) {
        w->tile[i] |= mask[i];
        group[i] |= mask[i];
    }
    if (query % AT_DIST_TILE == AT_DIST_TILE - 1 || query == x->unit->queries - 1)
        close_tile(x, n); /* the last row of a tile sees most */
}

/* P is mostly zeros, all in one bin, whose count would be waited for again and again: they are counted at once. */
static void count_p(const struct run *x, int64_t query, int64_t n, int64_t live, const double *p) {
    struct at_dist_worker *w = x->w;
    w->local.tally[AT_DIST_p].masked += (uint64_t)(x->unit->keys - n);
    at_dist_worker_count(w, AT_DIST_p, live, w->live);
    if (w->local.counts[AT_DIST_p])
        w->local.counts[AT_DIST_p][at_dist_bin_of(x->shape->bins, 0)] += (uint32_t)(n - live);
    ledger(x, 3, query, n, p, 1);
}

static void keep_stat(struct at_dist_worker *w, enum at_dist_what what, double value) {
    const int i = (int)what - AT_DIST_row_max;
    if (w->local.counts[what])
        w->stat[i * w->rows + w->stats[i]++] = value;
}

static void no_stat(struct at_dist_worker *w, enum at_dist_what what) { w->local.tally[what].n_empty++; }

/* w: p or e; live: those that are not 0. */
static void row_statistics(const struct run *x, int64_t n, int64_t live, double max, double sum, double first) {
    struct at_dist_worker *w = x->w;
    if (n == 0) {
        no_stat(w, AT_DIST_row_max);
        no_stat(w, AT_DIST_row_sum);
    } else {
        keep_stat(w, AT_DIST_row_max, max);
        keep_stat(w, AT_DIST_row_sum, sum);
    }
    if (n == 0 || sum == 0) {
        no_stat(w, AT_DIST_entropy);
        no_stat(w, AT_DIST_support);
        no_stat(w, AT_DIST_share0);
        return;
    }
    if (w->local.counts[AT_DIST_entropy] || w->local.counts[AT_DIST_support]) {
        at_fast_entropy_row(live, w->live, w->z);
        double entropy = at_plain_log2(sum) - at_fast_sum_row(live, w->z) / sum;
        entropy = entropy < 0 ? 0.0 : entropy;
        keep_stat(w, AT_DIST_entropy, entropy);
        keep_stat(w, AT_DIST_support, at_plain_exp2(entropy));
    }
    keep_stat(w, AT_DIST_share0, first / sum);
}

/* Weights of an AsyncT row into its row of scores; gives the row's largest score, NaN if one is. */
static double gate(const struct run *x, int64_t n, double *dot) {
    struct at_dist_worker *w = x->w;
    int has_nan;
    const double max = at_fast_scale_row(n, x->head->scale, dot, w->s, &has_nan);
    at_fast_gate_row(x->head, n, dot, w->s, w->z, w->p);
    return has_nan ? (double)NAN : max;
}

static double weigh(const struct run *x, int64_t n, double *dot) {
    struct at_dist_worker *w = x->w;
    int has_nan;
    const double max = at_fast_scale_row(n, x->head->scale, dot, w->s, &has_nan);
    at_fast_exp_row(n, max > -(double)INFINITY ? max : 0, w->s, w->z);
    return has_nan ? (double)NAN : max;
}

static void run_row(const struct run *x, int64_t i) {
    struct at_dist_worker *w = x->w;
    const int64_t query = x->block->first + i, n = at_dist_visible(x->unit, query);
    const int counting = !x->unit->only_compute, softmax = x->unit->softmax;
    double *dot = w->scores + i * w->stride;
    uint16_t *mask = w->mask + i * w->pages;
    const double *weights = softmax ? w->z : w->p;
    if (counting)
        count_row(x, AT_DIST_raw, 0, query, n, dot);
    const double max = softmax ? weigh(x, n, dot) : gate(x, n, dot);
    double sum = 0;
    if (softmax) {
        sum = at_fast_sum_row(n, w->z);
        at_fast_divide_row(n, sum, w->z, w->p);
    }
    memset(mask, 0, (size_t)w->pages * sizeof *mask);
    at_fast_mask_row(n, w->p, mask);
    int64_t live = gather(mask, n, w->p, w->live);
    if (counting) {
        count_row(x, AT_DIST_scaled, 1, query, n, w->s);
        if (!softmax)
            count_row(x, AT_DIST_fir, 2, query, n, w->z);
        count_p(x, query, n, live, softmax ? w->z : w->p);
        count_mass(x, query, n, w->p);
        count_zeros(x, query, n, live, mask);
    }
    if (softmax) /* e may be more than 0 where p is not */
        live = gather(mask, n, w->z, w->live);
    else
        sum = at_fast_sum_row(live, w->live);
    at_fast_multiply_row(n, softmax ? 1.0 : x->head->gamma, weights, dot);
    w->row_sum[i] = sum;
    row_statistics(x, n, live, max, sum, n ? weights[0] : 0);
}

/* ---- outputs ---- */

static void weigh_all(const struct run *x) {
    struct at_dist_worker *w = x->w;
    const int64_t d = x->unit->d;
    memset(w->o, 0, (size_t)(x->block->rows * d) * sizeof *w->o);
    for (int64_t t0 = 0; t0 < x->block->keys; t0 += AT_DIST_PANEL) {
        const int64_t n = least(AT_DIST_PANEL, x->block->keys - t0);
        load_panel(x, x->unit->v, t0, n);
        for (int64_t i = 0; i < x->block->rows; i++)
            at_fast_weigh_values(n, d, w->scores + i * w->stride + t0, w->mask + i * w->pages + t0 / AT_DIST_PAGE,
                                 w->panel, w->o + i * d);
    }
    for (int64_t i = 0; x->unit->softmax && i < x->block->rows; i++)
        for (int64_t c = 0; at_dist_visible(x->unit, x->block->first + i) && c < d; c++)
            w->o[i * d + c] /= w->row_sum[i];
}

static void count_outputs(const struct run *x) {
    struct at_dist_worker *w = x->w;
    const int64_t d = x->unit->d;
    at_dist_worker_count(w, AT_DIST_out, x->block->rows * d, w->o);
    for (int64_t i = 0; i < x->block->rows; i++)
        ledger(x, 4, x->block->first + i, d, w->o + i * d, 0);
    at_dist_worker_count(w, AT_DIST_q, x->block->rows * d, w->q);
    for (int s = 0; s < AT_DIST_ROW_STATS; s++)
        at_dist_worker_count(w, (enum at_dist_what)(AT_DIST_row_max + s), w->stats[s], w->stat + s * w->rows);
}

void at_dist_block_run(struct at_dist_worker *w, const struct at_dist_unit *unit, const struct at_dist_shape *shape,
                       const struct at_dist_block *block, int64_t group_first) {
    const struct run x = { w, unit, shape, block, &unit->heads[block->head], group_first };
    memset(w->stats, 0, sizeof w->stats);
    load_queries(&x);
    score(&x);
    for (int64_t i = 0; i < block->rows; i++)
        run_row(&x, i);
    weigh_all(&x);
    if (!unit->only_compute)
        count_outputs(&x);
}
