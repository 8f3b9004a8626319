/* Fields of CSV as RFC 4180 has them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CSV_WRITE_H
#define AT_CSV_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A text, in quotes where it holds a comma, a quote, a line break, or a blank at an end. */
void at_csv_text(FILE *f, const char *text);
/* `size` in decimal digits, with a sign in front. */
void at_csv_integer(FILE *f, uint64_t size, int is_negative);
/* The shortest of %.15g, %.16g and %.17g that reads back as the same number; nothing for NaN; inf and -inf. */
void at_csv_number(FILE *f, double value);
/* The same as text; at most 32 bytes. */
void at_number_text(double value, char *text, size_t size);

#endif
