/* Making the decoys of a case, and trying them on a limit and a model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/decoys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"

/* Beyond this the decoys see a spread of rows; the kernel's own comparison always sees every element. */
static const double SAMPLE_ELEMENTS = 262144, SAMPLE_WORK = 4e7;

static int64_t request_of(const struct at_problem *p, int64_t row) {
    return p->op->request_of_row ? p->op->request_of_row(p, row) : row;
}

static int ends_request(const struct at_answer *a, int64_t row) {
    const struct at_problem *p = a->problem;
    return row + 1 == a->rows || (p->op->request_of_row && request_of(p, row) != request_of(p, row + 1));
}

static at_status choose_rows(struct at_answer *a) {
    const struct at_problem *p = a->problem;
    double elements = 0, work = 0;
    for (int o = 0; o < a->n_outputs; o++)
        elements += (double)a->count[a->outputs[o]];
    for (int64_t r = 0; r < a->rows; r++)
        work += p->op->row_work(p, r);
    double stride = fmax(1.0, fmax(elements / SAMPLE_ELEMENTS, work / SAMPLE_WORK));
    a->sample = calloc((size_t)a->rows + 1, sizeof *a->sample);
    if (!a->sample)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld sampled rows", (long long)a->rows);
    double next = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        if ((double)r >= next || ends_request(a, r)) {
            a->sample[a->n_sample++] = r;
            while (next <= (double)r)
                next += stride;
        }
    }
    for (int o = 0; o < a->n_outputs; o++) {
        int t = a->outputs[o];
        for (int64_t s = 0; s < a->n_sample; s++) {
            int64_t first, count;
            p->op->row_span(p, t, a->sample[s], &first, &count);
            a->sample_count[t] += count;
        }
    }
    return AT_OK;
}

int64_t at_sample_index(const struct at_answer *a, int tensor, int64_t sample_row, int64_t within) {
    int64_t first, count;
    a->problem->op->row_span(a->problem, tensor, a->sample[sample_row], &first, &count);
    return first + within;
}

static double row_square_sum(const struct at_answer *a, int t, int64_t row) {
    int64_t first, count;
    double sum = 0;
    a->problem->op->row_span(a->problem, t, row, &first, &count);
    for (int64_t i = first; i < first + count; i++)
        sum += isfinite(a->value[t][i]) ? a->value[t][i] * a->value[t][i] : 0;
    return sum;
}

/* The row whose loss is easiest to overlook is not the point: the largest one shows that a lost row is seen. */
static int64_t largest_row(const struct at_answer *a, int t) {
    int64_t best = 0;
    double best_sum = -1;
    for (int64_t s = 0; s < a->n_sample; s++) {
        double sum = row_square_sum(a, t, a->sample[s]);
        if (sum > best_sum)
            best_sum = sum, best = a->sample[s];
    }
    return best;
}

static double finite_mean(const struct at_answer *a, int t) {
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < a->count[t]; i++)
        if (isfinite(a->value[t][i]))
            sum += a->value[t][i], n++;
    return n ? sum / (double)n : 0;
}

/* The row a general decoy takes its values from: itself for those that only scale. */
static int64_t source_row(const struct at_problem *p, int kind, int64_t row) {
    if (kind == AT_DECOY_PREVIOUS_ROW)
        return row > 0 ? row - 1 : row;
    return kind == AT_DECOY_OTHER_HEAD && p->op->next_head_row ? p->op->next_head_row(p, row) : row;
}

static void fill_general(const struct at_answer *a, int kind, int t, double *out) {
    const struct at_problem *p = a->problem;
    int64_t lost_row = a->n_sample ? largest_row(a, t) : 0, at = 0;
    int64_t lost_request = a->n_sample ? request_of(p, lost_row) : 0;
    double mean = kind == AT_DECOY_MEAN ? finite_mean(a, t) : 0;
    for (int64_t s = 0; s < a->n_sample; s++) {
        int64_t row = a->sample[s], from, first, count;
        p->op->row_span(p, t, source_row(p, kind, row), &from, &count);
        p->op->row_span(p, t, row, &first, &count);
        for (int64_t i = 0; i < count; i++, at++) {
            double value = a->value[t][from + i];
            int lost = kind == AT_DECOY_ZEROS || (kind == AT_DECOY_ROW_ZEROED && row == lost_row) ||
                       (kind == AT_DECOY_BATCH_ZEROED && request_of(p, row) == lost_request);
            out[at] = lost ? 0 : kind == AT_DECOY_SIGN ? -value : kind == AT_DECOY_MEAN ? mean : value;
            if (kind == AT_DECOY_SCALED)
                out[at] += value * AT_DECOY_SCALE;
        }
    }
}

static at_status allocate(struct at_answer *a, struct at_decoy *d) {
    for (int o = 0; o < a->n_outputs; o++) {
        int t = a->outputs[o];
        if (!d->value[t])
            d->value[t] = calloc((size_t)a->sample_count[t] + 1, sizeof(double));
        if (!d->value[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for decoys");
    }
    return AT_OK;
}

struct own_decoys {
    struct at_answer *a;
    const struct at_numerics *numerics;
    double *whole[AT_MAX_TENSORS]; /* as large as the outputs: op->decoy writes rows in place */
    const void *prepared;
    int decoy;
};

static at_status own_chunk(void *context, int64_t begin, int64_t end, int worker) {
    struct own_decoys *w = context;
    struct at_eval eval = { .prepared = w->prepared };
    (void)worker;
    memcpy(eval.value, w->whole, sizeof w->whole);
    /* Neighbouring rows go together: an operator decodes the keys they share once a call. */
    for (int64_t s = begin, next; s < end; s = next) {
        const int64_t first = w->a->sample[s];
        for (next = s + 1; next < end && w->a->sample[next] == first + (next - s);)
            next++;
        AT_TRY(w->a->problem->op->decoy(w->a->problem, w->numerics, w->decoy, first, first + (next - s), &eval));
    }
    return AT_OK;
}

static void gather(const struct at_answer *a, int t, const double *whole, double *out) {
    int64_t at = 0;
    for (int64_t s = 0; s < a->n_sample; s++) {
        int64_t first, count;
        a->problem->op->row_span(a->problem, t, a->sample[s], &first, &count);
        memcpy(out + at, whole + first, (size_t)count * sizeof *out);
        at += count;
    }
}

static at_status make_own(struct at_answer *a, const struct at_numerics *numerics, int threads) {
    at_status status = AT_OK;
    void *prepared = at_op_prepare(a->problem);
    struct own_decoys w = { .a = a, .numerics = numerics, .prepared = prepared };
    for (int o = 0; o < a->n_outputs; o++) { /* NOLINT(clang-analyzer-unix.Malloc): outputs are different tensors */
        int t = a->outputs[o];
        w.whole[t] = calloc((size_t)a->count[t] + 1, sizeof(double));
        if (!w.whole[t])
            AT_FAIL_OUT(AT_NO_MEMORY, "no memory for decoys");
    }
    for (w.decoy = 0; w.decoy < a->problem->op->n_decoys; w.decoy++) {
        struct at_decoy *d = &a->decoys[a->n_decoys - a->problem->op->n_decoys + w.decoy];
        AT_TRY_OUT(at_parallel(a->n_sample, a->n_sample / (threads * 4) + 1, threads, own_chunk, &w));
        for (int o = 0; o < a->n_outputs; o++)
            gather(a, a->outputs[o], w.whole[a->outputs[o]], d->value[a->outputs[o]]);
    }
out:
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(w.whole[t]);
    free(prepared);
    return status;
}

static int counts(double decoy, double value, double threshold, enum at_format format) {
    if (isnan(value) || isnan(decoy))
        return isnan(value) != isnan(decoy);
    if (isinf(value) || isinf(decoy))
        return value != decoy;
    if (format == AT_I32) /* a count has no rounding */
        return value != decoy;
    return fabs(decoy - value) > fmax(16 * at_ulp(format, value), threshold);
}

void at_decoys_count(struct at_answer *a, int t) {
    const enum at_format format = a->problem->tensors[t].format;
    for (int d = 0; d < a->n_decoys; d++)
        a->decoys[d].counted[t] = 0;
    for (int64_t s = 0, at = 0, first, count; s < a->n_sample; s++, at += count) {
        a->problem->op->row_span(a->problem, t, a->sample[s], &first, &count);
        const double threshold = sqrt(row_square_sum(a, t, a->sample[s]) / (double)(count ? count : 1)) / 4;
        for (int d = 0; d < a->n_decoys; d++)
            for (int64_t i = 0; i < count && !a->decoys[d].counted[t]; i++)
                a->decoys[d].counted[t] = a->decoys[d].is_scaled ? a->wants_scaled && isnormal(a->value[t][first + i])
                                                                 : counts(a->decoys[d].value[t][at + i],
                                                                          a->value[t][first + i], threshold, format);
    }
}

at_status at_answer_decoys(struct at_answer *a, const struct at_numerics *numerics, int threads) {
    const struct at_op *op = a->problem->op;
    /* A split or block that no row reaches makes the same decoys as none. */
    const int64_t split = numerics->split < a->problem->sizes.max_sk ? numerics->split : 0,
                  splits = split ? numerics->splits : 0,
                  block = numerics->block < a->problem->sizes.max_sk ? numerics->block : 0;
    if (a->decoy_split == split && a->decoy_splits == splits && a->decoy_block == block &&
        a->decoy_exp == numerics->exp)
        return AT_OK;
    if (!a->sample) {
        AT_TRY(choose_rows(a));
        for (int g = 0; at_general_decoy(g); g++) {
            struct at_decoy *d = &a->decoys[a->n_decoys++];
            *d = (struct at_decoy){ .name = at_general_decoy(g)->name,
                                    .meaning = at_general_decoy(g)->meaning,
                                    .is_scaled = g == AT_DECOY_SCALED };
            AT_TRY(allocate(a, d));
            for (int o = 0; o < a->n_outputs; o++)
                fill_general(a, g, a->outputs[o], d->value[a->outputs[o]]);
        }
        for (int i = 0; i < op->n_decoys; i++) {
            struct at_decoy *d = &a->decoys[a->n_decoys++];
            *d = (struct at_decoy){ .name = op->decoys[i].name, .meaning = op->decoys[i].meaning };
            AT_TRY(allocate(a, d));
        }
    }
    /* From these alone, or a decoy would depend on which variants of the case came before. A flushed result is no
     * fault of an exponential that is declared to flush. */
    struct at_numerics used = at_numerics_default();
    used.split = (int)split;
    used.splits = (int)splits;
    used.block = (int)block;
    used.exp = numerics->exp;
    AT_TRY(make_own(a, &used, threads));
    for (int o = 0; o < a->n_outputs; o++)
        at_decoys_count(a, a->outputs[o]);
    a->decoy_split = split;
    a->decoy_splits = splits;
    a->decoy_block = block;
    a->decoy_exp = numerics->exp;
    return AT_OK;
}

static int same_class(double a, double b) { return (isnan(a) && isnan(b)) || (isinf(a) && a == b); }

/* Not one of the values within a limit that the operator has for right, where it tells these apart. */
static int is_refused(const struct at_answer *a, const struct at_numerics *numerics, int modelled, int t, int64_t i,
                      double decoy, double right) {
    return a->problem->op->admits && decoy != right && isfinite(decoy) &&
           !a->problem->op->admits(a->problem, numerics, modelled, t, i, decoy);
}

static int is_rejected(double decoy, double value, const double *limit, const double *model, const double *interval) {
    if (limit && !same_class(decoy, value) && !(fabs(decoy - value) <= 2 * *limit))
        return 1;
    return model && !same_class(decoy, *model) && !(fabs(decoy - *model) <= 2 * *interval);
}

void at_decoys_try(const struct at_answer *a, const struct at_numerics *numerics, int t, const double *limit,
                   const double *model, const double *interval, const unsigned char *modelled,
                   struct at_decoy_report *report) {
    const struct at_op *op = a->problem->op;
    memset(report, 0, sizeof *report);
    report->n = a->n_decoys;
    for (int d = 0; d < a->n_decoys; d++) {
        const int counted = a->decoys[d].counted[t];
        int rejected = 0;
        for (int64_t s = 0, at = 0, first, count; counted && s < a->n_sample && !rejected; s++) {
            op->row_span(a->problem, t, a->sample[s], &first, &count);
            for (int64_t i = first; i < first + count && !rejected; i++, at++) {
                const double decoy = a->decoys[d].value[t][at],
                             *by = model && (!modelled || modelled[i]) ? &model[i] : NULL;
                rejected =
                    is_rejected(decoy, a->value[t][i], limit ? &limit[i] : NULL, by, interval ? &interval[i] : NULL) ||
                    is_refused(a, numerics, by != NULL, t, i, decoy, by ? *by : a->value[t][i]);
            }
        }
        report->counted += counted;
        report->rejected += counted && rejected;
        report->passed += counted && !rejected;
        report->fate[d] = (char)(!counted ? AT_DECOY_INERT : rejected ? AT_DECOY_REJECTED : AT_DECOY_PASSED);
    }
}

void at_decoys_try_scale(const struct at_answer *a, double scale, struct at_decoy_report *report) {
    for (int d = 0; d < a->n_decoys; d++)
        if (a->decoys[d].is_scaled && report->fate[d] == AT_DECOY_PASSED && AT_DECOY_SCALE > scale) {
            report->fate[d] = AT_DECOY_REJECTED;
            report->passed--;
            report->rejected++;
        }
}
