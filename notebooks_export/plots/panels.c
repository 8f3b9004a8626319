/* Panels of curves as SVG.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "notebooks_export/plots/axis.h"
#include "notebooks_export/plots/plots.h"
#include "notebooks_export/plots/svg.h"

enum {
    PANEL_W = 210,
    PANEL_H = 150,
    GAP_X = 36,
    GAP_Y = 34,
    LEFT = 78,
    TOP = 84,
    BOTTOM = 54,
    RIGHT = 24,
    COLUMNS = 4
};
/* A panel by itself. */
enum { ALONE_LEFT = 62, ALONE_TOP = 22, ALONE_BOTTOM = 40, ALONE_W = 240, ALONE_H = 150 };

struct frame {
    struct at_axis x, y;
    double left, top, width, height;
};

/* ---- points ---- */

struct at_panel *at_plot_add(struct at_plot *plot, const char *title) {
    if (plot->n_panels == AT_PLOT_PANELS)
        return NULL;
    struct at_panel *panel = &plot->panels[plot->n_panels++];
    panel->n = 0;
    snprintf(panel->title, sizeof panel->title, "%s", title);
    for (int c = 0; c < AT_PLOT_CURVES; c++)
        panel->curve[c].n = panel->curve[c].steps = 0;
    return panel;
}

void at_curve_add(struct at_curve *curve, double x, double y) {
    if (curve->n == AT_PLOT_POINTS)
        return;
    curve->x[curve->n] = x;
    curve->y[curve->n++] = y;
}

static double step_end(const struct at_curve *c, int i) {
    return i + 1 < c->n ? c->x[i + 1] : c->n > 1 ? c->x[i] + (c->x[i] - c->x[i - 1]) : c->x[i] + 1;
}

struct range {
    double least, most;
};

static void widen(struct range *range, double value) {
    if (!(value >= range->least))
        range->least = value;
    if (!(value <= range->most))
        range->most = value;
}

static int drawable(const struct at_plot *plot, double x, double y) {
    return at_axis_takes(plot->x_scale, x) && at_axis_takes(plot->y_scale, y);
}

static struct frame frame_of(const struct at_plot *plot, double width, double height) {
    struct frame frame = { .width = width, .height = height };
    struct range x = { INFINITY, -INFINITY }, y = x;
    for (int p = 0; p < plot->n_panels; p++)
        for (int c = 0; c < plot->panels[p].n; c++)
            for (int i = 0; i < plot->panels[p].curve[c].n; i++) {
                const struct at_curve *curve = &plot->panels[p].curve[c];
                if (!drawable(plot, curve->x[i], curve->y[i]))
                    continue;
                widen(&x, curve->x[i]);
                widen(&y, curve->y[i]);
                if (curve->steps)
                    widen(&x, step_end(curve, i));
            }
    if (at_axis_takes(plot->x_scale, plot->mark))
        widen(&x, plot->mark);
    const int digits = x.most >= 1 ? (int)log10(x.most) + 2 : 1; /* the axis may end at the next power of two */
    const int ticks = (int)width / (AT_SVG_LETTER * ((digits > 3 ? digits : 3) + 1));
    frame.x = at_axis_of(plot->x_scale, x.least, x.most, plot->x_scale == AT_AXIS_LINEAR && ticks > 6 ? 6 : ticks);
    frame.y = at_axis_of(plot->y_scale, y.least, y.most, 5);
    return frame;
}

static double x_at(const struct frame *frame, double x) {
    return frame->left + at_axis_share(&frame->x, x) * frame->width;
}

static double y_at(const struct frame *frame, double y) {
    return frame->top + (1 - at_axis_share(&frame->y, y)) * frame->height;
}

/* ---- marks ---- */

static const char *stroke_of(enum at_look look) {
    static const char *const strokes[] = {
        [AT_LOOK_DOTS] = "stroke=\"#000\" stroke-width=\"1.6\" fill=\"none\"",
        [AT_LOOK_RINGS] = "stroke=\"#777\" stroke-width=\"1.2\" fill=\"none\"",
        [AT_LOOK_SOLID] = "stroke=\"#000\" stroke-width=\"1.6\" fill=\"none\"",
        [AT_LOOK_PALE] = "stroke=\"#888\" stroke-width=\"2.4\" fill=\"none\"",
        [AT_LOOK_DASHED] = "stroke=\"#000\" stroke-width=\"1\" stroke-dasharray=\"6 3\" fill=\"none\"",
        [AT_LOOK_DOTTED] = "stroke=\"#000\" stroke-width=\"1\" stroke-dasharray=\"1.5 3\" fill=\"none\"",
    };
    return strokes[look];
}

static void put_mark(FILE *f, enum at_look look, double x, double y) {
    if (look == AT_LOOK_DOTS)
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", x, y);
    if (look == AT_LOOK_RINGS)
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#fff\" stroke=\"#555\"/>\n", x, y);
}

static void put_axes(FILE *f, const struct at_plot *plot, const struct frame *frame, int labels_x, int labels_y) {
    static const char grid[] = "stroke=\"#ddd\" stroke-width=\"0.8\"";
    const double bottom = frame->top + frame->height, right = frame->left + frame->width;
    char text[32];
    for (int i = 0; frame->x.first + i * frame->x.step <= frame->x.last + 1e-9 * frame->x.step; i++) {
        const double share = at_axis_tick(&frame->x, frame->x.first + i * frame->x.step, text, sizeof text);
        const double x = frame->left + share * frame->width;
        at_svg_line(f, x, frame->top, x, bottom, grid);
        if (labels_x)
            at_svg_text(f, x, bottom + 14, "middle", "", text);
    }
    for (int i = 0; frame->y.first + i * frame->y.step <= frame->y.last + 1e-9 * frame->y.step; i++) {
        const double share = at_axis_tick(&frame->y, frame->y.first + i * frame->y.step, text, sizeof text);
        const double y = bottom - share * frame->height;
        at_svg_line(f, frame->left, y, right, y, grid);
        if (labels_y)
            at_svg_text(f, frame->left - 6, y + 4, "end", "", text);
    }
    if (at_axis_takes(plot->x_scale, plot->mark))
        at_svg_line(f, x_at(frame, plot->mark), frame->top, x_at(frame, plot->mark), bottom,
                    "stroke=\"#000\" stroke-width=\"0.8\" stroke-dasharray=\"2 2\"");
    at_svg_rect(f, frame->left, frame->top, frame->width, frame->height, "fill=\"none\" stroke=\"#000\"");
}

static int put_curve(FILE *f, const struct at_plot *plot, const struct frame *frame, const struct at_curve *c) {
    int points = 0;
    fprintf(f, "<path %s d=\"", stroke_of(c->look));
    for (int i = 0, pen = 0; i < c->n; i++) {
        const int draw = drawable(plot, c->x[i], c->y[i]);
        if (draw) {
            fprintf(f, "%s%.1f %.1f", pen ? " L" : " M", x_at(frame, c->x[i]), y_at(frame, c->y[i]));
            if (c->steps)
                fprintf(f, " H%.1f", x_at(frame, step_end(c, i)));
        }
        pen = draw;
        points += draw;
    }
    fputs("\"/>\n", f);
    for (int i = 0; i < c->n; i++)
        if (drawable(plot, c->x[i], c->y[i]))
            put_mark(f, c->look, x_at(frame, c->x[i]), y_at(frame, c->y[i]));
    return points;
}

static void put_panel(FILE *f, const struct at_plot *plot, const struct frame *frame, const struct at_panel *panel) {
    int measured = 0;
    at_svg_text(f, frame->left, frame->top - 6, "start", "font-weight=\"bold\"", panel->title);
    for (int c = panel->n - 1; c >= 0; c--) { /* measured curves lie above those of theory */
        const int points = put_curve(f, plot, frame, &panel->curve[c]);
        measured += panel->curve[c].look == plot->first ? points : 0;
    }
    if (!measured && plot->nothing)
        at_svg_text(f, frame->left + frame->width / 2, frame->top + frame->height - 10, "middle", "fill=\"#555\"",
                    plot->nothing);
}

static void put_titles(FILE *f, const struct at_plot *plot, double left, double top, double width, double height,
                       double below, double x) {
    char rotate[64];
    at_svg_text(f, left + width / 2, top + height + below, "middle", "", plot->x_title);
    snprintf(rotate, sizeof rotate, "transform=\"rotate(-90 %.0f %.1f)\"", x, top + height / 2);
    at_svg_text(f, x, top + height / 2, "middle", rotate, plot->y_title);
}

/* ---- a sheet ---- */

static void put_legend(FILE *f, const struct at_plot *plot) {
    double x = LEFT;
    for (int i = 0; i < AT_LOOKS; i++) {
        if (!plot->legend[i])
            continue;
        fprintf(f, "<path %s d=\"M%.1f 46 L%.1f 46\"/>\n", stroke_of((enum at_look)i), x, x + 30);
        put_mark(f, (enum at_look)i, x + 15, 46);
        at_svg_text(f, x + 36, 50, "start", "", plot->legend[i]);
        x += 60 + at_svg_width(plot->legend[i]);
    }
}

static double legend_width(const struct at_plot *plot) {
    double width = LEFT + RIGHT;
    for (int i = 0; i < AT_LOOKS; i++)
        width += plot->legend[i] ? 60 + at_svg_width(plot->legend[i]) : 0;
    return width;
}

void at_plot_sheet(FILE *f, const struct at_plot *plot) {
    const int columns = plot->n_panels < 1 ? 1 : plot->n_panels < COLUMNS ? plot->n_panels : COLUMNS;
    const int rows = (plot->n_panels + columns - 1) / columns;
    struct frame frame = frame_of(plot, PANEL_W, PANEL_H);
    const double body_w = columns * (PANEL_W + GAP_X) - GAP_X, body_h = rows * (PANEL_H + GAP_Y) - GAP_Y;
    const double width = fmax(LEFT + body_w + RIGHT,
                              fmax(legend_width(plot), LEFT + RIGHT + at_svg_width(plot->title) * 9 / AT_SVG_LETTER));
    at_svg_begin(f, width, TOP + body_h + BOTTOM, plot->title);
    at_svg_text(f, LEFT, 24, "start", "font-size=\"14\"", plot->title);
    put_legend(f, plot);
    for (int p = 0; p < plot->n_panels; p++) {
        const int row = p / columns;
        frame.left = LEFT + p % columns * (PANEL_W + GAP_X);
        frame.top = TOP + row * (PANEL_H + GAP_Y);
        put_axes(f, plot, &frame, p + columns >= plot->n_panels, p % columns == 0);
        put_panel(f, plot, &frame, &plot->panels[p]);
    }
    put_titles(f, plot, LEFT, TOP, body_w, body_h, 38, 18);
    at_svg_end(f);
}

/* ---- a panel by itself ---- */

void at_plot_panel(FILE *f, const struct at_plot *plot, int p) {
    struct frame frame = frame_of(plot, ALONE_W, ALONE_H);
    char title[sizeof plot->title + sizeof plot->panels[p].title + 4];
    frame.left = ALONE_LEFT;
    frame.top = ALONE_TOP;
    snprintf(title, sizeof title, "%s: %s", plot->title, plot->panels[p].title);
    at_svg_begin(f, ALONE_LEFT + ALONE_W + 18, ALONE_TOP + ALONE_H + ALONE_BOTTOM, title);
    put_axes(f, plot, &frame, 1, 1);
    put_panel(f, plot, &frame, &plot->panels[p]);
    put_titles(f, plot, ALONE_LEFT, ALONE_TOP, ALONE_W, ALONE_H, 32, 14);
    at_svg_end(f);
}

void at_plot_sample(FILE *f, enum at_look look) {
    at_svg_begin(f, 34, 12, "");
    fprintf(f, "<path %s d=\"M2 6 L32 6\"/>\n", stroke_of(look));
    put_mark(f, look, 17, 6);
    at_svg_end(f);
}
