/* What the C baselines of attention share: requests, keys, number formats, scratch, gate and softmax weights.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written apart from the reference on purpose: a slip in reading block tables or masks there must not be
 * matched by the same slip here. All arithmetic is f32 unless said. */
#ifndef AT_HOST_ATTENTION_H
#define AT_HOST_ATTENTION_H

#include "attest/attention.h"
#include "attest/kernel.h"

/* Where an operator keeps its own tensors. A variant writes one of the two macros after including the
 * operator's header. */
struct at_host_tensors {
    int sigma, taps, gamma; /* -1: softmax */
    int o, lse;             /* lse -1: AsyncT */
    int slopes;             /* of ALiBi's biases; absent, or -1: none */
    float (*softcap)(const struct at_problem *problem);
};
#define AT_HOST_ASYNCT \
    { AT_ASYNCT_SIGMA, AT_ASYNCT_TAPS, AT_ASYNCT_GAMMA, AT_ASYNCT_O, -1, -1, NULL }
#define AT_HOST_SOFTMAX \
    { -1, -1, -1, AT_SOFTMAX_O, AT_SOFTMAX_LSE, AT_SOFTMAX_SLOPES, at_softmax_cap }

/* Reasons to decline, NULL when there are none. `decode`: one query a request at most. */
const char *at_host_declines(const struct at_problem *problem, int decode);

/* ---- requests and keys ---- */

struct at_host_request {
    int64_t index, token, sq, sk; /* token: of its first query */
};
struct at_host_request at_host_request(const struct at_problem *problem, int64_t index);
/* Keys that query i of the request sees. */
int64_t at_host_visible(const struct at_problem *problem, const struct at_host_request *request, int64_t i);
/* First element of key t of kv head g in tensor AT_ATTN_K or AT_ATTN_V. */
int64_t at_host_key_element(const struct at_problem *problem, const struct at_host_request *request, int64_t t,
                            int64_t g);
/* Rows [first, first + n) of K or V of one kv head, as f32, [n d]. */
void at_host_load_keys(const struct at_problem *problem, int tensor, const struct at_host_request *request, int64_t g,
                       int64_t first, int64_t n, float *out);
void at_host_load_query(const struct at_problem *problem, int64_t token, int64_t head, float *out);
/* n elements from the first-th on, to and from f32; formats f32, f16, bf16. */
void at_host_load(const struct at_tensor *tensor, int64_t first, int64_t n, float *out);
void at_host_store(const struct at_tensor *tensor, int64_t first, int64_t n, const float *values);
/* Nearest value of f32, f16 or bf16. */
float at_host_round(enum at_format format, float x);

/* ---- scratch ---- */

/* Takes pieces off a workspace; with base NULL it only counts, so that one function both measures and lays out. */
struct at_host_arena {
    uint8_t *base;
    int64_t used;
};
void *at_host_take(struct at_host_arena *arena, int64_t count, int64_t bytes_each);

/* ---- from dot products to scores ---- */

struct at_host_scores {
    float scale;
    float cap, to_cap; /* softcap, scale / cap; cap 0: none */
    float slope;       /* 0: no bias */
    int64_t place;     /* of the query among the keys */
};
/* Those of query i of a request and a query head. */
struct at_host_scores at_host_scores(const struct at_problem *problem, const struct at_host_tensors *tensors,
                                     const struct at_host_request *request, int64_t i, int64_t head);
/* Score of key t: dot scale, or cap tanhf(dot to_cap); then the product of slope and distance is added, not fused. */
float at_host_score(const struct at_host_scores *scores, float dot, int64_t t);

/* ---- AsyncT: from scores to P ---- */

struct at_host_gate {
    float sigma, gamma, clip_min, clip_max;
    int taps, pooled, shrink, relu_pre;
    int sum_first; /* 1: z = r - sigma/K * sum; 0: tap by tap (struct at_numerics, fir_order) */
    int fused;     /* 1: FIR steps are fmaf */
    const float *tap;
};
struct at_host_gate at_host_gate(const struct at_problem *problem, const struct at_host_tensors *tensors, int64_t head,
                                 const struct at_numerics *numerics);
/* score[i] are scaled scores of the keys first + i, i < n; what precedes key `first` is not needed when
 * first = 0 or when the first `halo` = taps - 1 entries are such keys. Writes p[i] = gamma * gate for
 * i >= halo and overwrites score with max(score, 0) when relu_pre. fmaxf and fminf take the other operand of a
 * NaN: the gate turns NaN into an ordinary number, as CUDA's does. */
void at_host_apply_gate(const struct at_host_gate *gate, int64_t first, int64_t halo, int64_t n, float *score,
                        float *p);

/* ---- softmax: from scores to P ---- */

struct at_host_softmax {
    float max, sum; /* of a run of keys; no keys, or none above -inf: max = -inf */
};
/* p[i] = exp(score[i] - max), not divided by the sum; the sum is of the unrounded p in ascending order. */
struct at_host_softmax at_host_exponentials(int64_t n, const float *score, float *p);
/* max + log(sum); -inf when there are no keys. */
float at_host_lse(const struct at_host_softmax *softmax, int64_t keys);

#endif
