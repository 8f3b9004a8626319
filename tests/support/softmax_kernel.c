/* A softmax kernel written for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/softmax_kernel.h"

#include <math.h>
#include <stdlib.h>

#include "softmax_attention/softmax_attention.h"

static float element(const struct at_problem *p, int tensor, int64_t i) {
    return (float)at_tensor_get(&p->tensors[tensor], i);
}

/* A float within `ulps` ulp of exp(x): the true value moved, then rounded towards it so that the bound holds. */
static float some_exp(float x, double ulps, struct at_test_random *random) {
    double right = exp((double)x), ulp = at_ulp(AT_F32, right);
    double moved = right + (2 * at_test_uniform(random) - 1) * ulps * ulp;
    float y = (float)moved;
    if (fabs((double)y - right) > ulps * ulp)
        y = (float)right;
    /* what every exponential must give exactly: 1 at 0, 0 where even the largest ulp is far above the value */
    return x == 0 ? 1 : y < 0 || x < -120 ? 0 : y;
}

/* Likewise of tanh(x), within 2 ulp where an exponential is within one. */
static float some_tanh(float x, double ulps, struct at_test_random *random) {
    double right = tanh((double)x), most = 2 * ulps * at_ulp(AT_F32, right);
    float y = (float)(right + (2 * at_test_uniform(random) - 1) * most);
    if (fabs((double)y - right) > most)
        y = (float)right;
    return x == 0 ? x : fabsf(x) > 22 ? copysignf(1, x) : fmaxf(-1, fminf(y, 1)) + (isnan(x) ? x : 0);
}

static void fill_scores(const struct at_problem *p, const struct at_attn_row *at, double ulps,
                        struct at_test_random *random, float *s) {
    const struct at_softmax_own own = at_softmax_own_of(p);
    const int64_t sq = at_tensor_i32(&p->tensors[AT_ATTN_QUERY_START], at->request + 1) -
                       at_tensor_i32(&p->tensors[AT_ATTN_QUERY_START], at->request);
    int64_t d = p->sizes.d, query = (at->token * p->sizes.h + at->head) * d;
    for (int64_t t = 0; t < at->visible; t++) {
        int64_t key = at_attn_kv_index(p, at->request, t, at->kv_head);
        s[t] = 0;
        for (int64_t i = 0; i < d; i++)
            s[t] = fmaf(element(p, AT_ATTN_Q, query + i), element(p, AT_ATTN_K, key + i), s[t]);
        if (own.softcap > 0)
            s[t] = own.softcap * some_tanh(s[t] * (p->params.scale / own.softcap), ulps, random);
        else
            s[t] *= p->params.scale;
        if (own.alibi > 0) {
            float bias = element(p, AT_SOFTMAX_SLOPES, at->head) * (float)(t - (at->keys - sq + at->query));
            s[t] += bias;
        }
    }
}

struct softmax_kernel softmax_kernel(const struct at_problem *problem, enum at_format p, int64_t row, int64_t c,
                                     double ulps, struct at_test_random *random) {
    const struct at_attn_row at = at_attn_row(problem, row);
    struct softmax_kernel out = { 0, (double)-INFINITY };
    float *s = calloc((size_t)at.visible + 1, sizeof *s), max = -INFINITY, acc = 0, sum = 0;
    if (!s)
        abort();
    fill_scores(problem, &at, ulps, random, s);
    for (int64_t t = 0; t < at.visible; t++)
        max = fmaxf(max, s[t]);
    for (int64_t t = 0; t < at.visible; t++)
        s[t] = some_exp(s[t] - max, ulps, random);
    for (int64_t t = 0; t < at.visible; t++) {
        int64_t v = at_attn_kv_index(problem, at.request, t, at.kv_head) + c;
        float weight = p == AT_F32 ? s[t] : (float)at_round(p, (double)s[t]);
        acc = fmaf(weight, element(problem, AT_ATTN_V, v), acc);
        sum += s[at.visible - 1 - t];
    }
    free(s);
    if (at.visible == 0)
        return out;
    out.o = at_round(problem->dtype, (double)(acc / sum));
    out.lse = (double)(max + logf(sum));
    return out;
}
