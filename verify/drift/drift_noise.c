/* What chance and noise leave between two recordings of the same requests in which nothing has moved.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A paired limit says how large a change may be. Beside it stands what is no change:
 * - resolution: noise carries single values over the edge of a bin, and one of the 165 rows of a short recording is
 *   already a distance of 0.006. `chance` values (5) may go over any one edge. The last bits of values that differ at all
 *   are coins; `chance` deviations (5) of as many coins are left to the shares of trailing zeros.
 * - a measured floor: recordings of one and the same thing, given by --noise, are compared with each other, and each
 *   metric may be `noise_factor` times (3) the largest of it among the heads of that quantity and layer. Heads of a layer
 *   share what makes the noise, and the largest of several is steadier than the one of a head. It is the factor's square
 *   (9) for the divergence, which grows with the square of what moves, and for headroom, which hangs on a single value.
 * Distances add up at most (the triangle's inequality), so both are added to the limit. How often nothing is accused all
 * the same is measured by tests/verify/drift/test_drift_noise.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/drift/drift_rows.h"

/* ---- limits of a row ---- */

static double resolution(const struct at_drift_row *row, enum at_drift_metric metric, double chance) {
    const double a = (double)row->n_a, b = (double)row->n_b;
    if (row->n_a == 0 || row->n_b == 0)
        return 0;
    switch (metric) {
    case AT_DRIFT_ks:
    case AT_DRIFT_zero_share:
    case AT_DRIFT_js: /* one value of n in another class: at most 1/n bit */
        return chance / fmin(a, b);
    case AT_DRIFT_grain: /* a share of coins has a variance of 1/4n at most */
        return chance * sqrt((1 / a + 1 / b) / 4);
    default:
        return 0;
    }
}

void at_drift_set_limits(const struct at_drift_limits *limits, int paired, struct at_drift_row *row) {
    const struct at_drift_rule *rule = at_drift_rule_of(limits, at_dist_name(row->what));
    for (int m = 0; m < AT_DRIFT_METRICS; m++) {
        const double factor =
            limits->noise_factor * (m == AT_DRIFT_headroom || m == AT_DRIFT_js ? limits->noise_factor : 1);
        const double least = resolution(row, (enum at_drift_metric)m, limits->chance), floor = factor * row->noise[m];
        row->limit[m] = rule->limit[m] + (paired ? fmax(least, floor) : 0);
    }
}

/* ---- the floor ---- */

/* No noise moves a mask, and what is there in one of the recordings alone is none. */
static at_status check_row(const struct at_drift_row *row, const char *c, const char *d) {
    const char *what = at_dist_name(row->what);
    if (row->metric[AT_DRIFT_masked_share] > 0)
        return AT_FAIL(AT_USAGE,
                       "drift: --noise: the mask of %s hides %.3g %% of layer %" PRId64 ", head %" PRId64
                       ", that of %s %.3g %%: wanted recordings of one and the same thing",
                       c, 100 * row->hidden_a, row->layer, row->head, d, 100 * row->hidden_b);
    for (int m = 0; m < AT_DRIFT_METRICS; m++)
        if (!isfinite(row->metric[m]))
            return AT_FAIL(AT_USAGE,
                           "drift: --noise: %s of %s in layer %" PRId64 ", head %" PRId64
                           " has a number in one of %s and %s alone: wanted recordings of one and the same thing",
                           at_drift_metric_name((enum at_drift_metric)m), what, row->layer, row->head, c, d);
    return AT_OK;
}

static at_status add_pair(const char *const *paths, const struct at_distributions *c, const struct at_distributions *d,
                          struct at_drift_bench *bench, struct at_drift *drift) {
    for (int64_t i = 0; i < drift->n; i++) {
        struct at_drift_row pair = { .what = drift->rows[i].what,
                                     .layer = drift->rows[i].layer,
                                     .index = drift->rows[i].index,
                                     .head = drift->rows[i].head };
        if (!at_dist_has(&c->shape, pair.what) || !at_dist_has(&d->shape, pair.what))
            return AT_FAIL(AT_USAGE, "drift: --noise: %s has no %s, which A and B have",
                           paths[at_dist_has(&c->shape, pair.what)], at_dist_name(pair.what));
        AT_TRY(at_drift_measure(bench, c, d, &pair));
        AT_TRY(check_row(&pair, paths[0], paths[1]));
        for (int m = 0; m < AT_DRIFT_METRICS; m++)
            drift->rows[i].noise[m] = fmax(drift->rows[i].noise[m], pair.metric[m]);
    }
    return AT_OK;
}

/* Rows lie by quantity, layer and head. */
static void share_among_heads(struct at_drift *drift) {
    for (int64_t i = 0, end; i < drift->n; i = end) {
        double most[AT_DRIFT_METRICS] = { 0 };
        for (end = i; end < drift->n && drift->rows[end].what == drift->rows[i].what &&
                      drift->rows[end].index == drift->rows[i].index;
             end++)
            for (int m = 0; m < AT_DRIFT_METRICS; m++)
                most[m] = fmax(most[m], drift->rows[end].noise[m]);
        for (int64_t k = i; k < end; k++)
            for (int m = 0; m < AT_DRIFT_METRICS; m++)
                drift->rows[k].noise[m] = most[m];
    }
}

/* Two names of one file, or of two that hold the same bytes. A file that cannot be read is none: opening it says why. */
static int same_file(const char *one, const char *other) {
    char piece[2][65536];
    size_t n[2] = { 1, 1 };
    int same = 1;
    FILE *file[2] = { fopen(one, "rbe"), fopen(other, "rbe") };
    while (same && file[0] && file[1] && n[0] > 0) {
        for (int i = 0; i < 2; i++)
            n[i] = fread(piece[i], 1, sizeof piece[i], file[i]);
        same = n[0] == n[1] && memcmp(piece[0], piece[1], n[0]) == 0;
    }
    same &= file[0] && file[1];
    for (int i = 0; i < 2; i++)
        if (file[i])
            fclose(file[i]);
    return same;
}

at_status at_drift_check_noise(const char *a, const char *b, const char *const *paths, int n) {
    int has_a = 0, has_b = 0;
    for (int i = 0; i < n && !same_file(a, b); i++) {
        has_a |= same_file(a, paths[i]);
        has_b |= same_file(b, paths[i]);
    }
    return has_a && has_b
               ? AT_FAIL(AT_USAGE,
                         "drift: --noise: found both %s and %s, wanted others: a change would be its own noise", a, b)
               : AT_OK;
}

static at_status check_recording(const char *path, const struct at_distributions *d, const struct at_drift *drift) {
    char why[AT_DRIFT_WHY_BYTES];
    int paired = 0;
    struct at_error_copy error;
    const at_status status = at_drift_check_shapes(&drift->a, d, "A", path);
    if (status != AT_OK) {
        at_error_save(&error);
        return AT_FAIL(status, "--noise: %s", error.message);
    }
    AT_TRY(at_drift_pair(AT_DRIFT_PAIR_AUTO, &drift->a, d, &paired, why, sizeof why));
    return paired ? AT_OK
                  : AT_FAIL(AT_USAGE, "drift: --noise: found in %s, beside A, %s; wanted the requests of A and B", path,
                            why);
}

at_status at_drift_measure_noise(const char *const *paths, int n, struct at_drift_bench *bench,
                                 struct at_drift *drift) {
    struct at_distributions *recordings = calloc((size_t)n + 1, sizeof *recordings);
    at_status status = AT_OK;
    int opened = 0;
    if (!recordings)
        AT_FAIL_OUT(AT_NO_MEMORY, "drift: no memory for %d recordings", n);
    for (; opened < n; opened++) {
        AT_TRY_OUT(at_distributions_open(paths[opened], &recordings[opened]));
        status = check_recording(paths[opened], &recordings[opened], drift);
        if (status != AT_OK) {
            opened++;
            goto out;
        }
    }
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            const char *const pair[] = { paths[i], paths[k] };
            AT_TRY_OUT(add_pair(pair, &recordings[i], &recordings[k], bench, drift));
        }
    share_among_heads(drift);
    drift->noise_recordings = n;
out:
    for (int i = 0; i < opened; i++)
        at_distributions_close(&recordings[i]);
    free(recordings);
    return status;
}
