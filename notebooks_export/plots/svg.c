/* The marks of SVG.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/plots/svg.h"

#include <math.h>
#include <string.h>

static double tenth(double x) { return round(10 * x) / 10; }

void at_svg_begin(FILE *f, double width, double height, const char *title) {
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"%d\"",
            width, height, width, height, AT_SVG_FONT);
    if (*title) {
        fputs(" role=\"img\" aria-label=\"", f);
        at_svg_escape(f, title);
        fputs("\"", f);
    } else {
        fputs(" aria-hidden=\"true\"", f);
    }
    fputs(">\n", f);
    at_svg_rect(f, 0, 0, width, height, "fill=\"#fff\"");
}

void at_svg_end(FILE *f) { fputs("</svg>\n", f); }

/* U+FFFE and U+FFFF, which XML does not allow. */
static int is_noncharacter(const char *text) {
    return strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0;
}

void at_svg_escape(FILE *f, const char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '&')
            fputs("&amp;", f);
        else if (c == '<')
            fputs("&lt;", f);
        else if (c == '>')
            fputs("&gt;", f);
        else if (c == '"')
            fputs("&quot;", f);
        else if (c == '\'')
            fputs("&#39;", f);
        else if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f)
            fputc('?', f);
        else if (c == 0xef && is_noncharacter(text)) {
            fputc('?', f);
            text += 2;
        } else
            fputc(c, f);
    }
}

void at_svg_text(FILE *f, double x, double y, const char *anchor, const char *attributes, const char *text) {
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s%s>", x, y, anchor, *attributes ? " " : "", attributes);
    at_svg_escape(f, text);
    fputs("</text>\n", f);
}

void at_svg_line(FILE *f, double x0, double y0, double x1, double y1, const char *attributes) {
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x0, y0, x1, y1, attributes);
}

void at_svg_rect(FILE *f, double x, double y, double width, double height, const char *attributes) {
    fprintf(f, "<rect x=\"%.6g\" y=\"%.6g\" width=\"%.6g\" height=\"%.6g\" %s/>\n", tenth(x), tenth(y), tenth(width),
            tenth(height), attributes);
}

double at_svg_width(const char *text) {
    size_t letters = 0;
    for (; *text; text++)
        letters += ((unsigned char)*text & 0xc0) != 0x80; /* a byte that goes on with a character is no letter */
    return (double)letters * AT_SVG_LETTER;
}
