/* Fields of CSV as RFC 4180 has them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/csv_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void at_csv_text(FILE *f, const char *text) {
    const size_t n = strlen(text);
    if (!strpbrk(text, ",\"\r\n") && !(n && (text[0] == ' ' || text[n - 1] == ' '))) {
        fputs(text, f);
        return;
    }
    putc_unlocked('"', f);
    for (const char *quote; (quote = strchr(text, '"')); text = quote + 1) {
        fwrite(text, 1, (size_t)(quote + 1 - text), f);
        putc_unlocked('"', f);
    }
    fputs(text, f);
    putc_unlocked('"', f);
}

void at_csv_integer(FILE *f, uint64_t size, int is_negative) {
    char digits[24], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + size % 10);
    while (size /= 10);
    if (is_negative)
        *--at = '-';
    for (; at < digits + sizeof digits; at++)
        putc_unlocked(*at, f);
}

void at_number_text(double value, char *text, size_t size) {
    *text = 0;
    if (isnan(value))
        return;
    /* formats that stand for themselves: an archive has tens of millions of numbers, and 17 digits give every one back */
    snprintf(text, size, "%.15g", value);
    if (strtod(text, NULL) == value)
        return;
    snprintf(text, size, "%.16g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, size, "%.17g", value);
}

void at_csv_number(FILE *f, double value) {
    char text[32];
    const int64_t whole = fabs(value) < 1e15 ? (int64_t)value : 0;
    if ((double)whole == value && whole != 0) { /* as %g has it; 0 may have a sign */
        at_csv_integer(f, whole < 0 ? -(uint64_t)whole : (uint64_t)whole, whole < 0);
        return;
    }
    at_number_text(value, text, sizeof text);
    fputs(text, f);
}
