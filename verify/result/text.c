/* UTF-8 text: made valid, measured, fitted into columns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/result/text.h"

#include <math.h>
#include <string.h>

/* RFC 3629: shortest forms only, no surrogates, nothing beyond U+10FFFF. */
size_t at_text_char(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
        return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

void at_text_clean(char *text) {
    while (*text) {
        if ((unsigned char)*text < 0x80) { /* nearly all of it */
            text++;
            continue;
        }
        size_t n = at_text_char(text);
        if (n == 0) {
            *text = '?';
            n = 1;
        }
        text += n;
    }
}

int at_text_width(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

double at_text_nan(double x) { return isnan(x) ? (double)NAN : x; }

size_t at_text_line(const char *text, int width, const char **next) {
    size_t at = 0, space = 0;
    for (int column = 0; text[at] && column < (width > 1 ? width : 1); column++) {
        const size_t n = at_text_char(text + at);
        if (text[at] == ' ')
            space = at;
        at += n ? n : 1;
    }
    const size_t end = text[at] == 0 || text[at] == ' ' || space == 0 ? at : space;
    *next = text + end + strspn(text + end, " ");
    return end;
}

static void put_spaces(FILE *out, int n) {
    if (n > 0)
        fprintf(out, "%*s", n, "");
}

void at_text_fit(FILE *out, const char *text, int width, int right) {
    int have = at_text_width(text), cut = have > width;
    int keep = cut ? (width > 2 ? width - 2 : 0) : have;
    if (right && !cut)
        put_spaces(out, width - have);
    for (int column = 0; *text && column < keep; column++) {
        size_t n = at_text_char(text);
        /* C0, DEL and the C1 controls, which are two bytes in UTF-8 */
        int control = (unsigned char)*text < 0x20 || *text == 0x7f || n == 0 ||
                      ((unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0);
        if (control)
            fputc('?', out);
        else
            fwrite(text, 1, n, out);
        text += n ? n : 1;
    }
    if (cut)
        fprintf(out, "%.*s", width, "..");
    else if (!right)
        put_spaces(out, width - have);
}
