/* UTF-8 text: made valid, measured, fitted into columns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEXT_H
#define AT_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Bytes that are no valid UTF-8 become '?'. Never longer; a second call changes nothing. */
void at_text_clean(char *text);
/* Code points of valid UTF-8: columns on a terminal, for the scripts in use here. */
int at_text_width(const char *text);
/* Bytes of the character that starts at `text` (1 for ASCII), 0 when it is no valid UTF-8. */
size_t at_text_char(const char *text);
/* x for printf: a NaN loses its sign, which says nothing and reads as a fault ("want -nan"). */
double at_text_nan(double x);
/* Bytes of the first line when `text` is broken into lines of at most `width` columns: at a space where there is one, in
 * the middle of a word that is longer than a line. *next: where the second begins, or the end. */
size_t at_text_line(const char *text, int width, const char **next);
/* Prints in exactly `width` columns: padded, or cut with ".." at the end; left- or right-aligned. Control
 * characters are printed as '?', so that no text can move the cursor or break a line. */
void at_text_fit(FILE *out, const char *text, int width, int right);

#endif
