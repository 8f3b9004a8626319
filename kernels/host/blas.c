/* Attention over OpenBLAS, for AsyncT and softmax.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One thread: the bits of a BLAS change with its threads. Blocks of queries never span requests, so a
 * request's bits do not depend on its batch. */
#include "kernels/host/blas.h"

#include <cblas.h>
#include <string.h>

#include "attest/blas_alone.h"

enum { QUERIES = 32 };

struct scratch {
    float *k, *v;                /* [max_sk d] keys and values of one request and kv head */
    float *q, *o;                /* [QUERIES d] */
    float *score, *p;            /* [QUERIES max_sk] */
    struct at_host_softmax *row; /* [QUERIES] */
};

static int64_t lay_out(const struct at_problem *problem, void *base, struct scratch *s) {
    struct at_host_arena arena = { .base = (uint8_t *)base };
    const int64_t d = problem->sizes.d, sk = problem->sizes.max_sk, word = (int64_t)sizeof(float);
    s->k = at_host_take(&arena, sk * d, word);
    s->v = at_host_take(&arena, sk * d, word);
    s->q = at_host_take(&arena, QUERIES * d, word);
    s->o = at_host_take(&arena, QUERIES * d, word);
    s->score = at_host_take(&arena, QUERIES * sk, word);
    s->p = at_host_take(&arena, QUERIES * sk, word);
    s->row = at_host_take(&arena, QUERIES, (int64_t)sizeof *s->row);
    return arena.used;
}

int64_t at_host_blas_workspace(const struct at_problem *problem) {
    struct scratch s;
    return lay_out(problem, NULL, &s);
}

/* What a block of queries needs to know. */
struct block {
    const struct at_launch *launch;
    const struct at_host_tensors *tensors;
    const struct at_numerics *numerics;
    struct at_host_request request;
    struct scratch s;
    int64_t head, first, n; /* queries [first, first + n) of the request */
};

static int64_t visible(const struct block *b, int64_t i) {
    return at_host_visible(b->launch->problem, &b->request, b->first + i);
}

/* Row i of P from row i of the scores: weights over the keys it sees, in the declared format. */
static void weigh(const struct block *b, int64_t i) {
    const struct at_problem *problem = b->launch->problem;
    const int64_t keys = visible(b, i), sk = problem->sizes.max_sk;
    float *score = b->s.score + i * sk, *p = b->s.p + i * sk;
    const struct at_host_scores scores = at_host_scores(problem, b->tensors, &b->request, b->first + i, b->head);
    for (int64_t t = 0; t < keys; t++)
        score[t] = at_host_score(&scores, score[t], t);
    if (b->tensors->lse >= 0) {
        b->s.row[i] = at_host_exponentials(keys, score, p);
    } else {
        struct at_host_gate gate = at_host_gate(problem, b->tensors, b->head, b->numerics);
        at_host_apply_gate(&gate, 0, 0, keys, score, p);
    }
    for (int64_t t = 0; t < keys; t++)
        p[t] = at_host_round((enum at_format)b->numerics->p, p[t]);
}

/* O = P V. The keys that all queries of the block see go through sgemm; those that only later ones see are
 * added row by row, so that no row multiplies a value hidden from it, not even by 0. */
static void mix(const struct block *b) {
    const int64_t d = b->launch->problem->sizes.d, sk = b->launch->problem->sizes.max_sk, common = visible(b, 0);
    memset(b->s.o, 0, (size_t)(b->n * d) * sizeof *b->s.o);
    if (common > 0)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b->n, (int)d, (int)common, 1.0f, b->s.p, (int)sk,
                    b->s.v, (int)d, 0.0f, b->s.o, (int)d);
    for (int64_t i = 1; i < b->n; i++) {
        int64_t more = visible(b, i) - common;
        if (more > 0)
            cblas_sgemv(CblasRowMajor, CblasTrans, (int)more, (int)d, 1.0f, b->s.v + common * d, (int)d,
                        b->s.p + i * sk + common, 1, 1.0f, b->s.o + i * d, 1);
    }
}

static void store(const struct block *b) {
    const struct at_problem *problem = b->launch->problem;
    const int64_t d = problem->sizes.d;
    for (int64_t i = 0; i < b->n; i++) {
        int64_t row = (b->request.token + b->first + i) * problem->sizes.h + b->head, keys = visible(b, i);
        float *o = b->s.o + i * d;
        if (b->tensors->lse >= 0) {
            for (int64_t c = 0; c < d && keys > 0; c++)
                o[c] /= b->s.row[i].sum;
            float lse = at_host_lse(&b->s.row[i], keys);
            at_host_store(&problem->tensors[b->tensors->lse], row, 1, &lse);
        }
        at_host_store(&problem->tensors[b->tensors->o], row * d, d, o);
    }
}

static void run_block(const struct block *b) {
    const struct at_problem *problem = b->launch->problem;
    const int64_t d = problem->sizes.d, sk = problem->sizes.max_sk, keys = visible(b, b->n - 1);
    for (int64_t i = 0; i < b->n; i++)
        at_host_load_query(problem, b->request.token + b->first + i, b->head, b->s.q + i * d);
    if (keys > 0)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)b->n, (int)keys, (int)d, 1.0f, b->s.q, (int)d, b->s.k,
                    (int)d, 0.0f, b->s.score, (int)sk);
    for (int64_t i = 0; i < b->n; i++)
        weigh(b, i);
    mix(b);
    store(b);
}

int at_host_blas(const struct at_launch *launch, const struct at_host_tensors *tensors,
                 const struct at_numerics *numerics) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    struct block b = { .launch = launch, .tensors = tensors, .numerics = numerics };
    lay_out(problem, launch->workspace, &b.s);
    at_blas_alone();
    for (int64_t r = 0; r < z->b; r++) {
        b.request = at_host_request(problem, r);
        for (int64_t g = 0; g < z->hk && b.request.sq > 0; g++) {
            at_host_load_keys(problem, AT_ATTN_K, &b.request, g, 0, b.request.sk, b.s.k);
            at_host_load_keys(problem, AT_ATTN_V, &b.request, g, 0, b.request.sk, b.s.v);
            const int64_t group = z->h / z->hk;
            for (b.head = g * group; b.head < (g + 1) * group; b.head++)
                for (b.first = 0; b.first < b.request.sq; b.first += QUERIES) {
                    b.n = b.request.sq - b.first < QUERIES ? b.request.sq - b.first : QUERIES;
                    run_block(&b);
                }
        }
    }
    return 0;
}
