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
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

void at_number_text(double value, char *text, size_t size) {
    *text = 0;
    if (isnan(value))
        return;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

void at_csv_number(FILE *f, double value) {
    char text[32];
    at_number_text(value, text, sizeof text);
    fputs(text, f);
}
