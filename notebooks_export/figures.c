/* What the plots of an archive have in common.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/figures.h"

#include <string.h>

int at_figure_index(const struct at_frame_column *column, const int64_t *first, int n, int64_t row) {
    for (int i = 0; i < n; i++)
        if (strcmp(at_frame_text(column, first[i]), at_frame_text(column, row)) == 0)
            return i;
    return -1;
}

int at_figure_distinct(const struct at_frame_column *column, int64_t rows, int64_t *first, int most) {
    int n = 0;
    for (int64_t i = 0; i < rows && n < most; i++)
        if (at_figure_index(column, first, n, i) < 0)
            first[n++] = i;
    return n;
}

void at_figure_file_name(char *name) {
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    for (; *name; name++)
        if (!strchr(fine, *name))
            *name = '-';
}
