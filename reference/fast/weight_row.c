/* Softmax weights of a whole row at once: at_softmax_weights() with its comparisons and quotients vectorised.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The exponentials are libm's and the sum goes key by key as in the plain code. The maximum may be found in any order:
 * only a zero's sign depends on it, and no weight, sum or lse depends on that. */
#include <math.h>

#include "fast/vector.h"

enum { LANES = 8 };

static double larger(double x, double y) { return x > y ? x : y; } /* y unless x is a larger number */

AT_CLONES
static double scale_scores(int64_t n, double scale, const double *restrict dot, double *restrict s) {
    double top[LANES], max = -(double)INFINITY;
    const int64_t whole = n - n % LANES;
    for (int i = 0; i < LANES; i++)
        top[i] = -(double)INFINITY;
    for (int64_t t = 0; t < whole; t += LANES)
        for (int i = 0; i < LANES; i++) {
            s[t + i] = scale * dot[t + i];
            top[i] = larger(s[t + i], top[i]);
        }
    for (int64_t t = whole; t < n; t++) {
        s[t] = scale * dot[t];
        max = larger(s[t], max);
    }
    for (int i = 0; i < LANES; i++)
        max = larger(top[i], max);
    return max;
}

AT_CLONES
static void divide(int64_t n, double divisor, double *restrict p) {
    for (int64_t t = 0; t < n; t++)
        p[t] /= divisor;
}

/* Scores that are more than a product: tanh is libm's too. */
static double form_scores(int64_t n, const struct at_softmax_form *form, const double *dot, double *s) {
    double max = -(double)INFINITY;
    for (int64_t t = 0; t < n; t++) {
        s[t] = at_softmax_score_of(form, dot[t], t);
        max = larger(s[t], max);
    }
    return max;
}

void at_fast_weight_row(int64_t n, const struct at_softmax_form *form, const double *dot, double *s, double *p,
                        struct at_softmax_row *row) {
    const double max = at_softmax_plain(form) ? scale_scores(n, form->scale, dot, s) : form_scores(n, form, dot, s),
                 shift = max > -(double)INFINITY ? max : 0;
    double sum = 0;
    for (int64_t t = 0; t < n; t++) {
        p[t] = exp(s[t] - shift);
        sum += p[t];
    }
    divide(n, sum, p);
    *row = (struct at_softmax_row){ .n = n, .max = max, .sum = sum, .lse = max + log(sum) };
}
