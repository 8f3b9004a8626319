/* The marks of SVG: texts, lines, rectangles, written to a stream.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SVG_H
#define AT_SVG_H

#include <stdio.h>

/* Pixels. A sans-serif letter of that size takes AT_SVG_LETTER, generously. */
enum { AT_SVG_FONT = 11, AT_SVG_LETTER = 7 };

/* Opens an image on white paper; `title` is what programs that read aloud say ("" for decoration). */
void at_svg_begin(FILE *f, double width, double height, const char *title);
void at_svg_end(FILE *f);

/* Text for the content or a quoted attribute of XML and HTML. Characters that neither can hold become '?'. */
void at_svg_escape(FILE *f, const char *text);
/* anchor: "start", "middle" or "end"; attributes: further ones, "" for none. */
void at_svg_text(FILE *f, double x, double y, const char *anchor, const char *attributes, const char *text);
void at_svg_line(FILE *f, double x0, double y0, double x1, double y1, const char *attributes);
void at_svg_rect(FILE *f, double x, double y, double width, double height, const char *attributes);
/* Pixels that a text takes, at most. */
double at_svg_width(const char *text);

#endif
