/* Distributions as tidy CSV, in long format: layer, head, what, and one value a row.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "notebooks_export/csv_write.h"
#include "notebooks_export/export_distributions.h"

static const double shares[] = { 0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1 };

/* ---- a row for each quantity, layer and head ---- */

static at_status write_summary(struct at_export *e, const struct at_distributions *d) {
    struct at_atomic_file file;
    AT_TRY(at_export_begin(e, "distributions", "csv", &file));
    FILE *f = file.stream;
    fputs("layer,head,what,n,nan,masked,zero,subnormal,overflow,mean,std,min,max,abs_max,headroom\r\n", f);
    for (int64_t i = 0; i < d->shape.n_layers; i++)
        for (int w = 0; w < AT_DIST_COUNT; w++) {
            const enum at_dist_what what = (enum at_dist_what)w;
            const int64_t heads = at_dist_heads(&d->shape, what);
            for (int64_t h = 0; at_dist_has(&d->shape, what) && h < heads; h++) {
                const struct at_dist_summary *s = &d->summary[w][i * heads + h];
                fprintf(
                    f,
                    "%" PRId64 ",%" PRId64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                    d->layer[i], h, at_dist_name(what), s->n, s->nan, s->masked, s->zero, s->subnormal, s->overflow);
                const double values[] = { s->mean, s->std, s->min, s->max, s->abs_max, s->headroom };
                for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
                    fputc(',', f);
                    at_csv_number(f, values[k]);
                }
                fputs("\r\n", f);
            }
        }
    return at_export_end(e, &file);
}

/* ---- from the counts ---- */

static void put_quantiles(FILE *f, const char *begin, enum at_format bins, const uint64_t *counts) {
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
        const int64_t bin = at_dist_quantile(bins, counts, shares[k]);
        if (bin < 0)
            return;
        fprintf(f, "%s,%g,", begin, shares[k]);
        at_csv_number(f, at_dist_value_of(bins, bin));
        fputs("\r\n", f);
    }
}

/* Classes that hold something: about 250 in place of 63,490 codes; the archive has them all. */
static void put_classes(FILE *f, const char *begin, enum at_format bins, const uint64_t *counts) {
    const int64_t n = at_dist_classes(bins);
    for (int64_t c = 0; c < n; c++) {
        const int64_t first = at_dist_class_first(bins, c);
        const int64_t end = c + 1 < n ? at_dist_class_first(bins, c + 1) : at_dist_bins(bins);
        uint64_t sum = 0;
        for (int64_t b = first; b < end; b++)
            sum += counts[b];
        if (!sum)
            continue;
        fprintf(f, "%s,", begin);
        at_csv_number(f, at_dist_value_of(bins, first));
        fputc(',', f);
        at_csv_number(f, at_dist_value_of(bins, end - 1));
        fprintf(f, ",%" PRIu64 "\r\n", sum);
    }
}

static at_status write_counts(struct at_export *e, const struct at_distributions *d, int quantiles, uint64_t *counts) {
    struct at_atomic_file file;
    char begin[96];
    at_status status = AT_OK;
    AT_TRY(at_export_begin(e, quantiles ? "distributions_quantiles" : "distributions_bins", "csv", &file));
    fprintf(file.stream, "layer,head,what,%s\r\n", quantiles ? "quantile,value" : "first,last,count");
    for (int64_t i = 0; i < d->shape.n_layers; i++)
        for (int w = 0; w < AT_DIST_COUNT; w++) {
            const enum at_dist_what what = (enum at_dist_what)w;
            for (int64_t h = 0; at_dist_has(&d->shape, what) && h < at_dist_heads(&d->shape, what); h++) {
                AT_TRY_OUT(at_distributions_counts(d, what, i, h, counts));
                snprintf(begin, sizeof begin, "%" PRId64 ",%" PRId64 ",%s", d->layer[i], h, at_dist_name(what));
                (quantiles ? put_quantiles : put_classes)(file.stream, begin, d->shape.bins, counts);
            }
        }
    return at_export_end(e, &file);
out:
    at_atomic_abandon(&file);
    return status;
}

/* ---- mass and zeros ---- */

static at_status write_mass(struct at_export *e, const struct at_distributions *d) {
    struct at_atomic_file file;
    AT_TRY(at_export_begin(e, "distributions_mass", "csv", &file));
    fputs("layer,head,distance,mass\r\n", file.stream);
    for (int64_t i = 0; i < d->shape.n_layers; i++)
        for (int64_t h = 0; h < d->shape.h; h++)
            for (int64_t b = 0; b < d->shape.n_distances; b++) {
                fprintf(file.stream, "%" PRId64 ",%" PRId64 ",%" PRId64 ",", d->layer[i], h, at_dist_distance_edge(b));
                at_csv_number(file.stream, 0x1p-24 * (double)d->mass[(i * d->shape.h + h) * d->shape.n_distances + b]);
                fputs("\r\n", file.stream);
            }
    return at_export_end(e, &file);
}

static at_status write_zeros(struct at_export *e, const struct at_distributions *d) {
    struct at_atomic_file file;
    AT_TRY(at_export_begin(e, "distributions_zero_share", "csv", &file));
    fputs("layer,head,count_of,count\r\n", file.stream);
    for (int64_t i = 0; i < d->shape.n_layers; i++)
        for (int z = 0; z < AT_DIST_ZERO_COUNT; z++) {
            const int64_t heads = at_dist_zero_heads(&d->shape, (enum at_dist_zero)z);
            for (int64_t h = 0; h < heads; h++)
                fprintf(file.stream, "%" PRId64 ",%" PRId64 ",%s,%" PRIu64 "\r\n", d->layer[i], h,
                        at_dist_zero_name((enum at_dist_zero)z), d->zero[z][i * heads + h]);
        }
    return at_export_end(e, &file);
}

at_status at_export_distributions_csv(struct at_export *e) {
    const struct at_distributions *d = e->distributions;
    at_status status = AT_OK;
    if (!d)
        return AT_OK;
    uint64_t *counts = malloc((size_t)at_dist_bins(d->shape.bins) * sizeof *counts);
    if (!counts)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for counts");
    AT_TRY_OUT(write_summary(e, d));
    AT_TRY_OUT(write_counts(e, d, 1, counts));
    AT_TRY_OUT(write_counts(e, d, 0, counts));
    AT_TRY_OUT(write_mass(e, d));
    AT_TRY_OUT(write_zeros(e, d));
out:
    free(counts);
    return status;
}
