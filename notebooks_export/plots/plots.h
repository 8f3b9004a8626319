/* Plots as SVG: panels of curves, bars, heat maps. Black and grey alone; curves differ by dashes and marks, values of a
 * heat map stand in its cells, so that a print in grey keeps everything apart.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_PLOTS_H
#define AT_PLOTS_H

#include <stdint.h>
#include <stdio.h>

/* ---- curves ---- */

/* How a curve is drawn; one look each. Legends have them in this order. */
enum at_look { AT_LOOK_DOTS, AT_LOOK_RINGS, AT_LOOK_SOLID, AT_LOOK_PALE, AT_LOOK_DASHED, AT_LOOK_DOTTED, AT_LOOKS };
enum { AT_PLOT_CURVES = 4, AT_PLOT_POINTS = 160, AT_PLOT_PANELS = 64 };

/* y[i] over x[i], x ascending. Points that are NaN, or not positive on a log axis, are left out. Steps: y[i] holds from
 * x[i] to x[i + 1], and the last for as long as the one before. */
struct at_curve {
    enum at_look look;
    int steps, n;
    double x[AT_PLOT_POINTS], y[AT_PLOT_POINTS];
};
struct at_panel {
    char title[64];
    int n;
    struct at_curve curve[AT_PLOT_CURVES];
};

/* Powers of two or ten; a share, from 0 to 100 %; or numbers as they are. */
enum at_axis_scale { AT_AXIS_POWERS_OF_2, AT_AXIS_POWERS_OF_10, AT_AXIS_PERCENT, AT_AXIS_LINEAR };

/* Panels of one size with the same axes, whose ends follow from all of their points. */
struct at_plot {
    char title[192];
    const char *x_title, *y_title; /* with units */
    enum at_axis_scale x_scale, y_scale;
    const char *legend[AT_LOOKS]; /* by look; NULL: not drawn anywhere */
    const char *nothing;          /* said in a panel whose first look has no point; NULL: nothing is said */
    enum at_look first;           /* that look */
    double mark;                  /* a vertical line at this x; NaN: none */
    int n_panels;
    struct at_panel *panels;
};
/* One image with all panels, title and legend. */
void at_plot_sheet(FILE *f, const struct at_plot *plot);
/* An image of panel p with its own axes, 320 pixels wide; the legend is the caller's to show. */
void at_plot_panel(FILE *f, const struct at_plot *plot, int p);
/* A sample of a look, 34 by 12 pixels, for a legend in HTML. */
void at_plot_sample(FILE *f, enum at_look look);
/* Adds a panel; NULL when there are AT_PLOT_PANELS. */
struct at_panel *at_plot_add(struct at_plot *plot, const char *title);
/* Adds a point; no more than AT_PLOT_POINTS. */
void at_curve_add(struct at_curve *curve, double x, double y);

/* ---- bars ---- */

/* Horizontal bars of two shares for each name; NaN: none. The axis ends at 100 %, or at the next full 100 % above. */
struct at_bars {
    char title[192];
    const char *x_title, *legend[2]; /* pale, dark; a NULL has no bars */
    int n;
    struct at_bar {
        char name[40];
        double share[2];
    } * bars;
};
void at_plot_bars(FILE *f, const struct at_bars *bars);

/* ---- heat maps ---- */

/* rows x cols values, row-major, dark for `dark`, white for `pale`; NaN: an empty cell with a dash. */
struct at_heat {
    char title[192];
    const char *x_title, *y_title; /* of columns and rows */
    int rows, cols;
    const char *const *row_names, *const *col_names;
    const double *values;
    double pale, dark;
    int digits; /* after the point */
};
void at_plot_heat(FILE *f, const struct at_heat *heat);

#endif
