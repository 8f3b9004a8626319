/* Counting the rows of a head: slots, zeros, mass, ledger.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/plain_math.h"
#include "score_counts/score_counts.h"

/* One head while it is counted. Pointers of what is not wanted are NULL. */
struct counter {
    const struct at_problem *p;
    enum at_counts_fault fault;
    int64_t head, kv_head;
    double *counts, *kv_counts; /* planes of this head, and of its key/value head */
    double *sums, *kv_sums;
    uint64_t mass[AT_COUNTS_DISTANCES];
    struct at_ledger ledger;
    unsigned char *tile; /* [pages] something in the current tile is not 0 */
};

static const enum at_stage stages[AT_COUNTS_STAGES] = { AT_STAGE_score, AT_STAGE_scaled, AT_STAGE_gate_in, AT_STAGE_p,
                                                        AT_STAGE_out };

static int is_wanted(const struct counter *c, int quantity) { return at_counts_own_of(c->p).what >> quantity & 1; }

static void count(struct counter *c, int quantity, double x, double times) {
    double *planes = AT_COUNTS_KV_BITS >> quantity & 1 ? c->kv_counts : c->counts;
    const int plane = at_counts_plane(at_counts_own_of(c->p).what, quantity);
    const int slot = at_counts_slot((enum at_format)at_counts_own_of(c->p).bins, c->fault, x);
    if (planes && plane >= 0 && slot >= 0)
        planes[(int64_t)plane * AT_CODE_SLOTS + slot] += times;
}

static void note(struct counter *c, int stage, int quantity, int64_t query, int64_t key, double x) {
    const struct at_place place = { 0, c->head, query, key, -1 };
    if (is_wanted(c, quantity))
        at_ledger_note(&c->ledger, stages[stage], x, &place);
}

/* ---- what is counted of a row ---- */

static void count_scores(struct counter *c, const struct at_counts_row *row, int64_t i) {
    const int softmax = at_counts_own_of(c->p).softmax;
    for (int64_t t = 0; t < row->n; t++) {
        const double p = row->p[t];
        count(c, AT_COUNTS_OF_RAW, row->dot[t], 1);
        count(c, AT_COUNTS_OF_SCALED, row->s[t], 1);
        if (!softmax)
            count(c, AT_COUNTS_OF_FIR, row->z[t], 1);
        count(c, AT_COUNTS_OF_P, p, c->fault == AT_COUNTS_ZEROS_TWICE && p == 0 ? 2 : 1);
        note(c, 0, AT_COUNTS_OF_RAW, i, t, row->dot[t]);
        note(c, 1, AT_COUNTS_OF_SCALED, i, t, row->s[t]);
        if (!softmax)
            note(c, 2, AT_COUNTS_OF_FIR, i, t, row->z[t]);
        note(c, 3, AT_COUNTS_OF_P, i, t, softmax ? row->z[t] : p);
    }
}

/* 0 for 0, else one more than the exponent of the distance. */
static int distance_bin(int64_t distance) {
    int bin = 0;
    for (distance = distance < 0 ? -distance : distance; distance; distance >>= 1)
        bin++;
    return bin;
}

static void count_zeros(struct counter *c, const struct at_counts_row *row, int64_t i) {
    const struct at_sizes *z = &c->p->sizes;
    const int64_t here = z->slots - z->tokens - at_counts_own_of(c->p).behind + i;
    const int64_t pages = (row->n + AT_COUNTS_PAGE - 1) / AT_COUNTS_PAGE;
    for (int64_t t = 0; t < row->n; t++) {
        const int zero = row->p[t] == 0;
        c->sums[AT_COUNTS_ELEMENT_ZERO] += zero;
        c->tile[t / AT_COUNTS_PAGE] |= !zero;
        if (isfinite(row->p[t]))
            c->mass[distance_bin(here - t)] += (uint64_t)rint(fabs(row->p[t]) * 0x1p24);
    }
    if (i % AT_COUNTS_TILE != AT_COUNTS_TILE - 1 && i != z->tokens - 1)
        return;
    for (int64_t page = 0; page < pages; page++)
        c->sums[AT_COUNTS_TILE_ZERO] += !c->tile[page];
    memset(c->tile, 0, (size_t)(z->slots / AT_COUNTS_PAGE + 1));
}

static void count_statistics(struct counter *c, const struct at_counts_row *row) {
    const double *w = at_counts_own_of(c->p).softmax ? row->z : row->p;
    double sum = 0;
    if (row->n == 0)
        return;
    count(c, AT_COUNTS_OF_ROW_MAX, row->max, 1);
    count(c, AT_COUNTS_OF_ROW_SUM, row->sum, 1);
    if (row->sum == 0)
        return;
    for (int64_t t = 0; t < row->n; t++)
        sum += row->p[t] == 0 || w[t] == 0 ? 0.0 : w[t] * at_plain_log2(w[t]);
    double entropy = at_plain_log2(row->sum) - sum / row->sum;
    entropy = entropy < 0 ? 0.0 : entropy;
    count(c, AT_COUNTS_OF_ENTROPY, entropy, 1);
    count(c, AT_COUNTS_OF_SUPPORT, at_plain_exp2(entropy), 1);
    count(c, AT_COUNTS_OF_SHARE0, w[0] / row->sum, 1);
}

static void count_output(struct counter *c, const struct at_counts_rows *rows, const struct at_counts_row *row,
                         int64_t i) {
    const int64_t d = c->p->sizes.d;
    const int softmax = at_counts_own_of(c->p).softmax;
    for (int64_t e = 0; is_wanted(c, AT_COUNTS_OF_OUT) && e < d; e++) {
        double o = 0;
        for (int64_t t = 0; t < row->n; t++)
            if (row->p[t] != 0)
                o = fma(softmax ? row->z[t] : rows->head.gamma * row->p[t], rows->v[t * d + e], o);
        if (softmax && row->n)
            o /= row->sum;
        count(c, AT_COUNTS_OF_OUT, o, 1);
        note(c, 4, AT_COUNTS_OF_OUT, i, -1, o);
    }
}

/* ---- a key/value head ---- */

static void count_keys(struct counter *c, const struct at_counts_rows *rows) {
    for (int64_t i = 0; i < c->p->sizes.slots * c->p->sizes.d; i++) {
        count(c, AT_COUNTS_OF_K, rows->k[i], 1);
        count(c, AT_COUNTS_OF_V, rows->v[i], 1);
    }
}

/* live [tokens slots]: 2 visible, 1 some head of the group has p that is not 0. */
static void see_head(struct at_counts_rows *rows, unsigned char *live) {
    const struct at_sizes *z = &rows->problem->sizes;
    for (int64_t i = 0; i < z->tokens; i++) {
        const struct at_counts_row row = at_counts_row_of(rows, i);
        for (int64_t t = 0; t < row.n; t++)
            live[i * z->slots + t] |= (unsigned char)(2 + (row.p[t] != 0));
    }
}

static void count_group(struct counter *c, const unsigned char *live) {
    const struct at_sizes *z = &c->p->sizes;
    for (int64_t i = 0; i < z->tokens; i++)
        for (int64_t first = 0; first < z->slots; first += AT_COUNTS_PAGE) {
            int any = 0;
            for (int64_t t = first; t < first + AT_COUNTS_PAGE && t < z->slots; t++) {
                any |= live[i * z->slots + t];
                c->kv_sums[AT_COUNTS_KEY_ZERO] += live[i * z->slots + t] == 2;
            }
            c->kv_sums[AT_COUNTS_PAGE_ZERO] += any == 2;
        }
}

static at_status count_kv_head(struct counter *c, const struct at_counts_rows *own) {
    const struct at_sizes *z = &c->p->sizes;
    const int64_t group = z->h / z->hk;
    at_status status = AT_OK;
    struct at_counts_rows rows = { 0 };
    unsigned char *live = calloc((size_t)(z->tokens * z->slots + 1), 1);
    if (!live)
        return AT_FAIL(AT_NO_MEMORY, "no memory for zeros of %lld queries", (long long)z->tokens);
    count_keys(c, own);
    for (int64_t h = c->kv_head * group; is_wanted(c, AT_COUNTS_OF_P) && h < (c->kv_head + 1) * group; h++) {
        AT_TRY_OUT(at_counts_rows_open(c->p, c->fault, h, &rows));
        see_head(&rows, live);
        at_counts_rows_close(&rows);
    }
    count_group(c, live);
out:
    free(live);
    return status;
}

/* ---- a head ---- */

static void store_ledger(const struct counter *c) {
    for (int s = 0; s < AT_COUNTS_STAGES; s++) {
        const struct at_ledger_row *row = &c->ledger.stage[stages[s]];
        double *out = c->sums + AT_COUNTS_LEDGER + s * AT_COUNTS_LEDGER_FIELDS;
        out[AT_COUNTS_COUNT] = (double)row->count;
        out[AT_COUNTS_ZERO] = (double)row->zero;
        out[AT_COUNTS_NAN] = (double)row->nan;
        out[AT_COUNTS_INF] = (double)row->inf;
        out[AT_COUNTS_ABOVE] = (double)row->above_65504;
        out[AT_COUNTS_TO_INF] = (double)row->to_inf;
        out[AT_COUNTS_SUBNORMAL] = (double)row->subnormal;
        out[AT_COUNTS_FLUSHED] = (double)row->flushed;
        out[AT_COUNTS_MAX_ABS] = row->max_abs;
        out[AT_COUNTS_HAS_FIRST] = row->has_first;
        out[AT_COUNTS_FIRST_QUERY] = row->has_first ? (double)row->first.q : 0;
        out[AT_COUNTS_FIRST_KEY] = row->has_first ? (double)row->first.k : 0;
    }
}

static void store_mass(const struct counter *c) {
    for (int i = 0; i < AT_COUNTS_DISTANCES; i++) {
        c->sums[AT_COUNTS_MASS_LOW + i] = (double)(c->mass[i] & 0xffffffffu);
        c->sums[AT_COUNTS_MASS_HIGH + i] = (double)(c->mass[i] >> 32);
    }
}

static void count_rows(struct counter *c, struct at_counts_rows *rows) {
    const struct at_sizes *z = &c->p->sizes;
    for (int64_t i = 0; i < z->tokens; i++) {
        const struct at_counts_row row = at_counts_row_of(rows, i);
        count_scores(c, &row, i);
        if (is_wanted(c, AT_COUNTS_OF_P))
            count_zeros(c, &row, i);
        count_statistics(c, &row);
        count_output(c, rows, &row, i);
        for (int64_t e = 0; e < z->d; e++)
            count(c, AT_COUNTS_OF_Q, rows->q[i * z->d + e], 1);
    }
    store_ledger(c);
    store_mass(c);
}

/* Sums go to memory of its own where the caller wants none, so that there is one way. */
at_status at_counts_head_count(const struct at_problem *p, enum at_counts_fault fault, int64_t head,
                               struct at_eval *eval) {
    const int64_t group = p->sizes.h / p->sizes.hk;
    at_status status = AT_OK;
    struct at_counts_rows rows = { 0 };
    double sums[AT_HEAD_SUMS] = { 0 }, kv_sums[AT_KV_SUMS] = { 0 };
    struct counter c = { .p = p, .fault = fault, .head = head, .kv_head = head / group };
    at_ledger_init(&c.ledger);
    c.sums = sums;
    c.kv_sums = kv_sums;
    if (eval->value[AT_COUNTS_COUNTS])
        c.counts = eval->value[AT_COUNTS_COUNTS] + head * at_counts_own_of(p).quantities * AT_CODE_SLOTS;
    if (eval->value[AT_COUNTS_KV_COUNTS])
        c.kv_counts = eval->value[AT_COUNTS_KV_COUNTS] + c.kv_head * at_counts_own_of(p).kv_quantities * AT_CODE_SLOTS;
    c.tile = calloc((size_t)(p->sizes.slots / AT_COUNTS_PAGE + 1), 1);
    if (!c.tile)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for pages of %lld keys", (long long)p->sizes.slots);
    AT_TRY_OUT(at_counts_rows_open(p, fault, head, &rows));
    count_rows(&c, &rows);
    if (head % group == 0)
        AT_TRY_OUT(count_kv_head(&c, &rows));
    if (eval->value[AT_COUNTS_SUMS])
        memcpy(eval->value[AT_COUNTS_SUMS] + head * AT_HEAD_SUMS, sums, sizeof sums);
    if (eval->value[AT_COUNTS_KV_SUMS] && head % group == 0)
        memcpy(eval->value[AT_COUNTS_KV_SUMS] + c.kv_head * AT_KV_SUMS, kv_sums, sizeof kv_sums);
    if (eval->ledger)
        at_ledger_merge(eval->ledger, &c.ledger);
out:
    at_counts_rows_close(&rows);
    free(c.tile);
    return status;
}
