/* AsyncT attention in a variant's declared arithmetic, bit for bit.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel must do to have these bits. "step" is f64 when both units are f64, else f32; every operation
 * below rounds once to nearest in the format named. Sums over d and over keys are at_accumulate's
 * (reference/tensor_core/accumulate.h) from +0.
 *   q'      scale_on = q: fl32(q * scale) (f64 when qk_unit is f64); q_rounded: that rounded to dtype; else q.
 *   score   at_accumulate over q' and k in the order of qk_*; an f16 result is widened, an f64 result beside an
 *           f32 step is rounded to f32.
 *   scaled  scale_on = score: fl(score * scale); else the score.
 *   taps    scale_on = taps: each tap w of the filter below is fl(scale w).
 *   r       relu_pre: max(scaled, 0), giving +0 for -0; clamp = fminmax turns NaN into 0, propagate keeps it.
 *   gate_in fir_order = taps: z = fl(w0 r_t), then for j = 1 .. K-1 while t-j >= 0 z = fl(z + fl(w_j r_{t-j})), or
 *           fma(w_j, r_{t-j}, z) with fir_fma. w is the stored tap; at a shrinking edge (t + 1 < K) it is
 *           c = fl(sigma / (t+1)), w0 = fl(1 - c), w_j = -c.
 *           fir_order = pooled: sum = fl(fl(r_t + r_{t-1}) + ...), c = fl(sigma / D), z = fl(r_t - fl(c sum)), or
 *           fma(-c, sum, r_t).
 *   p       max(min(max(z, 0), clip_max), clip_min); fminmax takes the other operand of a NaN.
 *   operand gamma_on = p: round_P(fl(gamma p)); after_p: fl(gamma round_P(p)); output: round_P(p).
 *   partial of `split` keys from key 0 on (with `splits`, of one visible key in so many, rounded up to a multiple of
 *           `split`; one of all visible keys when split = 0): for each channel
 *           at_accumulate over operand and v in the order of pv_*; pv_zero = skipped leaves keys with operand 0
 *           out; of each pv_spread = S keys (contiguous, or in pages of whole groups) step i has the keys
 *           q S/4 + 4 i + {0, 1, 2, 3}, q = 0 .. 3, zeros for those that are not visible. Partials are held in f32 (f64 when pv_unit is f64): o = partial 0, then fl(o + partial i).
 *   output  gamma_on = output: o = fl(gamma o). Then rounded to the format of o (dtype). +0 when nothing is visible.
 *
 * Ledger: every stage in the declared values, p before gamma and rounding, out before the rounding to dtype.
 * inf_made counts accumulator steps and all operations here that turn finite operands into infinity. A key is
 * laundered when p is finite although a score in its filter's window, or its gate input, is not. */
#include <math.h>
#include <stdlib.h>

#include "asynct_attention/asynct_attention.h"
#include "asynct_attention/declared.h"
#include "asynct_attention/rows.h"

/* Scratch and constants of one evaluation. */
struct model {
    const struct at_problem *problem;
    const struct at_numerics *numerics;
    struct at_eval *eval;
    struct at_asynct_formats formats;
    struct at_order qk, pv;
    int64_t spread;             /* keys of a group of steps of P*V; 0: in order */
    double *q;                  /* [d], scaled; the one allocation */
    double *o;                  /* [d] */
    double *score, *scaled, *r; /* [max_sk] */
    double *z, *p, *operand;    /* [max_sk] */
    double *live_p, *live_v;    /* keys of one partial, in whole groups: [length], [length d] */
};

/* ---- Single operations in the declared format ---- */

static double rounded(enum at_format format, double x) { return format == AT_F64 ? x : (double)(float)x; }

/* In f32 a product is exact in double, and a sum rounds to double and then to f32 as it would at once
 * (53 >= 2 * 24 + 2; sums do not underflow). */
static double mul(enum at_format format, double x, double y) { return rounded(format, x * y); }
static double add(enum at_format format, double x, double y) { return rounded(format, x + y); }

static double quotient(enum at_format format, double x, double y) {
    return format == AT_F64 ? x / y : (double)((float)x / (float)y);
}

/* x y + z with one rounding; in f32 two would be possible through double. */
static double mul_add(enum at_format format, int fused, double x, double y, double z) {
    if (!fused)
        return add(format, z, mul(format, x, y));
    return format == AT_F64 ? fma(x, y, z) : (double)fmaf((float)x, (float)y, (float)z);
}

/* max(x, low), and min(x, high), with the declared way of NaN. */
static double at_least(const struct model *m, double x, double low) {
    if (isnan(x))
        return m->numerics->clamp == AT_CLAMP_PROPAGATE ? x : low;
    return x > low ? x : low;
}

static double at_most(const struct model *m, double x, double high) {
    if (isnan(x))
        return m->numerics->clamp == AT_CLAMP_PROPAGATE ? x : high;
    return x < high ? x : high;
}

/* Infinity that finite operands gave. */
static void note_made(const struct model *m, int finite_operands, double result) {
    if (m->eval->ledger)
        m->eval->ledger->inf_made += finite_operands && isinf(result);
}

/* ---- The stages ---- */

static void scale_query(const struct model *m, const double *q, double scale) {
    for (int64_t i = 0; i < m->problem->sizes.d; i++) {
        enum at_format wide = m->qk.unit == AT_UNIT_F64 ? AT_F64 : AT_F32;
        double x = q[i];
        if (m->numerics->scale_on == AT_SCALE_ON_Q || m->numerics->scale_on == AT_SCALE_ON_Q_ROUNDED)
            x = mul(wide, x, scale);
        if (m->numerics->scale_on == AT_SCALE_ON_Q_ROUNDED)
            x = at_round(m->problem->dtype, x);
        note_made(m, isfinite(q[i]), x);
        m->q[i] = x;
    }
}

static void scores(const struct model *m, const struct at_asynct_input *in, const struct at_asynct_head *head) {
    const int64_t d = m->problem->sizes.d;
    const enum at_format step = m->formats.step;
    struct at_watch watch = { m->eval->ledger,
                              AT_STAGE_qk_acc,
                              { in->row.request, in->row.head, in->row.query, 0, 0 } };
    for (int64_t t = 0; t < in->row.visible; t++) {
        watch.place.k = t;
        double x = at_accumulate(&m->qk, d, m->q, 1, in->k + t * d, 1, 0.0, m->eval->ledger ? &watch : NULL);
        m->score[t] = rounded(step, x);
        m->scaled[t] = m->score[t];
        if (m->numerics->scale_on == AT_SCALE_ON_SCORE)
            m->scaled[t] = mul(step, m->score[t], head->scale);
        note_made(m, isfinite(x), m->scaled[t]);
        m->r[t] = head->relu_pre ? at_least(m, m->scaled[t], 0.0) : m->scaled[t];
    }
}

/* Tap j at key t for the order `taps`, without the scale. */
static double plain_tap(const struct model *m, const struct at_asynct_head *head, int64_t t, int j) {
    if (!head->pooled || !head->shrink || t + 1 >= head->taps)
        return head->tap[j];
    double share = quotient(m->formats.step, head->sigma, (double)(t + 1));
    return j == 0 ? rounded(m->formats.step, 1 - share) : -share;
}

static double tap(const struct model *m, const struct at_asynct_head *head, int64_t t, int j) {
    const double w = plain_tap(m, head, t, j);
    return m->numerics->scale_on == AT_SCALE_ON_TAPS ? mul(m->formats.step, head->scale, w) : w;
}

static double fir(const struct model *m, const struct at_asynct_head *head, int64_t t) {
    const enum at_format step = m->formats.step;
    const int fused = m->numerics->fir_fma;
    const double *r = m->r + t;
    if (m->numerics->fir_order == AT_FIR_ORDER_TAPS) {
        double z = mul(step, tap(m, head, t, 0), r[0]);
        for (int j = 1; j < head->taps && j <= t; j++)
            z = mul_add(step, fused, tap(m, head, t, j), r[-j], z);
        return z;
    }
    double sum = r[0];
    for (int j = 1; j < head->taps && j <= t; j++)
        sum = add(step, sum, r[-j]);
    int64_t divisor = head->shrink && t + 1 < head->taps ? t + 1 : head->taps;
    double share = quotient(step, head->sigma, (double)divisor);
    return mul_add(step, fused, -share, sum, r[0]);
}

static double operand(const struct model *m, double gamma, double p) {
    const enum at_format step = m->formats.step, format = (enum at_format)m->numerics->p;
    double x = m->numerics->gamma_on == AT_GAMMA_ON_P ? mul(step, gamma, p) : p;
    x = at_round(format, x);
    if (m->numerics->gamma_on == AT_GAMMA_AFTER_P)
        x = mul(step, gamma, x);
    note_made(m, isfinite(p), x);
    return x;
}

/* Was anything in key t's window, or its gate input, not finite? */
static int is_disturbed(const struct model *m, int taps, int64_t t) {
    int disturbed = !isfinite(m->z[t]);
    for (int j = 0; j < taps && j <= t; j++)
        disturbed |= !isfinite(m->scaled[t - j]);
    return disturbed;
}

static void note_key(const struct model *m, const struct at_asynct_head *head, const struct at_place *place) {
    struct at_ledger *ledger = m->eval->ledger;
    const int64_t t = place->k;
    const double low = at_asynct_clamp(head, -INFINITY), high = at_asynct_clamp(head, INFINITY);
    at_ledger_note(ledger, AT_STAGE_score, m->score[t], place);
    at_ledger_note(ledger, AT_STAGE_scaled, m->scaled[t], place);
    at_ledger_note(ledger, AT_STAGE_gate_in, m->z[t], place);
    at_ledger_note(ledger, AT_STAGE_p, m->p[t], place);
    ledger->clamped_low += m->z[t] < low;
    ledger->clamped_high += m->z[t] > high;
    if (!isfinite(m->p[t]) || !is_disturbed(m, head->taps, t))
        return;
    ledger->laundered++;
    if (!ledger->has_laundered || at_place_compare(place, &ledger->first_laundered) < 0)
        ledger->first_laundered = *place;
    ledger->has_laundered = 1;
}

static void gate(const struct model *m, const struct at_asynct_input *in, const struct at_asynct_head *head) {
    struct at_place place = { in->row.request, in->row.head, in->row.query, 0, -1 };
    for (int64_t t = 0; t < in->row.visible; t++) {
        m->z[t] = fir(m, head, t);
        int finite = 1;
        for (int j = 0; j < head->taps && j <= t; j++)
            finite &= isfinite(m->r[t - j]) != 0;
        note_made(m, finite, m->z[t]);
        m->p[t] = at_least(m, at_most(m, at_least(m, m->z[t], 0.0), head->clip_max), head->clip_min);
        m->operand[t] = operand(m, head->gamma, m->p[t]);
        place.k = t;
        if (m->eval->ledger)
            note_key(m, head, &place);
    }
}

/* Operands and rows of V of the keys [first, end) that are multiplied; how many. */
static int64_t gather(const struct model *m, const struct at_asynct_input *in, int64_t first, int64_t end) {
    const int64_t d = m->problem->sizes.d;
    int64_t n = 0;
    for (int64_t t = first; t < end; t++) {
        if (m->operand[t] == 0 && m->numerics->pv_zero == AT_PV_ZERO_SKIPPED)
            continue;
        m->live_p[n] = m->operand[t];
        for (int64_t c = 0; c < d; c++)
            m->live_v[n * d + c] = in->v[t * d + c];
        n++;
    }
    return n;
}

/* The same of steps whose keys are spread over groups; keys from `end` on are zeros. */
static int64_t gather_spread(const struct model *m, const struct at_asynct_input *in, int64_t first, int64_t end) {
    const int64_t d = m->problem->sizes.d, group = m->spread, n = (end - first + group - 1) / group * group;
    for (int64_t i = 0; i < n; i++) {
        const int64_t within = i % group, step = within / 16, q = within % 16 / 4;
        const int64_t t = first + i - within + q * (group / 4) + 4 * step + i % 4;
        m->live_p[i] = t < end ? m->operand[t] : 0;
        for (int64_t c = 0; c < d; c++)
            m->live_v[i * d + c] = t < end ? in->v[t * d + c] : 0;
    }
    return n;
}

static void output(const struct model *m, const struct at_asynct_input *in, double gamma) {
    const int64_t d = m->problem->sizes.d, visible = in->row.visible;
    const int64_t range = at_partial_keys(m->numerics->split, m->numerics->splits, visible),
                  length = range ? range : visible;
    const enum at_format format = m->formats.sum;
    struct at_watch watch = { m->eval->ledger,
                              AT_STAGE_pv_acc,
                              { in->row.request, in->row.head, in->row.query, 0, 0 } };
    for (int64_t c = 0; c < d; c++)
        m->o[c] = 0;
    for (int64_t first = 0; first < visible; first += length) {
        int64_t end = visible - first < length ? visible : first + length;
        int64_t n = (m->spread ? gather_spread : gather)(m, in, first, end);
        watch.place.k = first;
        for (int64_t c = 0; c < d; c++) {
            double part =
                at_accumulate(&m->pv, n, m->live_p, 1, m->live_v + c, d, 0.0, m->eval->ledger ? &watch : NULL);
            double sum = first == 0 ? part : add(format, m->o[c], part);
            note_made(m, isfinite(part) && isfinite(m->o[c]), sum);
            m->o[c] = sum;
        }
    }
    for (int64_t c = 0; m->numerics->gamma_on == AT_GAMMA_ON_OUTPUT && c < d; c++) {
        double o = m->o[c];
        m->o[c] = mul(format, gamma, o);
        note_made(m, isfinite(o), m->o[c]);
    }
}

static void trace(const struct model *m, int64_t row, int64_t n) {
    const struct at_eval *eval = m->eval;
    eval->trace(eval->trace_context, row, AT_STAGE_score, n, m->score);
    eval->trace(eval->trace_context, row, AT_STAGE_scaled, n, m->scaled);
    eval->trace(eval->trace_context, row, AT_STAGE_gate_in, n, m->z);
    eval->trace(eval->trace_context, row, AT_STAGE_p, n, m->p);
}

static at_status model_row(void *context, const struct at_asynct_input *in) {
    const struct model *m = context;
    const int64_t d = m->problem->sizes.d, row = in->row.token * m->problem->sizes.h + in->row.head;
    struct at_place place = { in->row.request, in->row.head, in->row.query, -1, -1 };
    struct at_asynct_head head;
    at_asynct_head_init(m->problem, in->row.head, &head);
    scale_query(m, in->q, head.scale);
    scores(m, in, &head);
    gate(m, in, &head);
    output(m, in, head.gamma);
    for (int64_t c = 0; c < d; c++) {
        double o = at_round(m->problem->tensors[AT_ASYNCT_O].format, m->o[c]);
        note_made(m, isfinite(m->o[c]), o);
        if (m->eval->ledger)
            at_ledger_note(m->eval->ledger, AT_STAGE_out, m->o[c], &place);
        if (m->eval->value[AT_ASYNCT_O])
            m->eval->value[AT_ASYNCT_O][row * d + c] = o;
        if (m->eval->limit[AT_ASYNCT_O])
            m->eval->limit[AT_ASYNCT_O][row * d + c] = 0; /* to the bit */
    }
    if (m->eval->trace)
        trace(m, row, in->row.visible);
    return AT_OK;
}

at_status at_asynct_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                          int64_t row1, struct at_eval *eval) {
    struct model m = { .problem = problem, .numerics = numerics, .eval = eval };
    AT_TRY(at_asynct_declared(problem, numerics, &m.formats));
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "free_order=1: the variant declares no order of summation to follow");
    m.qk = at_order_qk(numerics);
    m.qk.input = problem->dtype;
    m.pv = at_order_pv(numerics);
    m.spread = at_asynct_spread(problem, numerics);
    const size_t keys = (size_t)(problem->sizes.max_sk + m.spread), d = (size_t)problem->sizes.d;
    m.q = malloc((2 * d + 7 * keys + keys * d) * sizeof *m.q);
    if (!m.q)
        return AT_FAIL(AT_NO_MEMORY, "a row of %zu keys of head size %zu", keys, d);
    m.o = m.q + d;
    double **arrays[] = { &m.score, &m.scaled, &m.r, &m.z, &m.p, &m.operand, &m.live_p, &m.live_v };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        *arrays[i] = m.o + d + i * keys;
    at_status status = at_asynct_walk(problem, row0, row1, model_row, &m);
    free(m.q);
    return status;
}
