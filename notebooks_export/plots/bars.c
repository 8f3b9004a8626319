/* Bars of shares as SVG.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "notebooks_export/plots/plots.h"
#include "notebooks_export/plots/svg.h"

enum { BAR_W = 480, BAR_ROW = 30, BAR_LEFT = 150, TOP = 84, BOTTOM = 54 };
static const char *const fills[] = { "#ccc", "#333" };

/* Whole hundreds of percent that the axis ends at. */
static double end_of(const struct at_bars *bars) {
    double end = 1;
    for (int i = 0; i < bars->n; i++)
        for (int k = 0; k < 2; k++)
            if (isfinite(bars->bars[i].share[k]) && bars->bars[i].share[k] > end)
                end = ceil(bars->bars[i].share[k]);
    return end;
}

static void put_bar(FILE *f, double share, double end, const char *fill, double top) {
    char text[32], attributes[48];
    if (!isfinite(share))
        return;
    snprintf(attributes, sizeof attributes, "fill=\"%s\" stroke=\"#000\"", fill);
    at_svg_rect(f, BAR_LEFT, top, share / end * BAR_W, 10, attributes);
    snprintf(text, sizeof text, "%.1f %%", 100 * share);
    at_svg_text(f, BAR_LEFT + share / end * BAR_W + 5, top + 9, "start", "font-size=\"10\"", text);
}

static void put_legend(FILE *f, const struct at_bars *bars) {
    double x = 20;
    for (int i = 0; i < 2; i++) {
        char attributes[48];
        if (!bars->legend[i])
            continue;
        snprintf(attributes, sizeof attributes, "fill=\"%s\" stroke=\"#000\"", fills[i]);
        at_svg_rect(f, x, 41, 24, 10, attributes);
        at_svg_text(f, x + 30, 50, "start", "", bars->legend[i]);
        x += 60 + at_svg_width(bars->legend[i]);
    }
}

void at_plot_bars(FILE *f, const struct at_bars *bars) {
    const double height = TOP + (double)bars->n * BAR_ROW, end = end_of(bars);
    char text[24];
    at_svg_begin(f, fmax(BAR_LEFT + BAR_W + 80, 40 + at_svg_width(bars->title) * 9 / AT_SVG_LETTER), height + BOTTOM,
                 bars->title);
    at_svg_text(f, 20, 24, "start", "font-size=\"14\"", bars->title);
    put_legend(f, bars);
    for (int k = 0; k <= 4; k++) {
        const double at = BAR_LEFT + k / 4.0 * BAR_W;
        at_svg_line(f, at, TOP - 8, at, height, "stroke=\"#ddd\"");
        snprintf(text, sizeof text, "%.0f %%", 25 * k * end);
        at_svg_text(f, at, height + 16, "middle", "", text);
    }
    for (int i = 0; i < bars->n; i++) {
        const double top = TOP + (double)i * BAR_ROW;
        at_svg_text(f, BAR_LEFT - 8, top + 14, "end", "", bars->bars[i].name);
        for (int k = 0; k < 2; k++)
            if (bars->legend[k])
                put_bar(f, bars->bars[i].share[k], end, fills[k], top + 11 * k);
    }
    at_svg_text(f, BAR_LEFT + BAR_W / 2.0, height + 38, "middle", "", bars->x_title);
    at_svg_end(f);
}
