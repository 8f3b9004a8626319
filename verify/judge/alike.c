/* How much of a sum of rounding errors may be of one sign, when values lie so close together that they err alike.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/alike.h"

#include <math.h>

void at_alike_add(struct at_alike *a, double value, double u, double moved) {
    const double position = log2(fabs(value)) / log2(1 + u);
    /* the second width is twice the first */
    for (int w = 0; w < AT_ALIKE_WIDTHS; w++) {
        const double cells = w ? position / 2 : position, place = cells - floor(cells);
        a->error[w][(int)(place * AT_ALIKE_PLACES) % AT_ALIKE_PLACES] += (float)moved;
    }
}

void at_alike_merge(struct at_alike *a, const struct at_alike *more) {
    for (int w = 0; w < AT_ALIKE_WIDTHS; w++)
        for (int i = 0; i < AT_ALIKE_PLACES; i++)
            a->error[w][i] += more->error[w][i];
}

/* Across a cell the error falls evenly from one half of the cell to minus the other. Shifted by one place, all errors change
 * by one step, but for those of the place that enters the next cell. */
double at_alike_worst(const struct at_alike *a) {
    const int n = AT_ALIKE_PLACES;
    double worst = 0;
    for (int w = 0; w < AT_ALIKE_WIDTHS; w++) {
        double total = 0, sum = 0;
        for (int i = 0; i < n; i++) {
            total += (double)a->error[w][i];
            sum += (double)a->error[w][i] * (1 - 2.0 * i / (n - 1));
        }
        for (int i = n - 1; i >= 0; i--) {
            worst = fmax(worst, fabs(sum));
            sum += 2.0 * n / (n - 1) * (double)a->error[w][i] - 2.0 / (n - 1) * total;
        }
    }
    return worst;
}
