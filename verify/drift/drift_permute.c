/* A permutation test over groups of requests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/drift/drift_permute.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/fill/random.h"

/* ---- deals ---- */

/* Ways to choose side A's groups; `most` + 1 where there are more than `most`. */
static int64_t splits(const struct at_drift_deal *deal, int64_t most) {
    const int64_t a = deal->groups_a, b = deal->groups_b, few = a < b ? a : b;
    double n = 1;
    for (int64_t i = 1; i <= few && n <= (double)most; i++)
        n = n * (double)(a + b - few + i) / (double)i; /* whole after each step */
    return n <= (double)most ? (int64_t)n : most + 1;
}

int64_t at_drift_deals(const struct at_drift_deal *deal) {
    const int64_t n = splits(deal, deal->deals + 1);
    return n <= deal->deals + 1 ? n : deal->deals + 1;
}

/* Groups in the order of random deal i, those of side A first; deal 0 is the real one. */
static void deal_groups(const struct at_drift_deal *deal, int64_t i, int64_t *order) {
    const int64_t all = deal->groups_a + deal->groups_b;
    const struct at_random random = { deal->seed, at_random_stream("drift", (uint64_t)i) };
    for (int64_t g = 0; g < all; g++)
        order[g] = g;
    for (int64_t g = 0; i > 0 && g < deal->groups_a; g++) {
        const int64_t other = g + at_random_below(&random, (uint64_t)g, all - g), group = order[other];
        order[other] = order[g];
        order[g] = group;
    }
}

/* The choice of side A that follows `before`, in lexicographic order: the first one is the real deal. */
static void deal_next(const struct at_drift_deal *deal, const int64_t *before, int64_t *order) {
    const int64_t a = deal->groups_a, all = a + deal->groups_b;
    int64_t last = a - 1, other = a;
    memcpy(order, before, (size_t)a * sizeof *order);
    while (last > 0 && order[last] == all - a + last)
        last--;
    order[last]++;
    for (int64_t g = last + 1; g < a; g++)
        order[g] = order[g - 1] + 1;
    for (int64_t g = 0, chosen = 0; g < all; g++)
        if (chosen < a && order[chosen] == g)
            chosen++;
        else
            order[other++] = g;
}

double at_drift_least_p(const struct at_drift_deal *deal) {
    const int64_t most = (int64_t)1 << 50, n = splits(deal, most);
    /* Sides of equal size can be swapped: the distance is the same. */
    const double alike = deal->groups_a == deal->groups_b ? 2 : 1;
    return fmax(1 / ((double)deal->deals + 1), fmin(1, alike / (double)n));
}

/* ---- one series ---- */

/* Cumulative counts [groups used], over the classes that anything is in; sums are integers below 2^53, so their order
 * does not matter. */
struct cumulative {
    double *of;      /* [groups classes] */
    double *all;     /* [classes] */
    double *side;    /* [classes] */
    int64_t classes; /* used */
};

static void accumulate(const struct at_drift_deal *deal, const uint64_t *counts, struct cumulative *c) {
    const int64_t groups = deal->groups_a + deal->groups_b;
    c->classes = 0;
    for (int64_t k = 0; k < deal->classes; k++) {
        uint64_t any = 0;
        for (int64_t g = 0; g < groups; g++)
            any |= counts[g * deal->classes + k];
        if (!any)
            continue;
        c->all[c->classes] = 0;
        for (int64_t g = 0; g < groups; g++) {
            double *of = c->of + g * deal->classes;
            of[c->classes] = (double)counts[g * deal->classes + k] + (c->classes ? of[c->classes - 1] : 0);
            c->all[c->classes] += of[c->classes];
        }
        c->classes++;
    }
}

/* Kolmogorov-Smirnov between the chosen groups and the others; NaN: one of the sides has no values. */
static double distance(const struct at_drift_deal *deal, const struct cumulative *c, const int64_t *chosen) {
    double largest = 0;
    if (c->classes == 0)
        return NAN;
    memset(c->side, 0, (size_t)c->classes * sizeof *c->side);
    for (int64_t i = 0; i < deal->groups_a; i++) {
        const double *of = c->of + chosen[i] * deal->classes;
        for (int64_t k = 0; k < c->classes; k++)
            c->side[k] += of[k];
    }
    const double in_a = c->side[c->classes - 1], in_b = c->all[c->classes - 1] - in_a;
    if (in_a == 0 || in_b == 0)
        return NAN;
    for (int64_t k = 0; k < c->classes; k++) {
        const double apart = fabs(c->side[k] / in_a - (c->all[k] - c->side[k]) / in_b);
        largest = apart > largest ? apart : largest;
    }
    return largest;
}

/* log2 of the mean distance of a group's finite values from their median; NaN: no values, or all in one class. */
static double log_spread(const struct at_drift_deal *deal, const uint64_t *counts) {
    uint64_t all = 0, below = 0;
    double median = 0, sum = 0;
    for (int64_t k = 0; k < deal->classes; k++)
        all += isfinite(deal->value[k]) ? counts[k] : 0;
    for (int64_t k = 0; k < deal->classes; k++)
        if (isfinite(deal->value[k]) && 2 * (below += counts[k]) >= all) {
            median = deal->value[k];
            break;
        }
    for (int64_t k = 0; k < deal->classes; k++)
        if (isfinite(deal->value[k]))
            sum += (double)counts[k] * fabs(deal->value[k] - median);
    return sum > 0 ? log2(sum / (double)all) : (double)NAN;
}

/* Mean log spread of the other groups less that of the chosen ones; NaN: one of the sides has none. */
static double spread_between(const struct at_drift_deal *deal, const double *spread, const int64_t *order) {
    double sum[2] = { 0, 0 };
    int64_t n[2] = { 0, 0 };
    for (int64_t i = 0; i < deal->groups_a + deal->groups_b; i++) {
        const double x = spread[order[i]];
        const int side = i >= deal->groups_a;
        sum[side] += isnan(x) ? 0 : x;
        n[side] += !isnan(x);
    }
    return n[0] && n[1] ? sum[1] / (double)n[1] - sum[0] / (double)n[0] : (double)NAN;
}

/* Distances of one series in every deal, made comparable with other series: less their mean, by their deviation. A deal
 * that leaves a side empty says nothing: 0. */
static void standardise(int64_t n, float *distances) {
    double mean = 0, square = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(distances[i])) {
            mean += (double)distances[i];
            finite++;
        }
    mean /= finite ? (double)finite : 1;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(distances[i]))
            square += ((double)distances[i] - mean) * ((double)distances[i] - mean);
    const double deviation = sqrt(square / (finite ? (double)finite : 1));
    for (int64_t i = 0; i < n; i++)
        distances[i] = isnan(distances[i]) || deviation == 0 ? 0 : (float)(((double)distances[i] - mean) / deviation);
}

/* ---- all ---- */

enum { SHAPE, SPREAD, DISTANCES };

struct work {
    int64_t *order;      /* [deals + 1][groups] */
    float *largest;      /* [deals + 1] over the series */
    float *standard;     /* [n][DISTANCES][deals + 1] */
    uint64_t *counts;    /* [groups classes] of the series in hand */
    double *spread;      /* [groups] of it */
    struct cumulative c; /* of it, too */
};

static at_status allocate(const struct at_drift_deal *deal, int64_t n, struct work *w) {
    const size_t groups = (size_t)(deal->groups_a + deal->groups_b), classes = (size_t)deal->classes,
                 deals = (size_t)deal->deals + 1;
    w->order = calloc(deals * groups, sizeof *w->order);
    w->largest = calloc(deals, sizeof *w->largest);
    w->standard = calloc((size_t)n * DISTANCES * deals + 1, sizeof *w->standard);
    w->counts = calloc(groups * classes, sizeof *w->counts);
    w->spread = calloc(groups, sizeof *w->spread);
    w->c.of = calloc(groups * classes, sizeof *w->c.of);
    w->c.all = calloc(classes, sizeof *w->c.all);
    w->c.side = calloc(classes, sizeof *w->c.side);
    return w->order && w->largest && w->standard && w->counts && w->spread && w->c.of && w->c.all && w->c.side
               ? AT_OK
               : AT_FAIL(AT_NO_MEMORY, "drift: no memory for %" PRId64 " deals of %" PRId64 " series", deal->deals, n);
}

static void release(struct work *w) {
    free(w->order);
    free(w->largest);
    free(w->standard);
    free(w->counts);
    free(w->spread);
    free(w->c.of);
    free(w->c.all);
    free(w->c.side);
}

/* distances: [DISTANCES][deals + 1]; their sizes count, whichever side is the larger one. */
static void measure(const struct at_drift_deal *deal, struct at_drift_series *series, struct work *w,
                    float *distances) {
    const int64_t groups = deal->groups_a + deal->groups_b, deals = deal->deals + 1;
    accumulate(deal, w->counts, &w->c);
    for (int64_t g = 0; g < groups; g++)
        w->spread[g] = log_spread(deal, w->counts + g * deal->classes);
    for (int64_t i = 0; i < deals; i++) {
        const double shape = distance(deal, &w->c, w->order + i * groups),
                     spread = spread_between(deal, w->spread, w->order + i * groups);
        distances[SHAPE * deals + i] = (float)shape;
        distances[SPREAD * deals + i] = (float)fabs(spread);
        if (i == 0) {
            series->distance = shape;
            series->spread = spread;
        }
    }
    for (int kind = 0; kind < DISTANCES; kind++) {
        float *of = distances + kind * deals;
        const int none = isnan(of[0]);
        standardise(deals, of);
        for (int64_t i = 0; i < deals && !none; i++)
            w->largest[i] = of[i] > w->largest[i] ? of[i] : w->largest[i];
    }
}

/* The real deal counts as one of the deals, so that a p-value is never 0 and holds for any number of deals. */
static double judge(const struct at_drift_deal *deal, float observed, const struct work *w) {
    int64_t as_large = 0;
    for (int64_t i = 0; i <= deal->deals; i++)
        as_large += w->largest[i] >= observed;
    return (double)as_large / (double)(deal->deals + 1);
}

static at_status check(const struct at_drift_deal *deal) {
    if (deal->groups_a < 1 || deal->groups_b < 1 || deal->classes < 1 || deal->deals < 1)
        return AT_FAIL(AT_USAGE,
                       "drift: found %" PRId64 " and %" PRId64 " groups, %" PRId64 " classes, %" PRId64
                       " deals; wanted 1 or more of each",
                       deal->groups_a, deal->groups_b, deal->classes, deal->deals);
    return AT_OK;
}

static at_status permute(const struct at_drift_deal *deal, int all, struct at_drift_series *series, int64_t n) {
    const int64_t groups = deal->groups_a + deal->groups_b;
    struct work w = { 0 };
    at_status status = AT_OK;
    AT_TRY_OUT(allocate(deal, n, &w));
    for (int64_t i = 0; i <= deal->deals; i++) {
        w.largest[i] = -INFINITY;
        if (all && i > 0)
            deal_next(deal, w.order + (i - 1) * groups, w.order + i * groups);
        else
            deal_groups(deal, i, w.order + i * groups);
    }
    for (int64_t s = 0; s < n; s++) {
        AT_TRY_OUT(deal->load(deal->context, s, w.counts));
        measure(deal, &series[s], &w, w.standard + s * DISTANCES * (deal->deals + 1));
    }
    for (int64_t s = 0; s < n; s++) {
        const float *observed = w.standard + s * DISTANCES * (deal->deals + 1);
        series[s].p = isnan(series[s].distance) ? (double)NAN : judge(deal, observed[0], &w);
        series[s].p_spread = isnan(series[s].spread) ? (double)NAN : judge(deal, observed[deal->deals + 1], &w);
    }
out:
    release(&w);
    return status;
}

at_status at_drift_permute(const struct at_drift_deal *deal, struct at_drift_series *series, int64_t n) {
    AT_TRY(check(deal));
    struct at_drift_deal used = *deal;
    used.deals = at_drift_deals(deal) - 1;
    return permute(&used, splits(deal, used.deals + 1) == used.deals + 1, series, n);
}
