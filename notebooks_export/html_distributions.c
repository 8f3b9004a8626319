/* Distributions on the page.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "notebooks_export/export_distributions.h"
#include "notebooks_export/html.h"

/* What all heads of a quantity in a layer have together. */
struct whole {
    double n, nan, zero, subnormal, overflow, least, most, headroom;
};

static struct whole whole_of(const struct at_distributions *d, int w, int64_t i) {
    const int64_t heads = at_dist_heads(&d->shape, (enum at_dist_what)w);
    struct whole all = { .least = NAN, .most = NAN, .headroom = NAN };
    for (int64_t h = 0; h < heads; h++) {
        const struct at_dist_summary *s = &d->summary[w][i * heads + h];
        all.n += (double)s->n;
        all.nan += (double)s->nan;
        all.zero += (double)s->zero;
        all.subnormal += (double)s->subnormal;
        all.overflow += (double)s->overflow;
        if (!(s->min >= all.least) && !isnan(s->min))
            all.least = s->min;
        if (!(s->max <= all.most) && !isnan(s->max))
            all.most = s->max;
        if (!(s->headroom >= all.headroom) && !isnan(s->headroom))
            all.headroom = s->headroom;
    }
    return all;
}

static void put_layer(FILE *f, const struct at_distributions *d, int w, int64_t i) {
    const struct whole all = whole_of(d, w, i);
    fprintf(f, "<tr><td>%s</td><td class=\"n\">%" PRId64 "</td>", at_dist_name((enum at_dist_what)w), d->layer[i]);
    at_html_count(f, all.n);
    at_html_number(f, 100 * all.zero / all.n, 3);
    at_html_number(f, 100 * all.subnormal / all.n, 3);
    at_html_count(f, all.overflow);
    at_html_count(f, all.nan);
    at_html_number(f, all.least, 4);
    at_html_number(f, all.most, 4);
    at_html_number(f, all.headroom, 3);
    fputs("</tr>\n", f);
}

static void put_table(FILE *f, const struct at_distributions *d) {
    static const char *const heads[] = { "what",      "#layer", "#values", "#zero, %", "#subnormal, %",
                                         "#overflow", "#NaN",   "#least",  "#largest", "#headroom, bit" };
    at_html_table(f, NULL, heads, sizeof heads / sizeof *heads);
    for (int w = 0; w < AT_DIST_COUNT; w++)
        for (int64_t i = 0; at_dist_has(&d->shape, (enum at_dist_what)w) && i < d->shape.n_layers; i++)
            put_layer(f, d, w, i);
    at_html_table_end(f);
}

at_status at_html_distributions(const struct at_export *e, FILE *f) {
    const struct at_distributions *d = e->distributions;
    const struct at_figure_sink sink = { at_html_take_figure, f };
    if (!d)
        return AT_OK;
    at_html_section(f, "distributions", "Distributions of scores");
    fprintf(f,
            "<p>%" PRId64 " layers, %" PRId64 " query heads, %" PRId64 " key/value heads, %" PRId64
            " requests; every value is counted in the bin of its %s code. Attention: ",
            d->shape.n_layers, d->shape.h, d->shape.hk, d->shape.requests, d->shape.bins == AT_F16 ? "f16" : "bf16");
    at_html_text(f, d->attention);
    fputs("; source: ", f);
    at_html_text(f, d->source);
    fputs(".</p>\n", f);
    AT_TRY(at_figures_distributions(e, &sink));
    at_html_fold(f, "Sizes, zeros and headroom of each layer, all heads together");
    put_table(f, d);
    at_html_fold_end(f);
    const struct at_frame *ledger = at_frame_find(&e->frames, "distributions/ledger");
    if (ledger && ledger->n) {
        at_html_fold(f, "The overflow ledger of the recording, every row");
        at_html_frame(f, ledger);
        at_html_fold_end(f);
    }
    const struct at_frame *units = at_frame_find(&e->frames, "distributions/unit");
    if (units && units->n) {
        at_html_fold(f, "What was recorded, every row");
        at_html_frame(f, units);
        at_html_fold_end(f);
    }
    return AT_OK;
}
