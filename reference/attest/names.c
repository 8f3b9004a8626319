/* Names with a number; the nearest known name, by restricted edit distance (optimal string alignment).
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/names.h"

#include <ctype.h>
#include <string.h>

/* Longer words are not misspelt names; they get no suggestion. */
enum { LONGEST = 64 };

static int least(int a, int b) { return a < b ? a : b; }

static int same_letter(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

/* Edits that turn a (n letters) into b (m letters); n, m <= LONGEST. */
static int edits(const char *a, int n, const char *b, int m) {
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= m; j++)
        above[j] = before[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = above[j - 1] + !same_letter(a[i - 1], b[j - 1]);
            best = least(best, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                best = least(best, before[j - 2] + 1);
            row[j] = best;
        }
        int *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[m];
}

const char *at_nearest_name(const char *wanted, const char *const *names, int n) {
    const char *nearest = NULL;
    int fewest = LONGEST;
    size_t length = strlen(wanted);
    if (length == 0 || length > LONGEST)
        return NULL;
    for (int i = 0; i < n; i++) {
        size_t other = names[i] ? strlen(names[i]) : 0;
        if (other == 0 || other > LONGEST)
            continue;
        int longer = (int)(length > other ? length : other);
        int allowed = longer / 3 > 1 ? longer / 3 : 1;
        int distance = edits(wanted, (int)length, names[i], (int)other);
        if (distance <= allowed && distance < longer && distance < fewest) {
            fewest = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

const char *at_name_past_number(const char *name, const char *prefix, size_t least_digits) {
    const size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0)
        return NULL;
    const size_t digits = strspn(name + n, "0123456789");
    return digits >= least_digits ? name + n + digits : NULL;
}
