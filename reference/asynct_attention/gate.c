/* From scores to the gate, exactly: ReLU, FIR along the keys, clamp.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "asynct_attention/asynct_attention.h"

void at_asynct_head_init(const struct at_problem *problem, int64_t head, struct at_asynct_head *out) {
    const struct at_params *params = &problem->params;
    *out = (struct at_asynct_head){
        .scale = (double)params->scale,
        .sigma = at_tensor_get(&problem->tensors[AT_ASYNCT_SIGMA], head),
        .gamma = at_tensor_get(&problem->tensors[AT_ASYNCT_GAMMA], head),
        .clip_min = (double)params->clip_min,
        .clip_max = (double)params->clip_max,
        .taps = (int)problem->sizes.taps,
        .relu_pre = params->relu_pre,
        .pooled = params->fir_form == AT_FIR_POOLED,
        .shrink = params->edge == AT_EDGE_SHRINK,
    };
    for (int j = 0; j < out->taps; j++)
        out->tap[j] = at_tensor_get(&problem->tensors[AT_ASYNCT_TAPS], head * out->taps + j);
}

/* A score that is not finite has no place in the gate: it stays visible as NaN, even where max(-inf, 0)
 * would hide it. */
double at_asynct_relu(const struct at_asynct_head *head, double s) {
    if (!isfinite(s))
        return (double)NAN;
    return head->relu_pre && s < 0 ? 0.0 : s;
}

double at_asynct_fir(const struct at_asynct_head *head, const double *s, int64_t t, int64_t first) {
    double sum = 0; /* of w_j r_{t-j}, or of r_{t-j} to be averaged */
    for (int j = 0; j < head->taps && t - j >= first; j++)
        sum += (head->pooled ? 1.0 : head->tap[j]) * at_asynct_relu(head, s[t - j]);
    if (!head->pooled)
        return sum;
    double divisor = head->shrink && t + 1 < head->taps ? (double)(t + 1) : (double)head->taps;
    return at_asynct_relu(head, s[t]) - head->sigma / divisor * sum;
}

double at_asynct_clamp(const struct at_asynct_head *head, double z) {
    if (isnan(z))
        return z;
    double p = z > 0 ? z : 0.0;
    p = p < head->clip_max ? p : head->clip_max;
    return p > head->clip_min ? p : head->clip_min;
}

void at_asynct_gate_row(const struct at_asynct_head *head, int64_t n, const double *dot, double *s, double *z,
                        double *p) {
    for (int64_t t = 0; t < n; t++)
        s[t] = head->scale * dot[t];
    for (int64_t t = 0; t < n; t++) {
        z[t] = at_asynct_fir(head, s, t, 0);
        p[t] = at_asynct_clamp(head, z[t]);
    }
}
