/* What attest drift prints: heads that fail, and a line for each quantity.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "verify/drift/drift_rows.h"

static void print_number(FILE *out, int width, double x) {
    char text[32];
    snprintf(text, sizeof text, isinf(x) ? (x > 0 ? "inf" : "-inf") : "%.2g", x);
    fprintf(out, " %*s", width, isnan(x) ? "-" : text);
}

static void print_row(const struct at_drift *drift, const struct at_drift_head *head, FILE *out) {
    const struct at_drift_row *row = head->worst;
    char reasons[160];
    at_drift_reasons(row, reasons, sizeof reasons);
    fprintf(out, "%5" PRId64 " %4" PRId64 "%s %-8s %-8s", row->layer, row->head, at_dist_is_kv(row->what) ? "*" : " ",
            at_dist_name(row->what), at_dist_name(head->origin->what));
    print_number(out, 8, row->metric[AT_DRIFT_ks]);
    print_number(out, 8, row->metric[AT_DRIFT_wasserstein]);
    print_number(out, 8, row->metric[AT_DRIFT_js]);
    print_number(out, 7, row->metric[AT_DRIFT_grain]);
    fprintf(out, " %5.1f>%-5.1f %5.1f>%-5.1f", 100 * row->zero_a, 100 * row->zero_b, row->headroom_a, row->headroom_b);
    if (!drift->paired)
        print_number(out, 7, fmin(isnan(row->p) ? 1 : row->p, isnan(row->p_spread) ? 1 : row->p_spread));
    fprintf(out, "  %s\n", reasons);
}

static void print_quantities(const struct at_drift *drift, FILE *out) {
    fprintf(out, "\n%-8s %6s %6s %8s %8s %8s %7s %9s %9s%s\n", "QUANTITY", "ROWS", "BEYOND", "KS", "AREA", "JS",
            "GRAIN", "ZERO", "HEADROOM", drift->paired ? "" : "        P");
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        double most[AT_DRIFT_METRICS] = { 0 }, least_p = NAN;
        int64_t rows = 0, beyond = 0;
        for (int64_t i = 0; i < drift->n; i++) {
            const struct at_drift_row *row = &drift->rows[i];
            if ((int)row->what != w)
                continue;
            rows++;
            beyond += row->failed != 0;
            for (int m = 0; m < AT_DRIFT_METRICS; m++)
                most[m] = row->metric[m] > most[m] ? row->metric[m] : most[m];
            least_p = fmin(least_p, fmin(row->p, row->p_spread)); /* fmin of a NaN is the other one */
        }
        if (rows == 0)
            continue;
        fprintf(out, "%-8s %6" PRId64 " %6" PRId64, at_dist_name((enum at_dist_what)w), rows, beyond);
        print_number(out, 8, most[AT_DRIFT_ks]);
        print_number(out, 8, most[AT_DRIFT_wasserstein]);
        print_number(out, 8, most[AT_DRIFT_js]);
        print_number(out, 7, most[AT_DRIFT_grain]);
        print_number(out, 9, most[AT_DRIFT_zero_share]);
        print_number(out, 9, most[AT_DRIFT_headroom]);
        if (!drift->paired)
            print_number(out, 8, least_p);
        fputc('\n', out);
    }
}

static void print_heads(const struct at_drift *drift, const struct at_drift_head *heads, int64_t n, int64_t most,
                        FILE *out) {
    if (n == 0)
        return;
    fprintf(out, "\n%5s %5s %-8s %-8s %8s %8s %8s %7s %11s %11s%s  BEYOND\n", "LAYER", "HEAD ", "WORST", "FIRST", "KS",
            "AREA", "JS", "GRAIN", "ZERO% A>B ", "ROOM A>B  ", drift->paired ? "" : "       P");
    for (int64_t i = 0; i < n && i < most; i++)
        print_row(drift, &heads[i], out);
    if (n > most)
        fprintf(out, "... and %" PRId64 " heads more (--worst N shows them)\n", n - most);
    for (int64_t i = 0; i < n && i < most; i++)
        if (at_dist_is_kv(heads[i].worst->what)) {
            fprintf(out, "*: a key/value head\n");
            break;
        }
}

/* A shard has not all of its recording's requests. */
static void print_part(const char *side, const struct at_distributions *d, FILE *out) {
    const int64_t all = d->shape.n_layers * d->shape.requests;
    if (d->n_units < all)
        fprintf(out, "%s is a shard: %" PRId64 " of %" PRId64 " units\n", side, d->n_units, all);
}

/* What the measured noise has made of the limits. */
static void print_noise(const struct at_drift *drift, const struct at_drift_limits *limits, FILE *out) {
    double most[AT_DRIFT_METRICS] = { 0 };
    for (int64_t i = 0; i < drift->n; i++)
        for (int m = 0; m < AT_DRIFT_METRICS; m++)
            most[m] = fmax(most[m], drift->rows[i].noise[m]);
    fprintf(out, "noise of %d recordings of one thing, of which %g times are left beside the limits; its largest:",
            drift->noise_recordings, limits->noise_factor);
    for (int m = 0; m < AT_DRIFT_METRICS; m++)
        if (most[m] > 0)
            fprintf(out, " %s %.2g", at_drift_metric_name((enum at_drift_metric)m), most[m]);
    fputc('\n', out);
}

void at_drift_table(const struct at_drift *drift, const struct at_drift_limits *limits, int64_t most, FILE *out) {
    struct at_drift_head *heads;
    int64_t n;
    fprintf(out, "%s in bins of %s, %" PRId64 " layers, %" PRId64 "/%" PRId64 " heads; compared %s: %s\n",
            drift->a.attention, at_format_info(drift->a.shape.bins)->name, drift->a.shape.n_layers, drift->a.shape.h,
            drift->a.shape.hk, drift->paired ? "in pairs" : "by a permutation test", drift->why);
    at_drift_put_asked(drift, out);
    print_part("A", &drift->a, out);
    print_part("B", &drift->b, out);
    if (drift->noise_recordings)
        print_noise(drift, limits, out);
    if (!drift->paired)
        fprintf(out,
                "%" PRId64 " and %" PRId64 " groups of requests, %s%" PRId64
                " deals, family-wise level %g (the least p they can give is %.2g)\n",
                drift->a.shape.n_groups, drift->b.shape.n_groups, drift->deals <= limits->deals ? "all " : "",
                drift->deals, limits->level, drift->least_p);
    if (at_drift_heads(drift, &heads, &n) != AT_OK)
        n = 0;
    print_heads(drift, heads, n, most, out);
    print_quantities(drift, out);
    fprintf(out, "\n%" PRId64 " rows compared, %" PRId64 " beyond their limits, in %" PRId64 " heads\n", drift->n,
            drift->failed, n);
    if (!drift->judged)
        fprintf(out, "nothing was judged: %s\n",
                drift->least_p > limits->level && limits->level > 0
                    ? "so few groups of requests cannot reach the level, and there are no limits"
                    : "there are no values, or no limits");
    free(heads);
}
