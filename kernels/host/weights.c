/* From dot products to P for the C baselines: scale, softcap and bias, AsyncT's filter and gate, softmax's exponentials.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/host/attention.h"

#include <math.h>

static const float *floats(const struct at_problem *problem, int tensor) {
    return (const float *)problem->tensors[tensor].data;
}

struct at_host_scores at_host_scores(const struct at_problem *problem, const struct at_host_tensors *tensors,
                                     const struct at_host_request *request, int64_t i, int64_t head) {
    const float scale = problem->params.scale, cap = tensors->softcap ? tensors->softcap(problem) : 0.0f;
    const int biased = tensors->slopes >= 0 && at_tensor_count(&problem->tensors[tensors->slopes]) > 0;
    return (struct at_host_scores){ .scale = scale,
                                    .cap = cap,
                                    .to_cap = cap > 0 ? scale / cap : 0.0f,
                                    .slope = biased ? floats(problem, tensors->slopes)[head] : 0.0f,
                                    .place = request->sk - request->sq + i };
}

float at_host_score(const struct at_host_scores *scores, float dot, int64_t t) {
    const float s = scores->cap > 0 ? scores->cap * tanhf(dot * scores->to_cap) : dot * scores->scale;
    if (scores->slope == 0)
        return s;
    const float bias = scores->slope * (float)(t - scores->place);
    return s + bias;
}

struct at_host_gate at_host_gate(const struct at_problem *problem, const struct at_host_tensors *tensors, int64_t head,
                                 const struct at_numerics *numerics) {
    const struct at_params *p = &problem->params;
    const int64_t taps = problem->sizes.taps;
    return (struct at_host_gate){ .sigma = floats(problem, tensors->sigma)[head],
                                  .gamma = floats(problem, tensors->gamma)[head],
                                  .clip_min = p->clip_min,
                                  .clip_max = p->clip_max,
                                  .taps = (int)taps,
                                  .pooled = p->fir_form == AT_FIR_POOLED,
                                  .shrink = p->edge == AT_EDGE_SHRINK,
                                  .relu_pre = p->relu_pre,
                                  .sum_first = numerics->fir_order == AT_FIR_ORDER_POOLED,
                                  .fused = numerics->fir_fma,
                                  .tap = floats(problem, tensors->taps) + head * taps };
}

/* z + x y, in one rounding or two. */
static float add_product(const struct at_host_gate *gate, float z, float x, float y) {
    if (gate->fused)
        return fmaf(x, y, z);
    float product = x * y;
    return z + product;
}

/* Key t's filter output; r points at key t, the `reach` keys before it exist. */
static float filter(const struct at_host_gate *gate, const float *r, int64_t t, int reach) {
    int window = gate->taps; /* keys that share the average */
    if (gate->pooled && gate->shrink && t + 1 < window)
        window = (int)(t + 1);
    if (gate->sum_first) {
        float sum = r[0];
        for (int j = 1; j <= reach; j++)
            sum += r[-j];
        return add_product(gate, r[0], -(gate->sigma / (float)window), sum);
    }
    if (window == gate->taps) {
        float z = gate->tap[0] * r[0];
        for (int j = 1; j <= reach; j++)
            z = add_product(gate, z, gate->tap[j], r[-j]);
        return z;
    }
    /* a shrunken window has taps of its own */
    float share = gate->sigma / (float)window, first = 1.0f - share, z = first * r[0];
    for (int j = 1; j <= reach; j++)
        z = add_product(gate, z, -share, r[-j]);
    return z;
}

void at_host_apply_gate(const struct at_host_gate *gate, int64_t first, int64_t halo, int64_t n, float *score,
                        float *p) {
    for (int64_t i = 0; i < n && gate->relu_pre; i++)
        score[i] = fmaxf(score[i], 0.0f);
    for (int64_t i = halo; i < n; i++) {
        int64_t t = first + i;
        int reach = t < gate->taps ? (int)t : gate->taps - 1;
        float z = filter(gate, score + i, t, reach);
        float gated = fmaxf(fminf(fmaxf(z, 0.0f), gate->clip_max), gate->clip_min);
        p[i] = gate->gamma * gated;
    }
}

struct at_host_softmax at_host_exponentials(int64_t n, const float *score, float *p) {
    struct at_host_softmax row = { .max = -INFINITY };
    for (int64_t i = 0; i < n; i++)
        row.max = fmaxf(row.max, score[i]);
    /* nothing but -inf: each weight is exp(-inf) = 0, where -inf - -inf would give NaN */
    float shift = row.max == -INFINITY ? 0.0f : row.max;
    for (int64_t i = 0; i < n; i++) {
        p[i] = expf(score[i] - shift);
        row.sum += p[i];
    }
    return row;
}

float at_host_lse(const struct at_host_softmax *softmax, int64_t keys) {
    return keys > 0 ? softmax->max + logf(softmax->sum) : -INFINITY;
}
