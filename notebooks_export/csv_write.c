/* Fields of CSV as RFC 4180 has them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/csv_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_BITS = 10, KNOWN = 1 << KNOWN_BITS };

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
    const int64_t whole = fabs(value) < 1e15 ? (int64_t)value : 0;
    if ((double)whole == value && whole != 0) { /* as %g has it; 0 may have a sign */
        at_csv_integer(f, whole < 0 ? -(uint64_t)whole : (uint64_t)whole, whole < 0);
        return;
    }
    /* Numbers of neighbours repeat: what the ledger counts of a case is the same for its variants. */
    static struct {
        uint64_t bits;
        char text[32];
    } known[KNOWN];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const size_t at = (size_t)((bits * 0x9e3779b97f4a7c15u) >> (64 - KNOWN_BITS));
    if (known[at].bits != bits || !known[at].text[0]) {
        known[at].bits = bits;
        at_number_text(value, known[at].text, sizeof known[at].text);
    }
    fputs(known[at].text, f);
}
