/* A small SVG writer: lines, texts, and the two kinds of plot that studies need. Black and grey alone; curves differ by
 * dashes and marks, so that a print in grey keeps them apart.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SVG_H
#define AT_SVG_H

#include "attest/status.h"

/* How a curve is drawn; one look each. */
enum at_look { AT_LOOK_DOTS, AT_LOOK_RINGS, AT_LOOK_DASHED, AT_LOOK_DOTTED };
enum { AT_PLOT_CURVES = 4, AT_PLOT_POINTS = 32, AT_PLOT_PANELS = 64 };

/* y[i] over x[i], x ascending. Points that are NaN, or not positive on a log axis, are left out. */
struct at_curve {
    enum at_look look;
    int n;
    double x[AT_PLOT_POINTS], y[AT_PLOT_POINTS];
};
struct at_panel {
    char title[64];
    int n;
    struct at_curve curve[AT_PLOT_CURVES];
};

/* Panels of one size with the same axes: x by powers of two, y by powers of ten or from 0 to 100 %. */
struct at_plot {
    char title[160];
    const char *x_title, *y_title;      /* with units */
    const char *legend[AT_PLOT_CURVES]; /* by look; NULL: not drawn anywhere */
    int percent;
    int n_panels;
    struct at_panel *panels;
};
/* Writes the file whole or not at all. */
at_status at_svg_panels(const struct at_plot *plot, const char *path);

/* Horizontal bars of two shares, 0 to 1, for each name; NaN: none. */
struct at_bars {
    char title[160];
    const char *x_title, *legend[2]; /* pale, dark */
    int n;
    struct at_bar {
        char name[40];
        double share[2];
    } * bars;
};
at_status at_svg_bars(const struct at_bars *bars, const char *path);

#endif
