/* What attest drift says of the worst row: where a change came in, a likely cause, both distributions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "verify/drift/drift.h"

enum { PLOT_ROWS = 16, PLOT_WIDTH = 30 };

static void bar(double share, double most, char mark, FILE *out) {
    const int n = most > 0 ? (int)lround(share / most * PLOT_WIDTH) : 0;
    for (int i = 0; i < PLOT_WIDTH; i++)
        fputc(i < n ? mark : ' ', out);
}

/* Values from the 0.5 % to the 99.5 % quantile of both sides, in PLOT_ROWS equal steps; what is beyond goes to the
 * ends. */
static void plot(enum at_format bins, const uint64_t *a, const uint64_t *b, FILE *out) {
    double share[2][PLOT_ROWS] = { { 0 } }, most = 0;
    const double low_a = at_dist_value_of(bins, at_dist_quantile(bins, a, 0.005)),
                 low_b = at_dist_value_of(bins, at_dist_quantile(bins, b, 0.005)),
                 high_a = at_dist_value_of(bins, at_dist_quantile(bins, a, 0.995)),
                 high_b = at_dist_value_of(bins, at_dist_quantile(bins, b, 0.995));
    const double low = fmax(fmin(low_a, low_b), -65504), high = fmin(fmax(high_a, high_b), 65504);
    const double step = high > low ? (high - low) / PLOT_ROWS : 1;
    uint64_t all[2] = { 0, 0 };
    for (int64_t i = 0; i < at_dist_bins(bins); i++) {
        all[0] += a[i];
        all[1] += b[i];
    }
    for (int64_t i = 0; i < at_dist_bins(bins); i++) {
        if (!a[i] && !b[i])
            continue;
        const double at = floor((at_dist_value_of(bins, i) - low) / step);
        const int row = at < 0 ? 0 : at > PLOT_ROWS - 1 ? PLOT_ROWS - 1 : (int)at;
        share[0][row] += (double)a[i] / (double)all[0];
        share[1][row] += (double)b[i] / (double)all[1];
    }
    for (int r = 0; r < PLOT_ROWS; r++)
        most = fmax(most, fmax(share[0][r], share[1][r]));
    fprintf(out, "%12s %7s %-*s %7s %s\n", "from", "A %", PLOT_WIDTH, "", "B %", "");
    for (int r = 0; r < PLOT_ROWS; r++) {
        fprintf(out, "%12.4g %7.2f ", low + r * step, 100 * share[0][r]);
        bar(share[0][r], most, '#', out);
        fprintf(out, " %7.2f ", 100 * share[1][r]);
        bar(share[1][r], most, '=', out);
        fputc('\n', out);
    }
}

/* B's values as a multiple of A's, where all deciles agree on one to a fifth of the change; NaN otherwise. */
static double factor_between(enum at_format bins, const uint64_t *a, const uint64_t *b) {
    double low = INFINITY, high = -INFINITY;
    for (int i = 1; i < 10; i++) {
        const double x = at_dist_value_of(bins, at_dist_quantile(bins, a, i / 10.0)),
                     y = at_dist_value_of(bins, at_dist_quantile(bins, b, i / 10.0));
        if (x == 0 || !isfinite(x / 1) || !isfinite(y))
            continue;
        /* Deciles near 0 have a ratio that a unit in the last place moves. */
        if (fabs(x) < 1e-2)
            continue;
        low = fmin(low, y / x);
        high = fmax(high, y / x);
    }
    const double middle = (low + high) / 2;
    return middle != 1 && high - low <= 0.2 * fabs(middle - 1) ? middle : (double)NAN;
}

/* What the first quantity that moved tells. */
static const char *tale_of(enum at_dist_what what) {
    switch (what) {
    case AT_DIST_q:
    case AT_DIST_k:
    case AT_DIST_v:
        return "the inputs of the attention have moved";
    case AT_DIST_raw:
        return "q and k have not moved one by one, but their products have";
    case AT_DIST_scaled:
        return "q.k has not moved: the scale has";
    case AT_DIST_fir:
        return "the scaled scores have not moved: the FIR filter's taps, sigma or edge have";
    case AT_DIST_p:
        return "what the weights are made from has not moved: the gate or the softmax has";
    case AT_DIST_out:
        return "p and v have not moved: gamma, or which row of v a weight meets, has";
    default:
        return "the mask or the lengths of rows have moved";
    }
}

/* A number format with so many significant bits: what values were rounded to, most likely. */
static const char *format_of(int bits) {
    return bits == 8 ? " (bf16 has 8)" : bits == 4 ? " (e4m3 has 4)" : bits == 3 ? " (e5m2 has 3)" : "";
}

/* Rows that fail by their grain to one number of bits on one side, as `like` does. */
static int64_t rounded_alike(const struct at_drift *drift, const struct at_drift_row *like) {
    int64_t n = 0;
    for (int64_t i = 0; i < drift->n; i++)
        n += (drift->rows[i].failed >> AT_DRIFT_grain & 1) && drift->rows[i].grain_bits == like->grain_bits &&
             drift->rows[i].what == like->what;
    return n;
}

static void print_rounding(const struct at_drift *drift, const struct at_drift_row *row, FILE *out) {
    const int zeros = abs(row->grain_bits), bits = at_format_info(drift->a.shape.bins)->precision - zeros;
    fprintf(out,
            "%.0f %% of its values differ in having %d trailing zero bits: those of %s were rounded to %d significant "
            "bits%s on the way, as in %" PRId64 " rows of %s\n",
            100 * row->metric[AT_DRIFT_grain], zeros, row->grain_bits > 0 ? "B" : "A", bits, format_of(bits),
            rounded_alike(drift, row), at_dist_name(row->what));
}

static void print_cause(const struct at_drift *drift, const struct at_drift_row *origin, double factor, FILE *out) {
    if (origin->failed >> AT_DRIFT_masked_share & 1)
        fprintf(
            out,
            "first to move: %s; the mask, or the lengths of rows, have changed: hidden are %.3g %% of (query, key) in "
            "A, %.3g %% in B\n",
            at_dist_name(origin->what), 100 * origin->hidden_a, 100 * origin->hidden_b);
    else
        fprintf(out, "first to move: %s; %s\n", at_dist_name(origin->what), tale_of(origin->what));
    if (origin->metric[AT_DRIFT_grain] > 0.25 && origin->grain_bits)
        print_rounding(drift, origin, out);
    if (!isnan(factor))
        fprintf(out, "its deciles in B are %.4g times those in A\n", factor);
}

at_status at_drift_explain(const struct at_drift *drift, FILE *out) {
    struct at_drift_head *heads = NULL;
    int64_t n = 0;
    const enum at_format bins = drift->a.shape.bins;
    uint64_t *a = calloc((size_t)at_dist_bins(bins), sizeof *a), *b = calloc((size_t)at_dist_bins(bins), sizeof *b);
    at_status status = AT_OK;
    if (!a || !b)
        AT_FAIL_OUT(AT_NO_MEMORY, "drift: no memory for %" PRId64 " bins", at_dist_bins(bins));
    AT_TRY_OUT(at_drift_heads(drift, &heads, &n));
    if (n == 0)
        goto out;
    const struct at_drift_row *row = heads[0].origin;
    AT_TRY_OUT(at_distributions_counts(&drift->a, row->what, row->index, row->head, a));
    AT_TRY_OUT(at_distributions_counts(&drift->b, row->what, row->index, row->head, b));
    const int both = at_dist_quantile(bins, a, 0.5) >= 0 && at_dist_quantile(bins, b, 0.5) >= 0;
    fprintf(out, "\nworst: layer %" PRId64 ", head %" PRId64 ": %s; shown: %s\n", heads[0].worst->layer,
            heads[0].worst->head, at_dist_name(heads[0].worst->what), at_dist_name(row->what));
    print_cause(drift, row, both ? factor_between(bins, a, b) : (double)NAN, out);
    if (both)
        plot(bins, a, b, out);
    else
        fprintf(out, "A has %" PRIu64 " values, B has %" PRIu64 "\n", row->n_a, row->n_b);
out:
    free(heads);
    free(a);
    free(b);
    return status;
}
