/* Sampling from the k largest logits: one row after the other, kept ranks in a sorted list.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: f32: a difference, a product with 1 / T, expf (within one unit in the last place), one chain of sums; the threshold
 * is rounded.
 * Launch: one thread; scratch: 8 bytes a rank.
 * Limits: none.
 * Source: ours. */
#include "top_k/top_k.h"

#include <math.h>

#include "attest/kernel.h"

struct rank {
    float logit;
    int32_t place;
};

static int is_larger(float a, float b) { return isnan(a) ? !isnan(b) : a > b; }

/* Places ascend, so that one as large as the last of the list comes behind it. */
static void keep(struct rank *list, int64_t *n, int64_t kept, struct rank x) {
    if (*n == kept && !is_larger(x.logit, list[kept - 1].logit))
        return;
    int64_t at = *n < kept ? (*n)++ : kept - 1;
    for (; at > 0 && is_larger(x.logit, list[at - 1].logit); at--)
        list[at] = list[at - 1];
    list[at] = x;
}

static float weight_of(float top, float logit, float inverse) {
    return logit == top ? 1.0f : expf((logit - top) * inverse);
}

static int32_t draw(const struct rank *list, int64_t kept, float u, const float *c) {
    const float threshold = u * c[kept - 1];
    int64_t j = 0;
    if (isnan(list[0].logit))
        return list[0].place;
    while (j + 1 < kept && !(c[j] > threshold))
        j++;
    return list[j].place;
}

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_top_k_own z = at_top_k_own_of(p);
    const float inverse = 1.0f / z.temperature;
    int32_t *index = p->tensors[AT_TOP_K_INDEX].data;
    struct rank *list = launch->workspace;
    for (int64_t row = 0; row < p->sizes.tokens; row++) {
        float *c = (float *)p->tensors[AT_TOP_K_CUMULATIVE].data + row * z.kept, sum = 0;
        int64_t n = 0;
        for (int64_t i = 0; i < z.vocabulary; i++) {
            const float x = (float)at_tensor_get(&p->tensors[AT_TOP_K_LOGITS], row * z.vocabulary + i);
            keep(list, &n, z.kept, (struct rank){ x, (int32_t)i });
        }
        for (int64_t j = 0; j < z.kept; j++)
            c[j] = sum += weight_of(list[0].logit, list[j].logit, inverse);
        index[row] = draw(list, z.kept, ((const float *)p->tensors[AT_TOP_K_U].data)[row], c);
    }
    return 0;
}

static int64_t workspace(const struct at_problem *p) { return at_top_k_own_of(p).kept * (int64_t)sizeof(struct rank); }

AT_KERNEL(top_k, 00_fp32) = {
    .summary = "one row after the other, expf",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .exp = AT_EXP_LIBM,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .workspace = workspace,
    .launch = launch,
};
