/* Every mode on a sample of sums, and what becomes of them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sums are independent: threads take them in chunks and leave what they found in the sum's own place; the reduction
 * then goes in order, so that the thread count changes no bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/study/accumulate/study.h"

/* One sum by one mode. */
struct found {
    double error, along; /* relative to sum |a b|; along: signed, towards the exact sum's own direction */
    double bound, probable;
    uint64_t ulp;
    int64_t n, additions, swamped, guarded, overflow_step;
    int finite_inputs, overflowed, was_infinite, beyond_bound, beyond_probable;
    double value;
    struct at_ledger_row ledger;
};

struct work {
    const struct at_study_input *input;
    enum at_study_product product;
    const struct at_study_mode *const *modes;
    int n_modes;
    int64_t first;       /* sum of found[0] */
    struct found *found; /* [sums n_modes] */
};

static enum at_stage stage_of(const struct work *w) {
    return w->product == AT_STUDY_qk ? AT_STAGE_qk_acc : AT_STAGE_pv_acc;
}

/* ---- one sum ---- */

struct seeing {
    struct found *found;
    struct at_ledger *ledger;
    double unit; /* of the accumulator, in the sum's own */
    enum at_stage stage;
    struct at_place place;
    const double *a, *b;
};

static void see(void *context, const struct at_study_step *step) {
    struct seeing *s = context;
    struct found *f = s->found;
    double added = 0;
    for (int i = 0; i < step->n; i++)
        added += s->a[step->first + i] * s->b[step->first + i];
    if (added != 0 && isfinite(added) && isfinite(step->before)) {
        f->additions++;
        f->swamped += step->stored == step->before;
    }
    s->place.step = step->index;
    const double value = step->computed / s->unit;
    if (!f->overflowed && fabs(value) > at_format_info(AT_F16)->max) {
        f->overflowed = 1;
        f->overflow_step = step->index;
    }
    f->was_infinite |= isinf(value) != 0;
    at_ledger_note(s->ledger, s->stage, value, &s->place);
}

static double largest_of(int64_t n, const double *a, const double *b) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fmax(fabs(a[i]), fabs(b[i])));
    return largest;
}

/* scale: what the mode's operands were multiplied with beside the sum's own; all is judged in the sum's own units. */
static void add(const struct work *w, const struct at_study_mode *mode, const struct at_study_sum *sum, const double *a,
                const double *b, double scale, struct found *f) {
    struct at_ledger ledger;
    struct seeing seeing = { .found = f, .ledger = &ledger, .unit = scale, .place = sum->place, .a = a, .b = b };
    const struct at_study_observer observer = { see, &seeing };
    double magnitude;
    seeing.stage = stage_of(w);
    at_ledger_init(&ledger);
    const double exact = at_study_exact(sum->n, a, b, &magnitude);
    const double got = at_study_add(mode, sum->n, a, b, &observer, &f->guarded);
    const double unit = scale * sum->divisor;
    f->ledger = ledger.stage[seeing.stage];
    f->n = sum->n;
    f->value = got;
    f->finite_inputs = isfinite(magnitude);
    if (!f->finite_inputs || !isfinite(got))
        return;
    const double off = got - exact;
    f->error = off == 0 ? 0 : fabs(off) / magnitude;
    f->along = exact < 0 ? -1 : 1;
    f->along *= off == 0 ? 0 : off / magnitude;
    f->ulp = at_ulp_distance(AT_F16, got / unit, exact / unit);
    const struct at_study_bound bound = at_study_bound(mode, sum->n, largest_of(sum->n, a, b));
    f->bound = bound.worst;
    f->probable = bound.probable;
    const int in_range = mode->stored != AT_F16 || !f->was_infinite;
    f->beyond_bound = in_range && !(fabs(off) <= bound.worst * magnitude + bound.eta);
    f->beyond_probable = in_range && !(fabs(off) <= bound.probable * magnitude + bound.eta);
}

static at_status add_sums(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const struct work *w = context;
    const size_t length = (size_t)at_study_sum_length(w->input, w->product) + 1;
    double *a = malloc(4 * length * sizeof *a);
    if (!a)
        return AT_FAIL(AT_NO_MEMORY, "study: no memory for a sum of %zu products", length);
    double *b = a + length, *narrow_a = b + length, *narrow_b = narrow_a + length;
    for (int64_t i = begin; i < end; i++) {
        struct at_study_sum sum;
        at_study_sum_at(w->input, w->product, i, a, b, &sum);
        memcpy(narrow_a, a, (size_t)sum.n * sizeof *a);
        memcpy(narrow_b, b, (size_t)sum.n * sizeof *b);
        const double scale = at_study_to_e4m3(sum.n, narrow_a) * at_study_to_e4m3(sum.n, narrow_b);
        for (int m = 0; m < w->n_modes; m++) {
            const int narrow = w->modes[m]->operand == AT_E4M3;
            add(w, w->modes[m], &sum, narrow ? narrow_a : a, narrow ? narrow_b : b, narrow ? scale : 1,
                &w->found[i * w->n_modes + m]);
        }
    }
    free(a);
    return AT_OK;
}

/* ---- all of them ---- */

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void count(const struct found *f, struct at_study_row *row) {
    row->sums++;
    row->length = f->n > row->length ? f->n : row->length;
    row->length_min = row->sums == 1 || f->n < row->length_min ? f->n : row->length_min;
    row->inputs_nonfinite += !f->finite_inputs;
    if (!f->finite_inputs)
        return; /* what infinite operands do is no property of the accumulator */
    row->result_inf += isinf(f->value) != 0;
    row->result_nan += isnan(f->value) != 0;
    row->additions += f->additions;
    row->swamped += f->swamped;
    row->overflowed += f->overflowed;
    if (f->overflowed && (row->earliest_step < 0 || f->overflow_step < row->earliest_step))
        row->earliest_step = f->overflow_step;
    row->laundered += f->was_infinite && isfinite(f->value);
    row->guarded += f->guarded;
    row->bound = fmax(row->bound, f->bound);
    row->probable = fmax(row->probable, f->probable);
    row->beyond_bound += f->beyond_bound;
    row->beyond_probable += f->beyond_probable;
    if (!isfinite(f->value))
        return;
    row->compared++;
    row->err_max = fmax(row->err_max, f->error);
    row->err_mean += f->error;
    row->bias += f->along;
    if (f->guarded && !(f->error <= row->guarded_err_max))
        row->guarded_err_max = f->error;
}

/* Quantiles by rank, as numpy's inverted_cdf. */
static uint64_t quantile(const uint64_t *sorted, int64_t n, int64_t percent) {
    return n ? sorted[(n * percent + 99) / 100 - 1] : 0;
}

static void reduce(const struct work *w, int mode, int64_t sums, uint64_t *ulps, struct at_study_row *row) {
    struct at_ledger ledger, one;
    int64_t n = 0;
    at_ledger_init(&ledger);
    at_ledger_init(&one);
    row->guarded_err_max = NAN;
    row->earliest_step = -1;
    for (int64_t i = 0; i < sums; i++) {
        const struct found *f = &w->found[i * w->n_modes + mode];
        count(f, row);
        if (!f->finite_inputs)
            continue;
        one.stage[stage_of(w)] = f->ledger;
        at_ledger_merge(&ledger, &one);
        if (isfinite(f->value))
            ulps[n++] = f->ulp;
    }
    qsort(ulps, (size_t)n, sizeof *ulps, by_value);
    row->ulp_p50 = quantile(ulps, n, 50);
    row->ulp_p99 = quantile(ulps, n, 99);
    row->ulp_max = quantile(ulps, n, 100);
    row->err_mean = n ? row->err_mean / (double)n : NAN;
    row->bias = n ? row->bias / (double)n : NAN;
    row->err_max = n ? row->err_max : NAN;
    row->swamped_share = row->additions ? (double)row->swamped / (double)row->additions : NAN;
    row->slope = row->slope_error = NAN;
    row->ledger = ledger.stage[stage_of(w)];
}

at_status at_study_measure(const struct at_study_input *input, enum at_study_product product, const char *attention,
                           const char *data, const struct at_study_mode *const *modes, int n_modes, int64_t sums,
                           struct at_study_rows *rows) {
    struct work w = { .input = input, .product = product, .modes = modes, .n_modes = n_modes };
    const int64_t all = at_study_sum_count(input, product);
    uint64_t *ulps = NULL;
    struct at_study_row *first;
    at_status status = AT_OK;
    sums = sums < all ? sums : all;
    w.found = calloc((size_t)(sums * n_modes) + 1, sizeof *w.found);
    ulps = calloc((size_t)sums + 1, sizeof *ulps);
    if (!w.found || !ulps)
        AT_FAIL_OUT(AT_NO_MEMORY, "study: no memory for %lld sums by %d modes", (long long)sums, n_modes);
    AT_TRY_OUT(at_parallel(sums, 4, at_threads(), add_sums, &w));
    AT_TRY_OUT(at_study_rows_add(rows, n_modes, &first));
    for (int m = 0; m < n_modes; m++) {
        struct at_study_row *row = first + m;
        row->d = input->data.problem.sizes.d;
        snprintf(row->attention, sizeof row->attention, "%s", attention);
        snprintf(row->product, sizeof row->product, "%s", at_study_product_name(product));
        snprintf(row->mode, sizeof row->mode, "%s", modes[m]->name);
        snprintf(row->data, sizeof row->data, "%s", data);
        snprintf(row->case_id, sizeof row->case_id, "%s", input->cases.items[0].id);
        reduce(&w, m, sums, ulps, row);
    }
out:
    free(w.found);
    free(ulps);
    return status;
}
