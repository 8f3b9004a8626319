/* The table of a recording: for each layer its worst head and the middle of the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/record/dist_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/record/dist_merge.h"

/* Bits to 65504; -inf: an infinity was there; NaN: no number was. */
static double headroom(const struct at_ledger_row *row) {
    return row->inf ? -(double)INFINITY : at_ledger_headroom(row);
}

/* Whether some head of a layer has values in a stage, which are all NaN: none of them says how much room there is, and
 * that is not the "-" of a stage without values. */
static int is_only_nan(const struct at_distributions *d, int64_t layer, int stage) {
    int any = 0;
    for (int64_t x = 0; x < d->shape.h; x++) {
        const struct at_ledger_row *row = &d->ledger[(layer * d->shape.h + x) * AT_DIST_STAGES + stage];
        any |= row->count > 0 && row->nan == row->count;
    }
    return any;
}

/* Least headroom of a stage over the heads of a layer, and the head that has it; NaN and -1: no head has any. */
static double worst_headroom(const struct at_distributions *d, int64_t layer, int stage, int64_t *head) {
    double worst = (double)NAN;
    *head = -1;
    for (int64_t x = 0; x < d->shape.h; x++) {
        const double room = headroom(&d->ledger[(layer * d->shape.h + x) * AT_DIST_STAGES + stage]);
        if (room < worst || (isnan(worst) && !isnan(room))) {
            worst = room;
            *head = x;
        }
    }
    return worst;
}

/* Values of a stage that float16 would not hold. */
static uint64_t beyond(const struct at_distributions *d, int64_t layer) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < d->shape.h * AT_DIST_STAGES; i++) {
        const struct at_ledger_row *row = &d->ledger[layer * d->shape.h * AT_DIST_STAGES + i];
        sum += row->to_inf + row->nan;
    }
    return sum;
}

static double zero_share(const struct at_distributions *d, int64_t layer, enum at_dist_zero zero) {
    const int64_t heads = at_dist_zero_heads(&d->shape, zero);
    uint64_t part = 0, all = 0;
    for (int64_t x = 0; x < heads; x++) {
        part += d->zero[zero][layer * heads + x];
        all += d->zero[zero + 1][layer * heads + x];
    }
    return all ? (double)part / (double)all : (double)NAN;
}

/* Mean over the heads that have one. */
static double mean_of(const struct at_distributions *d, int64_t layer, enum at_dist_what what) {
    double sum = 0;
    int64_t n = 0;
    for (int64_t x = 0; d->summary[what] && x < d->shape.h; x++) {
        const double mean = d->summary[what][layer * d->shape.h + x].mean;
        if (isfinite(mean)) {
            sum += mean;
            n++;
        }
    }
    return n ? sum / (double)n : (double)NAN;
}

/* The magnitude that 99 of 100 scaled scores of a layer do not pass; NaN without them. */
static at_status p99(const struct at_distributions *d, int64_t layer, double *value) {
    const enum at_format bins = d->shape.bins;
    const int64_t n = at_dist_bins(bins), half = n / 2;
    at_status status = AT_OK;
    uint64_t total = 0, below = 0, *sum = calloc((size_t)(2 * n), sizeof *sum), *counts = sum + n;
    *value = (double)NAN;
    if (!sum)
        return AT_FAIL(AT_NO_MEMORY, "no memory for counts");
    for (int64_t x = 0; x < d->shape.h && at_dist_has(&d->shape, AT_DIST_scaled); x++) {
        AT_TRY_OUT(at_distributions_counts(d, AT_DIST_scaled, layer, x, counts));
        for (int64_t i = 0; i < half; i++) {
            sum[i] += counts[half + i] + counts[half - 1 - i];
            total += counts[half + i] + counts[half - 1 - i];
        }
    }
    for (int64_t i = 0; i < half && total; i++) {
        below += sum[i];
        if ((double)below >= ceil(0.99 * (double)total)) {
            *value = at_dist_value_of(bins, half + i);
            break;
        }
    }
out:
    free(sum);
    return status;
}

static void cell(FILE *out, int width, int digits, double value) {
    if (isnan(value))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, digits, value);
}

static void room_cell(FILE *out, const struct at_distributions *d, int64_t layer, int stage, double room) {
    if (isnan(room) && is_only_nan(d, layer, stage))
        fprintf(out, " %7s", "nan");
    else
        cell(out, 7, 1, room);
}

/* A name comes from a file's, or from an archive: nothing in it may steer a terminal. */
static void print_name(const char *name, FILE *out) {
    enum { MAX = 80 };
    size_t n = strlen(name);
    if (n > MAX)
        for (n = MAX; n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80;)
            n--;
    for (size_t i = 0; i < n; i++)
        fputc((unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i], out);
}

at_status at_dist_table(const struct at_distributions *d, FILE *out) {
    const struct at_dist_shape *s = &d->shape;
    print_name(d->source, out);
    fprintf(
        out,
        ": %s, bins of %s; %" PRId64 " layers, %" PRId64 " and %" PRId64 " heads, %" PRId64 " of %" PRId64 " units\n",
        d->attention, at_format_info(s->bins)->name, s->n_layers, s->h, s->hk, d->n_units, s->n_layers * s->requests);
    fprintf(out, "%5s %7s %4s %7s %8s %6s %6s %6s %6s %7s %6s %9s\n", "LAYER", "RAWBITS", "HEAD", "BITS", "P99|S|",
            "P=0%", "KEY0%", "PAGE0%", "TILE0%", "ENTROPY", "SHARE0", ">=65520");
    for (int64_t i = 0; i < s->n_layers; i++) {
        int64_t head, other;
        double s99;
        const double raw = worst_headroom(d, i, 0, &head), scaled = worst_headroom(d, i, 1, &other);
        AT_TRY(p99(d, i, &s99));
        fprintf(out, "%5" PRId64, d->layer[i]);
        room_cell(out, d, i, 0, raw);
        cell(out, 4, 0, head < 0 ? (double)NAN : (double)head);
        room_cell(out, d, i, 1, scaled);
        cell(out, 8, 3, s99);
        cell(out, 6, 1, 100 * zero_share(d, i, AT_DIST_ZERO_element_zero));
        cell(out, 6, 1, 100 * zero_share(d, i, AT_DIST_ZERO_key_zero));
        cell(out, 6, 1, 100 * zero_share(d, i, AT_DIST_ZERO_page_zero));
        cell(out, 6, 1, 100 * zero_share(d, i, AT_DIST_ZERO_tile_zero));
        cell(out, 7, 2, mean_of(d, i, AT_DIST_entropy));
        cell(out, 6, 3, mean_of(d, i, AT_DIST_share0));
        fprintf(out, " %9" PRIu64 "\n", beyond(d, i));
    }
    return AT_OK;
}

static at_status show(const char *path, FILE *out) {
    struct at_distributions d;
    AT_TRY(at_distributions_open(path, &d));
    fprintf(out, "%s\n", d.record.request);
    const at_status status = at_dist_table(&d, out);
    at_distributions_close(&d);
    return status;
}

const struct at_content at_content_distributions = {
    .what = "distributions", .is = at_distributions_is, .show = show, .merge = at_dist_merge
};
