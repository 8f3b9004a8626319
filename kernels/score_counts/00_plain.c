/* Counting scores on the host, one row after the other.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: the definition (reference/score_counts/score_counts.h); a code by way of f32, rounded to odd so that the
 * second rounding is the only one that counts.
 * Launch: one thread; scratch for a head's queries, keys and values and for a row of scores.
 * Limits: f16, bf16 or f32; asynct and softmax.
 * Source: ours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/kernel.h"
#include "attest/plain_math.h"
#include "score_counts/score_counts.h"

struct work {
    const struct at_problem *p;
    int64_t head, kv_head;
    int32_t *planes[AT_COUNTS_QUANTITIES]; /* NULL: not counted */
    double *sums;
    uint64_t mass[AT_COUNTS_DISTANCES];
    struct at_ledger ledger;
    double *q, *k, *v, *dot, *s, *z, *p_of;
    uint8_t *group; /* [queries keys] bit 0: a head of the group has p that is not 0 */
    uint8_t *tile;  /* [pages] */
};

/* ---- memory ---- */

static int64_t lay_out(const struct at_problem *p, struct work *w, void *base) {
    const struct at_sizes *z = &p->sizes;
    const int64_t q = z->tokens * z->d, k = z->slots * z->d, n = z->slots;
    double *at = base;
    if (base) {
        w->q = at;
        w->k = w->q + q;
        w->v = w->k + k;
        w->dot = w->v + k;
        w->s = w->dot + n;
        w->z = w->s + n;
        w->p_of = w->z + n;
        w->tile = (uint8_t *)(w->p_of + n);
        w->group = w->tile + n / AT_COUNTS_PAGE + 1;
    }
    return (q + 2 * k + 4 * n) * (int64_t)sizeof(double) + n / AT_COUNTS_PAGE + 1 + z->tokens * n;
}

static int64_t workspace(const struct at_problem *p) { return lay_out(p, NULL, NULL); }

static void decode(const struct at_tensor *t, int64_t n, int64_t heads, int64_t head, int64_t d, double *out) {
    const char *codes = t->data;
    const size_t bytes = at_format_info(t->format)->bytes;
    for (int64_t i = 0; i < n; i++)
        at_decode_array(t->format, (size_t)d, codes + (size_t)((i * heads + head) * d) * bytes, out + i * d);
}

/* ---- counting ---- */

static uint16_t code_of(enum at_format bins, double x) {
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((double)f != x) {
        bits -= fabs((double)f) > fabs(x);
        bits |= 1;
    }
    memcpy(&f, &bits, sizeof f);
    return bins == AT_F16 ? at_f16_from_f32(f) : at_bf16_from_f32(f);
}

static void count(struct work *w, int quantity, double x) {
    const enum at_format bins = (enum at_format)at_counts_own_of(w->p).bins;
    const int infinity = bins == AT_F16 ? 0x7c00 : 0x7f80;
    int32_t *plane = w->planes[quantity];
    if (!plane)
        return;
    if (x != x) {
        plane[2 * infinity + 2]++;
        return;
    }
    const int code = code_of(bins, x), size = code & 0x7fff;
    if (size == infinity && fabs(x) <= 0x1.fffffffffffffp1023)
        plane[2 * infinity + (code == size ? 3 : 4)]++;
    else
        plane[code == size ? infinity + 1 + size : infinity - size]++;
}

static void note(struct work *w, enum at_stage stage, int quantity, int64_t i, int64_t t, double x) {
    const struct at_place place = { 0, w->head, i, t, -1 };
    if (at_counts_own_of(w->p).what >> quantity & 1)
        at_ledger_note(&w->ledger, stage, x, &place);
}

/* ---- a row ---- */

static double product(int64_t d, const double *q, const double *k) {
    double sum = q[0] * k[0], rest = 0, plain = 0;
    int finite = isfinite(q[0]) && isfinite(k[0]);
    for (int64_t c = 1; c < d; c++) {
        const double x = q[c] * k[c], next = sum + x, part = next - sum;
        finite &= isfinite(q[c]) && isfinite(k[c]);
        rest += (sum - (next - part)) + (x - part);
        sum = next;
    }
    if (finite)
        return sum + rest;
    for (int64_t c = 0; c < d; c++)
        plain += q[c] * k[c];
    return plain;
}

static double gate_input(const struct work *w, int64_t t) {
    const double s = w->s[t];
    if (!isfinite(s))
        return (double)NAN;
    return s < 0 && w->p->params.relu_pre ? 0.0 : s;
}

static void gate(struct work *w, int64_t n) {
    const struct at_params *params = &w->p->params;
    const int64_t taps = w->p->sizes.taps;
    const float *tap = (const float *)w->p->tensors[AT_COUNTS_TAPS].data + w->head * taps;
    const double sigma = at_tensor_get(&w->p->tensors[AT_COUNTS_SIGMA], w->head);
    for (int64_t t = 0; t < n; t++) {
        const int64_t there = t + 1 < taps ? t + 1 : taps;
        double z = 0;
        for (int64_t j = 0; j < there; j++)
            z += params->fir_form == AT_FIR_TAPS ? (double)tap[j] * gate_input(w, t - j) : gate_input(w, t - j);
        if (params->fir_form == AT_FIR_POOLED)
            z = gate_input(w, t) - sigma / (double)(params->edge == AT_EDGE_SHRINK ? there : taps) * z;
        w->z[t] = z;
        z = z > 0 || z != z ? z : 0;
        if (z >= (double)params->clip_max)
            z = (double)params->clip_max;
        if (z <= (double)params->clip_min)
            z = (double)params->clip_min;
        w->p_of[t] = z;
    }
}

static double weigh(struct work *w, int64_t n, double max) {
    double sum = 0;
    for (int64_t t = 0; t < n; t++) {
        w->z[t] = at_plain_exp(w->s[t] - (isinf(max) && max < 0 ? 0 : max));
        sum += w->z[t];
    }
    for (int64_t t = 0; t < n; t++)
        w->p_of[t] = w->z[t] / sum;
    return sum;
}

static void count_row(struct work *w, int64_t i, int64_t n) {
    const int softmax = at_counts_own_of(w->p).softmax;
    for (int64_t t = 0; t < n; t++) {
        count(w, AT_COUNTS_OF_RAW, w->dot[t]);
        count(w, AT_COUNTS_OF_SCALED, w->s[t]);
        count(w, AT_COUNTS_OF_P, w->p_of[t]);
        note(w, AT_STAGE_score, AT_COUNTS_OF_RAW, i, t, w->dot[t]);
        note(w, AT_STAGE_scaled, AT_COUNTS_OF_SCALED, i, t, w->s[t]);
        note(w, AT_STAGE_p, AT_COUNTS_OF_P, i, t, softmax ? w->z[t] : w->p_of[t]);
        if (softmax)
            continue;
        count(w, AT_COUNTS_OF_FIR, w->z[t]);
        note(w, AT_STAGE_gate_in, AT_COUNTS_OF_FIR, i, t, w->z[t]);
    }
}

static void count_zeros(struct work *w, int64_t i, int64_t n) {
    const struct at_sizes *z = &w->p->sizes;
    const int64_t here = z->slots - z->tokens - at_counts_own_of(w->p).behind + i;
    for (int64_t t = 0; t < n; t++) {
        const int live = w->p_of[t] != 0;
        const int64_t distance = here < t ? t - here : here - t;
        w->sums[AT_COUNTS_ELEMENT_ZERO] += !live;
        w->tile[t / AT_COUNTS_PAGE] |= (uint8_t)live;
        w->group[i * z->slots + t] |= (uint8_t)live;
        if (isfinite(w->p_of[t]))
            w->mass[distance ? 64 - __builtin_clzll((uint64_t)distance) : 0] +=
                (uint64_t)nearbyint(ldexp(fabs(w->p_of[t]), 24));
    }
    if ((i + 1) % AT_COUNTS_TILE && i + 1 < z->tokens)
        return;
    for (int64_t page = 0; page * AT_COUNTS_PAGE < n; page++)
        w->sums[AT_COUNTS_TILE_ZERO] += !w->tile[page];
    memset(w->tile, 0, (size_t)(z->slots / AT_COUNTS_PAGE + 1));
}

static void statistics(struct work *w, int64_t n, double max, double sum) {
    const double *weight = at_counts_own_of(w->p).softmax ? w->z : w->p_of;
    double terms = 0;
    count(w, AT_COUNTS_OF_ROW_MAX, max);
    count(w, AT_COUNTS_OF_ROW_SUM, sum);
    if (sum == 0)
        return;
    for (int64_t t = 0; t < n; t++)
        if (w->p_of[t] != 0 && weight[t] != 0)
            terms += weight[t] * at_plain_log2(weight[t]);
    double entropy = at_plain_log2(sum) - terms / sum;
    if (entropy < 0)
        entropy = 0;
    count(w, AT_COUNTS_OF_ENTROPY, entropy);
    count(w, AT_COUNTS_OF_SUPPORT, at_plain_exp2(entropy));
    count(w, AT_COUNTS_OF_SHARE0, weight[0] / sum);
}

static void output(struct work *w, int64_t i, int64_t n, double sum) {
    const double gamma = at_tensor_get(&w->p->tensors[AT_COUNTS_GAMMA], w->head);
    const int64_t d = w->p->sizes.d;
    for (int64_t c = 0; w->planes[AT_COUNTS_OF_OUT] && c < d; c++) {
        double o = 0;
        for (int64_t t = 0; t < n; t++)
            if (w->p_of[t] != 0)
                o = fma(at_counts_own_of(w->p).softmax ? w->z[t] : gamma * w->p_of[t], w->v[t * d + c], o);
        o = at_counts_own_of(w->p).softmax && n ? o / sum : o;
        count(w, AT_COUNTS_OF_OUT, o);
        note(w, AT_STAGE_out, AT_COUNTS_OF_OUT, i, -1, o);
    }
}

static void run_row(struct work *w, int64_t i, int64_t n) {
    const int64_t d = w->p->sizes.d;
    double max = -(double)INFINITY, sum = 0;
    int nan = 0;
    for (int64_t c = 0; c < d; c++)
        count(w, AT_COUNTS_OF_Q, w->q[i * d + c]);
    for (int64_t t = 0; t < n; t++) {
        w->dot[t] = product(d, w->q + i * d, w->k + t * d);
        w->s[t] = (double)w->p->params.scale * w->dot[t];
        nan |= w->s[t] != w->s[t];
        max = w->s[t] > max ? w->s[t] : max;
    }
    if (at_counts_own_of(w->p).softmax)
        sum = weigh(w, n, max);
    else
        gate(w, n);
    for (int64_t t = 0; !at_counts_own_of(w->p).softmax && t < n; t++)
        sum += w->p_of[t];
    count_row(w, i, n);
    if (w->planes[AT_COUNTS_OF_P])
        count_zeros(w, i, n);
    if (n)
        statistics(w, n, nan ? (double)NAN : max, sum);
    output(w, i, n, sum);
}

/* ---- a head ---- */

static int64_t visible(const struct at_problem *p, int64_t i) {
    const int64_t n = p->sizes.slots - p->sizes.tokens - at_counts_own_of(p).behind + i + 1;
    return !p->params.causal ? p->sizes.slots : n > 0 ? n : 0;
}

static void store(const struct work *w) {
    static const enum at_stage stages[] = { AT_STAGE_score, AT_STAGE_scaled, AT_STAGE_gate_in, AT_STAGE_p,
                                            AT_STAGE_out };
    for (int s = 0; s < AT_COUNTS_STAGES; s++) {
        const struct at_ledger_row *r = &w->ledger.stage[stages[s]];
        const double fields[AT_COUNTS_LEDGER_FIELDS] = {
            (double)r->count,   (double)r->zero,      (double)r->nan,     (double)r->inf, (double)r->above_65504,
            (double)r->to_inf,  (double)r->subnormal, (double)r->flushed, r->max_abs,     r->has_first,
            (double)r->first.q, (double)r->first.k
        };
        memcpy(w->sums + AT_COUNTS_LEDGER + s * AT_COUNTS_LEDGER_FIELDS, fields, sizeof fields);
    }
    for (int i = 0; i < AT_COUNTS_DISTANCES; i++) {
        w->sums[AT_COUNTS_MASS_LOW + i] = (double)(uint32_t)w->mass[i];
        w->sums[AT_COUNTS_MASS_HIGH + i] = (double)(w->mass[i] >> 32);
    }
}

static void run_head(struct work *w, int64_t head) {
    const struct at_problem *p = w->p;
    const struct at_sizes *z = &p->sizes;
    w->head = head;
    memset(w->mass, 0, sizeof w->mass);
    at_ledger_init(&w->ledger);
    w->sums = (double *)p->tensors[AT_COUNTS_SUMS].data + head * AT_HEAD_SUMS;
    for (int i = 0; i < AT_COUNTS_QUANTITIES; i++) {
        const int plane = at_counts_plane(at_counts_own_of(p).what, i), kv = AT_COUNTS_KV_BITS >> i & 1;
        int32_t *planes = p->tensors[kv ? AT_COUNTS_KV_COUNTS : AT_COUNTS_COUNTS].data;
        const int64_t first =
            kv ? w->kv_head * at_counts_own_of(p).kv_quantities : head * at_counts_own_of(p).quantities;
        w->planes[i] = plane < 0 ? NULL : planes + (first + plane) * AT_CODE_SLOTS;
    }
    decode(&p->tensors[AT_ATTN_Q], z->tokens, z->h, head, z->d, w->q);
    memset(w->tile, 0, (size_t)(z->slots / AT_COUNTS_PAGE + 1));
    for (int64_t i = 0; i < z->tokens; i++)
        run_row(w, i, visible(p, i));
    store(w);
}

static void count_group(struct work *w) {
    const struct at_sizes *z = &w->p->sizes;
    double *sums = (double *)w->p->tensors[AT_COUNTS_KV_SUMS].data + w->kv_head * AT_KV_SUMS;
    for (int64_t i = 0; i < z->tokens && w->planes[AT_COUNTS_OF_P]; i++)
        for (int64_t t = 0, any = 0, n = visible(w->p, i); t < n; t++) {
            const int live = w->group[i * z->slots + t];
            any |= live;
            sums[AT_COUNTS_KEY_ZERO] += !live;
            if (t % AT_COUNTS_PAGE == AT_COUNTS_PAGE - 1 || t == n - 1) {
                sums[AT_COUNTS_PAGE_ZERO] += !any;
                any = 0;
            }
        }
    for (int64_t i = 0; i < z->slots * z->d; i++) {
        count(w, AT_COUNTS_OF_K, w->k[i]);
        count(w, AT_COUNTS_OF_V, w->v[i]);
    }
}

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_sizes *z = &p->sizes;
    struct work w = { .p = p };
    lay_out(p, &w, launch->workspace);
    for (int t = AT_COUNTS_COUNTS; t <= AT_COUNTS_KV_SUMS; t++)
        if (p->tensors[t].data)
            memset(p->tensors[t].data, 0, (size_t)at_tensor_bytes(&p->tensors[t]));
    for (w.kv_head = 0; w.kv_head < z->hk; w.kv_head++) {
        const int64_t group = z->h / z->hk;
        decode(&p->tensors[AT_ATTN_K], z->slots, z->hk, w.kv_head, z->d, w.k);
        decode(&p->tensors[AT_ATTN_V], z->slots, z->hk, w.kv_head, z->d, w.v);
        memset(w.group, 0, (size_t)(z->tokens * z->slots));
        for (int64_t head = w.kv_head * group; head < (w.kv_head + 1) * group; head++)
            run_head(&w, head);
        count_group(&w);
    }
    return 0;
}

static const char *supports(const struct at_problem *problem) {
    (void)problem;
    return NULL;
}

AT_KERNEL(score_counts, 00_plain) = {
    .summary = "one row after the other, codes by way of f32 rounded to odd",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F64,
        .qk_lanes = 1,
        .p = AT_F32,
        .clamp = AT_CLAMP_PROPAGATE,
        .pv_unit = AT_UNIT_F64,
        .pv_chunk = 1,
        .repeats = 1,
        .pv_zero = AT_PV_ZERO_SKIPPED,
    },
    .supports = supports,
    .workspace = workspace,
    .launch = launch,
};
