/* Heat maps in grey as SVG, with the value in each cell.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "notebooks_export/plots/plots.h"
#include "notebooks_export/plots/svg.h"

enum { CELL_H = 20, TOP = 34, BOTTOM = 28, RIGHT = 14, SMALL = 6, GREYS = 118 }; /* SMALL: of a letter in a cell */

static void cell_text(const struct at_heat *heat, double value, char *text, size_t size) {
    if (isnan(value))
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%.*f", heat->digits, value); /* infinities, too */
}

static double widest(const char *const *names, int n) {
    double width = 0;
    for (int i = 0; i < n; i++)
        width = fmax(width, at_svg_width(names[i]));
    return width;
}

/* Wide enough for every value; names of columns that are wider stand upright. */
static double cell_width(const struct at_heat *heat) {
    double width = 20;
    char text[32];
    for (int i = 0; i < heat->rows * heat->cols; i++) {
        cell_text(heat, heat->values[i], text, sizeof text);
        width = fmax(width, (double)strlen(text) * SMALL + 6);
    }
    return width;
}

/* 0 (white) to 1. Infinities lie at the ends. */
static double darkness(const struct at_heat *heat, double value) {
    const double share = (value - heat->pale) / (heat->dark - heat->pale);
    return isnan(share) || share < 0 ? 0 : share > 1 ? 1 : share;
}

static void put_cell(FILE *f, const struct at_heat *heat, double value, double x, double y, double width) {
    const double dark = isnan(value) ? 0 : darkness(heat, value);
    const int grey = (int)lround(255 - GREYS * dark); /* black is read on all of these, white on their inverse */
    char attributes[64], text[32];
    snprintf(attributes, sizeof attributes, "fill=\"#%02x%02x%02x\" stroke=\"#fff\"", grey, grey, grey);
    at_svg_rect(f, x, y, width, CELL_H, attributes);
    cell_text(heat, value, text, sizeof text);
    at_svg_text(f, x + width / 2, y + 14, "middle", "font-size=\"10\"", text);
}

void at_plot_heat(FILE *f, const struct at_heat *heat) {
    const double cell = cell_width(heat), left = 28 + widest(heat->row_names, heat->rows);
    const double body_w = heat->cols * cell, body_h = (double)heat->rows * CELL_H;
    const double longest = widest(heat->col_names, heat->cols);
    const int upright = longest > cell;
    const double below = upright ? 0.85 * longest + 4 : 16; /* what the names of columns take */
    const double width = fmax(left + body_w + RIGHT, fmax(at_svg_width(heat->title), at_svg_width(heat->x_title)) + 16);
    char rotate[64];
    at_svg_begin(f, width, TOP + body_h + below + BOTTOM, heat->title);
    at_svg_text(f, 8, 18, "start", "font-weight=\"bold\"", heat->title);
    for (int r = 0; r < heat->rows; r++) {
        at_svg_text(f, left - 6, TOP + r * CELL_H + 14, "end", "", heat->row_names[r]);
        for (int c = 0; c < heat->cols; c++)
            put_cell(f, heat, heat->values[r * heat->cols + c], left + c * cell, TOP + r * CELL_H, cell);
    }
    for (int c = 0; c < heat->cols; c++) {
        const double x = left + (c + 0.5) * cell + (upright ? 4 : 0), y = TOP + body_h + (upright ? 6 : 14);
        *rotate = 0;
        if (upright)
            snprintf(rotate, sizeof rotate, "transform=\"rotate(-90 %.1f %.1f)\"", x, y);
        at_svg_text(f, x, y, upright ? "end" : "middle", rotate, heat->col_names[c]);
    }
    at_svg_rect(f, left, TOP, body_w, body_h, "fill=\"none\" stroke=\"#000\"");
    at_svg_text(f, fmax(left + body_w / 2, 8 + at_svg_width(heat->x_title) / 2), TOP + body_h + below + 18, "middle",
                "", heat->x_title);
    snprintf(rotate, sizeof rotate, "transform=\"rotate(-90 14 %.1f)\"", TOP + body_h / 2);
    at_svg_text(f, 14, TOP + body_h / 2, "middle", rotate, heat->y_title);
    at_svg_end(f);
}
