/* Are two recordings of the same requests, though every value differs? By how close the values are.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two requests that have nothing in common are at least as far from each other as independent draws from one
 * distribution: over the classes that are used, chi-square is about its degrees of freedom, and more where values within
 * a request depend on each other. One request in two recordings is far closer, as nearly every value stays in its class:
 * noise and rounding move few of them over an edge. So half of what independent draws give tells the two apart, without
 * ids and whatever the noise; the middle one of many heads decides, so that a head or layer in which something has really
 * moved has no say. Requests that share most of their tokens count as the same: ids alone could tell them apart. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/drift/drift_rows.h"

enum { MAX_ROWS = 24 };
static const double closer_than_chance = 0.5;

double at_drift_dispersion(int64_t n, const uint64_t *a, const uint64_t *b) {
    double all_a = 0, all_b = 0, sum = 0;
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        all_a += (double)a[i];
        all_b += (double)b[i];
    }
    if (all_a == 0 || all_b == 0)
        return NAN;
    const double to_a = sqrt(all_b / all_a), to_b = 1 / to_a;
    for (int64_t i = 0; i < n; i++)
        if (a[i] || b[i]) {
            const double apart = (double)a[i] * to_a - (double)b[i] * to_b;
            sum += apart * apart / (double)(a[i] + b[i]);
            used++;
        }
    /* All in one class: as close as can be, and no proof of anything; what else is compared decides. */
    return used > 1 ? sum / (double)(used - 1) : (double)NAN;
}

/* Sizes of request r: -1, -1 where the recording, a shard, has not got it. */
static void sizes_of(const struct at_distributions *d, int64_t r, int64_t sizes[2]) {
    sizes[0] = sizes[1] = -1;
    for (int64_t i = 0; i < d->n_units; i++)
        if (d->units[i].request == r) {
            sizes[0] = d->units[i].queries;
            sizes[1] = d->units[i].keys;
            return;
        }
}

struct alike {
    const struct at_distributions *a, *b;
    int64_t groups, classes;
    int each;         /* a group is a request: any of A may be any of B; otherwise they are in one order, or pooled */
    int pooled;       /* all requests are one group, in whatever order they are */
    int *may;         /* [groups groups]: the sizes agree */
    double *distance; /* [groups groups MAX_ROWS] */
    uint64_t *counts; /* [2 groups classes] */
    int64_t n;        /* rows so far */
};

static void find_candidates(struct alike *x) {
    for (int64_t g = 0; g < x->groups; g++)
        for (int64_t h = 0; h < x->groups; h++) {
            int64_t of_a[2], of_b[2];
            sizes_of(x->a, g, of_a);
            sizes_of(x->b, h, of_b);
            x->may[g * x->groups + h] = x->each ? of_a[0] == of_b[0] && of_a[1] == of_b[1] : g == h;
        }
}

static void pool(const struct alike *x, uint64_t *counts) {
    for (int64_t g = 1; g < x->a->shape.n_groups; g++)
        for (int64_t c = 0; c < x->classes; c++)
            counts[c] += counts[g * x->classes + c];
}

static at_status add_row(struct alike *x, enum at_dist_what what, int64_t layer, int64_t head) {
    uint64_t *b = x->counts + x->a->shape.n_groups * x->classes;
    AT_TRY(at_distributions_coarse(x->a, what, layer, head, x->counts));
    AT_TRY(at_distributions_coarse(x->b, what, layer, head, b));
    if (x->pooled) {
        pool(x, x->counts);
        pool(x, b);
    }
    for (int64_t g = 0; g < x->groups; g++)
        for (int64_t h = 0; h < x->groups; h++)
            if (x->may[g * x->groups + h])
                x->distance[(g * x->groups + h) * MAX_ROWS + x->n] =
                    at_drift_dispersion(x->classes, x->counts + g * x->classes, b + h * x->classes);
    x->n++;
    return AT_OK;
}

/* At most MAX_ROWS heads of `layers` layers, of q, k and v, or of what else both have, evenly. */
static at_status add_rows(struct alike *x, int64_t layers) {
    const unsigned inputs = 1u << AT_DIST_q | 1u << AT_DIST_k | 1u << AT_DIST_v;
    const unsigned both = x->a->shape.what & x->b->shape.what, used = both & inputs ? both & inputs : both;
    int64_t all = 0, at = 0;
    x->n = 0;
    for (int w = 0; w < AT_DIST_COUNT; w++)
        all += used >> w & 1 ? layers * at_dist_heads(&x->a->shape, (enum at_dist_what)w) : 0;
    const int64_t n = all < MAX_ROWS ? all : MAX_ROWS;
    for (int w = 0; w < AT_DIST_COUNT; w++)
        for (int64_t i = 0; used >> w & 1 && i < layers; i++)
            for (int64_t head = 0; head < at_dist_heads(&x->a->shape, (enum at_dist_what)w); head++, at++)
                if (x->n < n && at >= x->n * all / n)
                    AT_TRY(add_row(x, (enum at_dist_what)w, i, head));
    return AT_OK;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle one of the rows that have a distance; infinity where too few have, -1 where neither side has any values. */
static double middle_of(const struct alike *x, int64_t g, int64_t h) {
    double sorted[MAX_ROWS];
    int64_t n = 0;
    for (int64_t i = 0; i < x->n; i++) {
        const double distance = x->distance[(g * x->groups + h) * MAX_ROWS + i];
        if (!isnan(distance))
            sorted[n++] = distance;
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    return n ? sorted[n / 2] : (double)INFINITY;
}

static int is_empty(const struct alike *x, int64_t g) {
    int64_t sizes[2];
    sizes_of(x->a, g, sizes);
    return x->each && (sizes[0] <= 0 && sizes[1] <= 0);
}

/* Each request of A takes the nearest one of B that is left. */
static int match(const struct alike *x) {
    uint64_t taken = 0;
    int any = 0;
    for (int64_t g = 0; g < x->groups; g++) {
        int64_t best = -1;
        double least = closer_than_chance;
        if (is_empty(x, g))
            continue;
        for (int64_t h = 0; h < x->groups; h++)
            if (x->may[g * x->groups + h] && !(taken >> h & 1)) {
                const double distance = middle_of(x, g, h);
                if (distance <= least) {
                    least = distance;
                    best = h;
                }
            }
        if (best < 0)
            return 0;
        taken |= (uint64_t)1 << best;
        any = 1;
    }
    return any;
}

at_status at_drift_alike(const struct at_distributions *a, const struct at_distributions *b, int *alike) {
    const int64_t groups = a->shape.n_groups;
    struct alike x = {
        .a = a, .b = b, .groups = groups, .classes = at_dist_classes(a->shape.bins), .each = a->shape.requests == groups
    };
    at_status status = AT_OK;
    *alike = 0;
    if (b->shape.n_groups != groups || b->shape.requests != a->shape.requests)
        return AT_OK;
    x.may = calloc((size_t)(groups * groups), sizeof *x.may);
    x.distance = calloc((size_t)(groups * groups) * MAX_ROWS, sizeof *x.distance);
    x.counts = calloc((size_t)(2 * groups * x.classes), sizeof *x.counts);
    if (!x.may || !x.distance || !x.counts)
        AT_FAIL_OUT(AT_NO_MEMORY, "drift: no memory to match %" PRId64 " groups of requests", groups);
    find_candidates(&x);
    /* What a change of the model has reached least is the first layer; one that began there has left others. More
     * requests than groups may be in another order: then all of them together are compared. */
    for (int all = 0; all < (x.each ? 2 : 3) && !*alike; all++) {
        x.pooled = all == 2;
        if (x.pooled)
            x.groups = x.may[0] = 1;
        AT_TRY_OUT(add_rows(&x, all ? a->shape.n_layers : 1));
        *alike = match(&x);
    }
out:
    free(x.may);
    free(x.distance);
    free(x.counts);
    return status;
}
