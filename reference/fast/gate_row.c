/* AsyncT's gate for a whole row at once: at_asynct_gate_row() in passes that vectorise.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Branches of the plain code are selections here, both sides always computed, and the filter's sum grows tap by tap for
 * all keys instead of key by key for all taps: for each key the terms still come in the order j = 0, 1, .. from +0. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "fast/vector.h"

/* s and r; r lies at least at `floor`: 0 with relu_pre, -inf without. */
AT_CLONES
static void scores(int64_t n, double scale, double floor, const double *restrict dot, double *restrict s,
                   double *restrict r) {
    for (int64_t t = 0; t < n; t++) {
        const double x = scale * dot[t], above = x < floor ? floor : x;
        s[t] = x;
        r[t] = fabs(x) <= DBL_MAX ? above : (double)NAN;
    }
}

/* sum[t] for t >= first of w r[t-j] over the taps. */
AT_CLONES
static void filter(int64_t first, int64_t n, int taps, const double *restrict w, const double *restrict r,
                   double *restrict sum) {
    for (int64_t t = first; t < n; t++)
        sum[t] = 0.0 + w[0] * r[t];
    for (int j = 1; j < taps; j++)
        for (int64_t t = first; t < n; t++)
            sum[t] += w[j] * r[t - j];
}

/* From r to z, in place. */
AT_CLONES
static void subtract(int64_t first, int64_t n, double share, const double *restrict sum, double *restrict z) {
    for (int64_t t = first; t < n; t++)
        z[t] -= share * sum[t];
}

AT_CLONES
static void clamp(int64_t n, double low, double high, const double *restrict z, double *restrict p) {
    for (int64_t t = 0; t < n; t++) {
        const double x = z[t];
        double y = x > 0 ? x : 0.0;
        y = y < high ? y : high;
        y = y > low ? y : low;
        p[t] = x == x ? y : x;
    }
}

void at_fast_gate_row(const struct at_asynct_head *head, int64_t n, const double *dot, double *s, double *z,
                      double *p) {
    static const double ones[AT_ASYNCT_MAX_TAPS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const int64_t edge = n < head->taps - 1 ? n : head->taps - 1; /* keys whose window begins before key 0 */
    scores(n, head->scale, head->relu_pre ? 0.0 : -(double)INFINITY, dot, s, z);
    filter(edge, n, head->taps, head->pooled ? ones : head->tap, z, p);
    if (head->pooled)
        subtract(edge, n, head->sigma / (double)head->taps, p, z);
    else
        memcpy(z + edge, p + edge, (size_t)(n - edge) * sizeof *z);
    for (int64_t t = 0; t < edge; t++)
        z[t] = at_asynct_fir(head, s, t, 0);
    clamp(n, head->clip_min, head->clip_max, z, p);
}
