/* The comparator: errors, ratios, ulp percentiles, classes of non-finite values, the worst element.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Error of one element against the exact value; +inf when no finite limit can excuse the difference. */
static double element_error(double got, double want, double limit, double edge) {
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : INFINITY;
    if (isinf(want))
        return got == want ? 0 : INFINITY;
    if (isinf(got)) {
        /* Right when the exact value, or one within the limit of it, rounds to this infinity. */
        int same_sign = signbit(got) == signbit(want) || limit > fabs(want);
        return same_sign && fabs(want) + limit >= edge ? 0 : INFINITY;
    }
    return fabs(got - want);
}

static int on_model(double got, double model, double interval) {
    if (isnan(got) || isnan(model))
        return isnan(got) && isnan(model);
    if (isinf(got) || isinf(model))
        return got == model;
    return fabs(got - model) <= interval && (interval > 0 || signbit(got) == signbit(model) || got != 0);
}

static int has_model(const struct at_comparison *c, int64_t i) { return c->model && (!c->modelled || c->modelled[i]); }

static int same_class(double a, double b) { return isfinite(a) ? isfinite(b) : isnan(a) ? isnan(b) : a == b; }

static int histogram_bin(double error, double limit) {
    if (!(error > 0))
        return 0;
    if (!(error < INFINITY) || !(limit > 0))
        return AT_HIST_BINS - 1;
    double position = floor(log2(error / limit)) + 56;
    return position < 1 ? 0 : position > AT_HIST_BINS - 2 ? AT_HIST_BINS - 1 : (int)position;
}

/* Reorders x[0..n): afterwards x[k] is what sorting would put there, with nothing larger before it and nothing smaller
 * behind it. A whole sort would take most of the time of a comparison. Pivots are drawn, so that no order of the values
 * is a slow one; elements equal to the pivot change sides, so that many equal ones are none either. */
static void select_at(uint64_t *x, int64_t n, int64_t k) {
    uint64_t draw = (uint64_t)n;
    for (int64_t low = 0, high = n - 1; low < high;) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        const uint64_t pivot = x[low + (int64_t)((draw >> 33) % (uint64_t)(high - low + 1))];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot)
                i++;
            while (x[j] > pivot)
                j--;
            if (i <= j) {
                const uint64_t swapped = x[i];
                x[i++] = x[j];
                x[j--] = swapped;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return; /* between them all are the pivot */
    }
}

/* numpy's inverted_cdf: the smallest value whose share of the data is at least q. */
static int64_t quantile_index(int64_t n, double q) {
    int64_t i = (int64_t)ceil(q * (double)n) - 1;
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static uint64_t largest(const uint64_t *x, int64_t n) {
    uint64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static void ulp_percentiles(uint64_t *ulp, int64_t n, struct at_result *r) {
    if (n == 0)
        return;
    r->ulp_max = largest(ulp, n);
    if (r->ulp_max == 0) { /* as they mostly are */
        r->ulp_p50 = r->ulp_p99 = r->ulp_p999 = 0;
        return;
    }
    uint64_t *const into[] = { &r->ulp_p50, &r->ulp_p99, &r->ulp_p999 };
    const double share[] = { 0.50, 0.99, 0.999 };
    int64_t from = 0; /* what lies before it is no larger than what follows */
    for (int q = 0; q < 3; q++) {
        const int64_t at = quantile_index(n, share[q]);
        select_at(ulp + from, n - from, at - from);
        *into[q] = ulp[at];
        from = at;
    }
}

static double value_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Limits are not negative: their bits are in the order of their values. `bits`: room for n words. */
static void limit_summary(const double *limit, uint64_t *bits, int64_t n, struct at_result *r) {
    if (n == 0)
        return;
    memcpy(bits, limit, (size_t)n * sizeof *bits);
    const int64_t middle = quantile_index(n, 0.5);
    r->limit_max = value_of(largest(bits, n));
    select_at(bits, n, middle);
    r->limit_median = value_of(bits[middle]);
}

struct sums {
    double error_square, want_square;
    int64_t finite_pairs, n_ulp, no_limit;
    double worst_badness;
};

/* Orders elements by how bad they are: rejected ones first, then by error over limit. */
static double badness(double error, double limit, int wrong) {
    double ratio = error == 0 ? 0 : limit > 0 ? error / limit : INFINITY;
    return (wrong ? 1e300 : 0) + (ratio < 1e299 ? ratio : 1e299);
}

static void note_worst(struct at_comparison *c, struct at_result *r, struct sums *s, int64_t i, double got,
                       double bad) {
    if (r->worst_index >= 0 && !(bad > s->worst_badness))
        return;
    s->worst_badness = bad;
    r->worst_index = i;
    r->worst_got = got;
    r->worst_want = c->want[i];
    r->worst_limit = c->limit[i];
    r->worst_model = has_model(c, i) ? c->model[i] : NAN;
}

static void count_classes(struct at_comparison *c, struct at_result *r, int64_t i, double got, double want) {
    r->nan_got += isnan(got) != 0;
    r->nan_want += isnan(want) != 0;
    r->inf_got += isinf(got) != 0;
    r->inf_want += isinf(want) != 0;
    if (!isfinite(want) && isfinite(got)) {
        if (c->laundered++ == 0)
            c->first_laundered = i;
    }
    c->overflowed += isfinite(want) && !isfinite(got);
}

/* What each reference says of one element, and what the one that decides says. */
struct finding {
    double error;
    int within, equal, by_class, other_bits, wrong;
};

static uint64_t code_of(const struct at_comparison *c, const void *codes, int64_t i) {
    return at_load_code(c->got->format, codes, (size_t)i);
}

/* The declared arithmetic makes an infinity of finite inputs here, and of that a NaN. */
static int is_nan_of_overflow(const struct at_comparison *c, int64_t i, double got) {
    return isnan(got) && c->overflow && !(c->limit[i] < INFINITY) && isnan(c->overflow[i]);
}

/* Within a limit the operator may have right values and others: places of logits that a draw can end at. */
static int is_admitted(const struct at_comparison *c, int64_t i, double got, double right, int modelled) {
    if (!c->problem || !c->problem->op->admits || got == right || !isfinite(got))
        return 1;
    return c->problem->op->admits(c->problem, c->numerics, modelled, c->tensor, i, got);
}

static struct finding look_at(const struct at_comparison *c, int64_t i, double got, double edge) {
    struct finding f = { .error = element_error(got, c->want[i], c->limit[i], edge) };
    f.within = f.error <= c->limit[i] && isfinite(f.error) && is_admitted(c, i, got, c->want[i], 0);
    f.equal = has_model(c, i) && on_model(got, c->model[i], c->interval[i]) && is_admitted(c, i, got, c->model[i], 1);
    f.by_class = !c->model && c->classes && !(isfinite(c->want[i]) && isfinite(c->classes[i]));
    f.wrong = has_model(c, i) ? !f.equal
              : f.by_class    ? !same_class(got, c->classes[i])
                              : !f.within && !is_nan_of_overflow(c, i, got);
    f.other_bits = !f.wrong && c->bits && !(c->computed && c->computed[i]) &&
                   code_of(c, c->bits, i) != code_of(c, c->got->data, i);
    f.equal &= !f.other_bits;
    f.wrong |= f.other_bits;
    return f;
}

int at_compare_rejects(const struct at_comparison *c, int64_t i) {
    return look_at(c, i, at_tensor_get(c->got, i), at_format_info(c->got->format)->end).wrong;
}

static void compare_element(struct at_comparison *c, struct at_result *r, struct sums *s, int64_t i, uint64_t *ulp,
                            double edge) {
    double got = at_tensor_get(c->got, i), want = c->want[i], limit = c->limit[i];
    const struct finding f = look_at(c, i, got, edge);
    const double error = f.error;
    c->undecided += !has_model(c, i) && !f.by_class && !(limit < INFINITY);
    r->model_compared += has_model(c, i);
    count_classes(c, r, i, got, want);
    c->beyond_limit += !f.within;
    c->off_model += has_model(c, i) && !f.equal;
    if (f.other_bits && c->other_bits++ == 0)
        c->first_other = i;
    c->reclassed += !f.within && f.equal && !isfinite(got) && !isfinite(want);
    r->model_equal += f.equal;
    if (f.wrong && r->wrong++ == 0)
        c->first_wrong = i;
    r->err_hist[histogram_bin(error, limit)]++;
    if (isfinite(got) && isfinite(want)) {
        s->finite_pairs++;
        s->error_square += error * error;
        s->want_square += want * want;
        r->err_max = error > r->err_max ? error : r->err_max;
        ulp[s->n_ulp++] = at_ulp_distance(c->got->format, got, want);
        double ratio = error == 0 ? 0 : limit > 0 ? error / limit : INFINITY;
        if (isinf(limit))
            s->no_limit++;
        else if (ratio > r->ratio_max)
            r->ratio_max = ratio;
    }
    note_worst(c, r, s, i, got, badness(error, limit, f.wrong));
}

static void coordinates(const struct at_tensor *t, struct at_result *r) {
    int64_t rest = r->worst_index < 0 ? 0 : r->worst_index;
    r->worst_rank = t->rank;
    for (int d = t->rank - 1; d >= 0; d--) {
        r->worst_at[d] = t->shape[d] ? rest % t->shape[d] : 0;
        rest = t->shape[d] ? rest / t->shape[d] : 0;
    }
}

at_status at_compare(struct at_comparison *c, struct at_result *r) {
    struct sums s = { 0 };
    uint64_t *ulp = malloc(((size_t)c->count + 1) * sizeof *ulp);
    if (!ulp)
        return AT_FAIL(AT_NO_MEMORY, "no memory to compare %lld elements", (long long)c->count);
    double edge = at_format_info(c->got->format)->end;
    c->first_wrong = c->first_laundered = -1;
    c->beyond_limit = c->off_model = c->laundered = c->overflowed = c->reclassed = c->undecided = c->other_bits = 0;
    r->worst_index = -1;
    r->ratio_max = 0;
    r->total = r->compared = c->count;
    r->model_compared = 0;
    for (int64_t i = 0; i < c->count; i++)
        compare_element(c, r, &s, i, ulp, edge);
    int exact_model = c->model != NULL;
    for (int64_t i = 0; exact_model && i < c->count; i++)
        exact_model = !has_model(c, i) || c->interval[i] == 0;
    r->model_exact = exact_model && c->off_model == 0 && c->count > 0 && r->model_compared == c->count;
    r->within = c->beyond_limit == 0;
    if (s.finite_pairs) {
        r->err_rms = sqrt(s.error_square / (double)s.finite_pairs);
        r->rms = sqrt(s.want_square / (double)s.finite_pairs);
        r->err_rel_l2 = s.want_square > 0 ? sqrt(s.error_square / s.want_square) : s.error_square > 0 ? INFINITY : 0;
    }
    if (s.no_limit && s.no_limit == s.finite_pairs)
        r->ratio_max = NAN;
    ulp_percentiles(ulp, s.n_ulp, r);
    limit_summary(c->limit, ulp, c->count, r); /* which are no longer needed */
    coordinates(c->got, r);
    free(ulp);
    return AT_OK;
}
