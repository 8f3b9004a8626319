/* From scores to softmax weights, exactly (in double).
 * SPDX-License-Identifier: Apache-2.0 */
#include "softmax_attention/softmax_attention.h"

#include <math.h>

/* Scales the scores and finds the maximum of those that are numbers: a NaN makes the sum NaN by its own weight. */
static double scale_scores(int64_t n, double scale, const double *dot, double *s) {
    double max = -INFINITY;
    for (int64_t t = 0; t < n; t++) {
        s[t] = scale * dot[t];
        if (s[t] > max)
            max = s[t];
    }
    return max;
}

void at_softmax_weights(int64_t n, double scale, const double *dot, double *s, double *p, struct at_softmax_row *row) {
    double max = scale_scores(n, scale, dot, s), sum = 0;
    /* Nothing but -inf: exp(-inf) = 0 for each, whatever is subtracted; -inf - -inf would say NaN. */
    double shift = max > -INFINITY ? max : 0;
    for (int64_t t = 0; t < n; t++) {
        p[t] = exp(s[t] - shift);
        sum += p[t];
    }
    for (int64_t t = 0; t < n; t++)
        p[t] /= sum;
    *row = (struct at_softmax_row){ .n = n, .max = max, .sum = sum, .lse = max + log(sum) };
}
