/* Plots as SVG files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verify/atomic_file.h"

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
enum { FONT = 11, LETTER = 7 }; /* pixels; the width is of a sans-serif letter of that size, generously */

/* ---- marks ---- */

static void open_svg(FILE *f, double width, double height) {
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"%d\">\n<rect width=\"%.0f\" "
            "height=\"%.0f\" "
            "fill=\"#fff\"/>\n",
            width, height, width, height, FONT, width, height);
}

/* anchor: "start", "middle" or "end". */
static void put_text(FILE *f, double x, double y, const char *anchor, const char *attributes, const char *text) {
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s%s>", x, y, anchor, *attributes ? " " : "", attributes);
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        default:
            fputc(*text, f);
        }
    fputs("</text>\n", f);
}

static void put_line(FILE *f, double x0, double y0, double x1, double y1, const char *stroke) {
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x0, y0, x1, y1, stroke);
}

static const char *stroke_of(enum at_look look) {
    static const char *const strokes[] = {
        "stroke=\"#000\" stroke-width=\"1.6\" fill=\"none\"", "stroke=\"#777\" stroke-width=\"1.2\" fill=\"none\"",
        "stroke=\"#000\" stroke-width=\"1\" stroke-dasharray=\"6 3\" fill=\"none\"",
        "stroke=\"#000\" stroke-width=\"1\" stroke-dasharray=\"1.5 3\" fill=\"none\""
    };
    return strokes[look];
}

static void put_mark(FILE *f, enum at_look look, double x, double y) {
    if (look == AT_LOOK_DOTS)
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", x, y);
    if (look == AT_LOOK_RINGS)
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#fff\" stroke=\"#555\"/>\n", x, y);
}

/* ---- axes ---- */

/* Powers that an axis runs over, and every how many there is a tick. */
struct axis {
    int low, high, every;
};

static struct axis axis_of(double least, double most, double base, int ticks) {
    struct axis a = { 0, 1, 1 };
    if (least <= most) {
        a.low = (int)floor(log(least) / log(base) + 1e-9);
        a.high = (int)ceil(log(most) / log(base) - 1e-9);
    }
    if (a.high == a.low)
        a.high++;
    a.every = (a.high - a.low + ticks - 1) / ticks;
    return a;
}

struct frame {
    struct axis x, y;
    int percent;
};

static int drawable(const struct frame *frame, double x, double y) {
    return x > 0 && isfinite(x) && isfinite(y) && (frame->percent ? y >= 0 : y > 0);
}

static struct frame frame_of(const struct at_plot *plot) {
    struct frame frame = { .percent = plot->percent };
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    for (int p = 0; p < plot->n_panels; p++)
        for (int c = 0; c < plot->panels[p].n; c++)
            for (int i = 0; i < plot->panels[p].curve[c].n; i++) {
                const double x = plot->panels[p].curve[c].x[i], y = plot->panels[p].curve[c].y[i];
                if (!drawable(&frame, x, y))
                    continue;
                x0 = fmin(x0, x);
                x1 = fmax(x1, x);
                y0 = fmin(y0, y);
                y1 = fmax(y1, y);
            }
    const int digits = x1 >= 1 ? (int)log10(x1) + 2 : 1; /* the axis may end at the next power of two */
    frame.x = axis_of(x0, x1, 2, PANEL_W / (LETTER * (digits + 1)));
    frame.y = plot->percent ? (struct axis){ 0, 4, 1 } : axis_of(y0, y1, 10, 5); /* of percent: quarters */
    return frame;
}

static double x_at(const struct frame *frame, double left, double x) {
    return left + (log2(x) - frame->x.low) / (frame->x.high - frame->x.low) * PANEL_W;
}

static double y_at(const struct frame *frame, double top, double y) {
    const double share = frame->percent ? y : (log10(y) - frame->y.low) / (frame->y.high - frame->y.low);
    return top + (1 - share) * PANEL_H;
}

static void put_axes(FILE *f, const struct frame *frame, double left, double top, int labels_x, int labels_y) {
    static const char grid[] = "stroke=\"#ddd\" stroke-width=\"0.8\"";
    char text[32];
    for (int k = frame->x.low; k <= frame->x.high; k += frame->x.every) {
        const double x = x_at(frame, left, ldexp(1, k));
        put_line(f, x, top, x, top + PANEL_H, grid);
        snprintf(text, sizeof text, "%.0f", ldexp(1, k));
        if (labels_x)
            put_text(f, x, top + PANEL_H + 14, "middle", "", text);
    }
    for (int k = frame->y.low; k <= frame->y.high; k += frame->y.every) {
        const double at = y_at(frame, top, frame->percent ? k / 4.0 : pow(10, k));
        put_line(f, left, at, left + PANEL_W, at, grid);
        snprintf(text, sizeof text, frame->percent ? "%d %%" : "1e%d", frame->percent ? 25 * k : k);
        if (labels_y)
            put_text(f, left - 6, at + 4, "end", "", text);
    }
    fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#000\"/>\n", left, top,
            PANEL_W, PANEL_H);
}

/* ---- panels ---- */

static int put_curve(FILE *f, const struct frame *frame, const struct at_curve *c, double left, double top) {
    int points = 0;
    fprintf(f, "<path %s d=\"", stroke_of(c->look));
    for (int i = 0, pen = 0; i < c->n; i++) {
        const int draw = drawable(frame, c->x[i], c->y[i]);
        if (draw)
            fprintf(f, "%s%.1f %.1f", pen ? " L" : " M", x_at(frame, left, c->x[i]), y_at(frame, top, c->y[i]));
        pen = draw;
        points += draw;
    }
    fputs("\"/>\n", f);
    for (int i = 0; i < c->n; i++)
        if (drawable(frame, c->x[i], c->y[i]))
            put_mark(f, c->look, x_at(frame, left, c->x[i]), y_at(frame, top, c->y[i]));
    return points;
}

static void put_panel(FILE *f, const struct at_plot *plot, const struct frame *frame, int p, int columns) {
    const struct at_panel *panel = &plot->panels[p];
    const int row = p / columns;
    const double left = LEFT + p % columns * (PANEL_W + GAP_X), top = TOP + row * (PANEL_H + GAP_Y);
    int measured = 0;
    put_axes(f, frame, left, top, p + columns >= plot->n_panels, p % columns == 0);
    put_text(f, left, top - 6, "start", "font-weight=\"bold\"", panel->title);
    for (int c = panel->n - 1; c >= 0; c--) { /* measured curves lie above those of theory */
        const int points = put_curve(f, frame, &panel->curve[c], left, top);
        measured += panel->curve[c].look == AT_LOOK_DOTS ? points : 0;
    }
    if (!measured)
        put_text(f, left + PANEL_W / 2.0, top + PANEL_H - 10, "middle", "fill=\"#555\"",
                 plot->percent ? "nothing to show" : "no error, or no finite result");
}

static void put_legend(FILE *f, const struct at_plot *plot) {
    double x = LEFT;
    for (int i = 0; i < AT_PLOT_CURVES; i++) {
        if (!plot->legend[i])
            continue;
        fprintf(f, "<path %s d=\"M%.1f 46 L%.1f 46\"/>\n", stroke_of((enum at_look)i), x, x + 30);
        put_mark(f, (enum at_look)i, x + 15, 46);
        put_text(f, x + 36, 50, "start", "", plot->legend[i]);
        x += 60 + LETTER * (double)strlen(plot->legend[i]);
    }
}

static double legend_width(const char *const *legend, int n) {
    double width = LEFT + RIGHT;
    for (int i = 0; i < n; i++)
        width += legend[i] ? 60 + LETTER * (double)strlen(legend[i]) : 0;
    return width;
}

at_status at_svg_panels(const struct at_plot *plot, const char *path) {
    const int columns = plot->n_panels < 1 ? 1 : plot->n_panels < COLUMNS ? plot->n_panels : COLUMNS;
    const int rows = (plot->n_panels + columns - 1) / columns;
    const struct frame frame = frame_of(plot);
    const double body_w = LEFT + columns * (PANEL_W + GAP_X) - GAP_X + RIGHT, body_h = rows * (PANEL_H + GAP_Y) - GAP_Y;
    const double width =
        fmax(body_w, fmax(legend_width(plot->legend, AT_PLOT_CURVES), LEFT + RIGHT + 9 * (double)strlen(plot->title)));
    struct at_atomic_file file;
    char rotate[64];
    AT_TRY(at_atomic_open(path, &file));
    FILE *f = file.stream;
    open_svg(f, width, TOP + body_h + BOTTOM);
    put_text(f, LEFT, 24, "start", "font-size=\"14\"", plot->title);
    put_legend(f, plot);
    for (int p = 0; p < plot->n_panels; p++)
        put_panel(f, plot, &frame, p, columns);
    put_text(f, LEFT + (body_w - LEFT - RIGHT) / 2, TOP + body_h + 38, "middle", "", plot->x_title);
    snprintf(rotate, sizeof rotate, "transform=\"rotate(-90 18 %.1f)\"", TOP + body_h / 2);
    put_text(f, 18, TOP + body_h / 2, "middle", rotate, plot->y_title);
    fputs("</svg>\n", f);
    return at_atomic_commit(&file);
}

/* ---- bars ---- */

enum { BAR_W = 480, BAR_ROW = 30, BAR_LEFT = 150 };

static void put_bar(FILE *f, double share, const char *fill, double top) {
    char text[32];
    if (!isfinite(share))
        return;
    fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"10\" fill=\"%s\" stroke=\"#000\"/>\n", BAR_LEFT, top,
            share * BAR_W, fill);
    snprintf(text, sizeof text, "%.1f %%", 100 * share);
    put_text(f, BAR_LEFT + share * BAR_W + 5, top + 9, "start", "font-size=\"10\"", text);
}

at_status at_svg_bars(const struct at_bars *bars, const char *path) {
    static const char *const fills[] = { "#ccc", "#333" };
    const double height = TOP + (double)bars->n * BAR_ROW;
    struct at_atomic_file file;
    char text[16];
    AT_TRY(at_atomic_open(path, &file));
    FILE *f = file.stream;
    open_svg(f, fmax(BAR_LEFT + BAR_W + 80, BAR_LEFT + 9 * (double)strlen(bars->title)), height + BOTTOM);
    put_text(f, 20, 24, "start", "font-size=\"14\"", bars->title);
    double x = 20;
    for (int i = 0; i < 2; i++) {
        fprintf(f, "<rect x=\"%.1f\" y=\"41\" width=\"24\" height=\"10\" fill=\"%s\" stroke=\"#000\"/>\n", x, fills[i]);
        put_text(f, x + 30, 50, "start", "", bars->legend[i]);
        x += 60 + LETTER * (double)strlen(bars->legend[i]);
    }
    for (int k = 0; k <= 4; k++) {
        const double at = BAR_LEFT + k / 4.0 * BAR_W;
        put_line(f, at, TOP - 8, at, height, "stroke=\"#ddd\"");
        snprintf(text, sizeof text, "%d %%", 25 * k);
        put_text(f, at, height + 16, "middle", "", text);
    }
    for (int i = 0; i < bars->n; i++) {
        const double top = TOP + (double)i * BAR_ROW;
        put_text(f, BAR_LEFT - 8, top + 14, "end", "", bars->bars[i].name);
        put_bar(f, bars->bars[i].share[0], fills[0], top);
        put_bar(f, bars->bars[i].share[1], fills[1], top + 11);
    }
    put_text(f, BAR_LEFT + BAR_W / 2.0, height + 38, "middle", "", bars->x_title);
    fputs("</svg>\n", f);
    return at_atomic_commit(&file);
}
