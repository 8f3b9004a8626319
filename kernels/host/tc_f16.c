/* Attention with f16 accumulation by the tensor-core rule.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Scores and outputs are f16 accumulators; between them everything is f32: scale on the score, filter or
 * exponentials, one rounding of P to f16. */
#include "kernels/host/tc_f16.h"

#include "kernels/host/tensor_f16.h"

struct scratch {
    struct at_host_half *k, *v; /* [max_sk d] of one request and kv head */
    struct at_host_half *q, *p; /* [d], [max_sk] */
    float *score, *weight, *o;  /* [max_sk], [max_sk], [d] */
};

static int64_t lay_out(const struct at_problem *problem, void *base, struct scratch *s) {
    struct at_host_arena arena = { .base = (uint8_t *)base };
    const int64_t d = problem->sizes.d, sk = problem->sizes.max_sk, word = (int64_t)sizeof(float);
    const int64_t half = (int64_t)sizeof(struct at_host_half);
    s->k = at_host_take(&arena, sk * d, half);
    s->v = at_host_take(&arena, sk * d, half);
    s->q = at_host_take(&arena, d, half);
    s->p = at_host_take(&arena, sk, half);
    s->score = at_host_take(&arena, sk, word);
    s->weight = at_host_take(&arena, sk, word);
    s->o = at_host_take(&arena, d, word);
    return arena.used;
}

int64_t at_host_tc_f16_workspace(const struct at_problem *problem) {
    struct scratch s;
    return lay_out(problem, NULL, &s);
}

static void decode(const struct at_tensor *tensor, int64_t first, int64_t n, struct at_host_half *out) {
    const uint16_t *codes = (const uint16_t *)tensor->data + first;
    for (int64_t i = 0; i < n; i++)
        out[i] = at_host_half(codes[i]);
}

static void load_keys(const struct at_problem *problem, const struct at_host_request *request, int64_t g,
                      const struct scratch *s) {
    const int64_t d = problem->sizes.d;
    for (int64_t t = 0; t < request->sk; t++) {
        int64_t first = at_host_key_element(problem, request, t, g);
        decode(&problem->tensors[AT_ATTN_K], first, d, s->k + t * d);
        decode(&problem->tensors[AT_ATTN_V], first, d, s->v + t * d);
    }
}

/* Query i of a request and one head over the keys it sees. */
static void run_row(const struct at_launch *launch, const struct at_host_tensors *tensors,
                    const struct at_numerics *numerics, const struct scratch *s, const struct at_host_request *request,
                    int64_t i, int64_t head) {
    const struct at_problem *problem = launch->problem;
    const int64_t d = problem->sizes.d, row = (request->token + i) * problem->sizes.h + head;
    const int64_t keys = at_host_visible(problem, request, i);
    const struct at_host_scores scores = at_host_scores(problem, tensors, request, i, head);
    struct at_host_softmax softmax = { .sum = 1 }; /* AsyncT divides by nothing */
    decode(&problem->tensors[AT_ATTN_Q], row * d, d, s->q);
    for (int64_t t = 0; t < keys; t++)
        s->score[t] = at_host_score(&scores, at_f32_from_f16(at_host_tensor_f16(d, s->q, s->k + t * d, 1, 0)), t);
    if (tensors->lse >= 0) {
        softmax = at_host_exponentials(keys, s->score, s->weight);
        float lse = at_host_lse(&softmax, keys);
        at_host_store(&problem->tensors[tensors->lse], row, 1, &lse);
    } else {
        struct at_host_gate gate = at_host_gate(problem, tensors, head, numerics);
        at_host_apply_gate(&gate, 0, 0, keys, s->score, s->weight);
    }
    for (int64_t t = 0; t < keys; t++)
        s->p[t] = at_host_half(at_f16_from_f32(s->weight[t]));
    for (int64_t c = 0; c < d; c++) {
        s->o[c] = at_f32_from_f16(at_host_tensor_f16(keys, s->p, s->v + c, d, 0));
        if (tensors->lse >= 0 && keys > 0)
            s->o[c] /= softmax.sum;
    }
    at_host_store(&problem->tensors[tensors->o], row * d, d, s->o);
}

int at_host_tc_f16(const struct at_launch *launch, const struct at_host_tensors *tensors,
                   const struct at_numerics *numerics) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const int64_t group = z->h / z->hk;
    struct scratch s;
    lay_out(problem, launch->workspace, &s);
    for (int64_t r = 0; r < z->b; r++) {
        const struct at_host_request request = at_host_request(problem, r);
        for (int64_t g = 0; g < z->hk && request.sq > 0; g++) {
            load_keys(problem, &request, g, &s);
            for (int64_t head = g * group; head < (g + 1) * group; head++)
                for (int64_t i = 0; i < request.sq; i++)
                    run_row(launch, tensors, numerics, &s, &request, i, head);
        }
    }
    return 0;
}
